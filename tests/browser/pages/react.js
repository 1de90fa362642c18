// Components that are in a room, as the page's address says: under StrictMode, and as many as the test shows.

import { createElement as h, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { LeaseholdProvider, useParticipants, useRoom } from "leasehold/react";

const { url, roomId, userId } = JSON.parse(new URLSearchParams(location.search).get("options"));

function Someone({ name }) {
  const room = useRoom({ roomId, userId });
  const people = useParticipants(room);
  return h("p", { id: name }, `${room.status}: ${people.map((person) => person.userId)}`);
}

const root = createRoot(document.getElementById("root"));
window.show = (...names) => root.render(h(StrictMode, null, h(LeaseholdProvider, { url }, names.map((name) => h(Someone, { key: name, name })))));
window.show("first");
