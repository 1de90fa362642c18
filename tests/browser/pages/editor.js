// A text that two tabs edit with Yjs. Tabs tell each other of changes; who is where is told by the room.

import * as Y from "yjs";
import { joinRoom } from "leasehold";
import { RoomAwareness } from "leasehold/yjs";

const { url, roomId, userId } = JSON.parse(new URLSearchParams(location.search).get("options"));
const doc = new Y.Doc();
const text = doc.getText("text");
const area = document.getElementById("text");

const others = new BroadcastChannel(roomId);
others.onmessage = ({ data }) => (data ? Y.applyUpdate(doc, data, others) : others.postMessage(Y.encodeStateAsUpdate(doc)));
doc.on("update", (update, origin) => origin !== others && others.postMessage(update));
// To whoever is there already: send what there is.
others.postMessage(null);

text.observe(() => (area.value = text.toString()));
area.addEventListener("input", () => doc.transact(() => (text.delete(0, text.length), text.insert(0, area.value))));

const room = joinRoom({ url, roomId, userId });
const awareness = new RoomAwareness(room, doc);
awareness.setLocalStateField("user", { name: userId });
area.addEventListener("select", () => {
  const at = (index) => Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index));
  awareness.setLocalStateField("cursor", { anchor: at(area.selectionStart), head: at(area.selectionEnd) });
});

/** What others have selected, by name. */
function selections() {
  const found = {};
  for (const [clientId, { user, cursor }] of awareness.getStates()) {
    if (clientId === doc.clientID || !cursor) continue;
    const [from, to] = [cursor.anchor, cursor.head].map((at) => Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(at), doc).index);
    found[user.name] = text.toString().slice(from, to);
  }
  return found;
}

Object.assign(window, { awareness, selections, room });
