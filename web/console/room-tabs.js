import { h } from "./dom.js";
import { toHistory, toRoom } from "./route.js";

/** The two views of a room. */
export function roomTabs(roomId, current) {
  const tab = (name, text, href) => h("a", { href, text, "aria-current": name === current ? "page" : null });
  return h(
    "nav",
    { class: "tabs", "aria-label": "Of this room" },
    tab("live", "Now", toRoom(roomId)),
    tab("history", "History", toHistory(roomId)),
  );
}
