import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import * as Y from "yjs";
import { applyAwarenessUpdate, Awareness, encodeAwarenessUpdate } from "y-protocols/awareness";
import { joinRoom } from "leasehold";
import { RoomAwareness } from "leasehold/yjs";
import { eventually, Service, skip } from "./help/service.js";
import { person, reply, World } from "./help/world.js";

function cursorOf(clientId, state) {
  return { cursor: { clientId, state } };
}

async function editor(...participants) {
  const world = new World();
  world.answers.events = (request) => world.stream(request, (roomId) => ({ roomId, generation: 1, version: 1, participants }));
  const room = world.join({ deviceId: "own" });
  const doc = new Y.Doc();
  const awareness = new RoomAwareness(room, doc);
  const changes = [];
  awareness.on("change", ({ added, updated, removed }, origin) => changes.push({ added, updated, removed, origin }));
  await world.pass(200);
  const end = async () => {
    awareness.destroy();
    await room.leave();
    assert.equal(world.timers.size, 0);
  };
  return { world, room, doc, awareness, changes, end };
}

test("others' states are seen as they come, change and go, each device its own", async () => {
  const devices = [
    { deviceId: "phone", epoch: 5, ...cursorOf(11, { name: "phone" }) },
    { deviceId: "laptop", epoch: 4, ...cursorOf(12, { name: "laptop" }) },
  ];
  const { world, awareness, changes, end } = await editor(person("bob", { ...cursorOf(11, { name: "phone" }), devices }), person("carol", { cursor: { x: 1 } }));
  assert.deepEqual([...awareness.getStates().keys()].filter((id) => id !== awareness.clientID), [11, 12]);
  assert.deepEqual(changes.at(-1), { added: [11, 12], updated: [], removed: [], origin: "leasehold" });
  const [stream] = world.streams;
  stream.tell("updated", { roomId: "r", generation: 1, version: 2, participant: person("bob", { epoch: 5, ...cursorOf(11, { name: "moved" }) }) });
  await world.settle();
  assert.deepEqual(changes.at(-1), { added: [], updated: [11], removed: [12], origin: "leasehold" });
  assert.deepEqual(awareness.getStates().get(11), { name: "moved" });
  // What the protocol's own functions write holds for others.
  const other = new Awareness(new Y.Doc());
  applyAwarenessUpdate(other, encodeAwarenessUpdate(awareness, [11]), "test");
  assert.deepEqual(other.getStates().get(11), { name: "moved" });
  other.destroy();
  await end();
});

test("a state set while there is no membership is there after the join, and again after a rejoin", async () => {
  const world = new World();
  world.answers.join = () => Promise.reject(new Error("cut"));
  const room = world.join();
  const awareness = new RoomAwareness(room, new Y.Doc());
  await world.settle();
  awareness.setLocalStateField("user", { name: "Alice" });
  delete world.answers.join;
  await world.pass(1000);
  assert.deepEqual(world.of("join").at(-1).body.cursor, cursorOf(awareness.clientID, { user: { name: "Alice" } }).cursor);
  world.answers.heartbeat = ({ body }) => (body.epoch === 1 ? reply(409, { code: "expired" }) : undefined);
  await world.pass(6000);
  awareness.setLocalStateField("cursor", { anchor: 1 });
  await world.pass(200);
  assert.deepEqual(world.of("join").at(-1).body.cursor.state, { user: { name: "Alice" } });
  assert.deepEqual(world.of("cursor").at(-1).body.cursor.state, { user: { name: "Alice" }, cursor: { anchor: 1 } });
  awareness.destroy();
  await world.pass(200);
  assert.equal(world.of("cursor").at(-1).body.cursor, null);
  await room.leave();
});

test("of two clients with the same id each sees exactly one, and the state follows the document's new id", async () => {
  const { world, doc, awareness, changes, end } = await editor();
  awareness.setLocalStateField("user", "alice");
  const before = doc.clientID;
  // Another document with the same id wrote: Yjs gives this one another.
  const other = new Y.Doc();
  other.clientID = before;
  other.getText("t").insert(0, "hello");
  Y.applyUpdate(doc, Y.encodeStateAsUpdate(other));
  assert.notEqual(doc.clientID, before);
  assert.deepEqual([...awareness.getStates()], [[doc.clientID, { user: "alice" }]]);
  assert.ok(changes.some(({ removed }) => removed.includes(before)));
  await world.pass(500);
  assert.equal(world.of("cursor").at(-1).body.cursor.clientId, doc.clientID);
  await end();
});

test("who is in the room is aware, however long they do not move; a state too large is told", async () => {
  const { world, room, awareness, end } = await editor(person("bob", cursorOf(11, {})));
  const meta = awareness.meta.get(11);
  meta.lastUpdated -= 3_600_000;
  world.answers.cursor = () => reply(400, { code: "cursor_too_large", error: "too large" });
  awareness.setLocalState({ large: true });
  await world.pass(120_000);
  assert.ok(awareness.getStates().has(11));
  assert.deepEqual(room.heard.filter(({ type }) => type === "problem").map(({ detail }) => detail.code), ["cursor_too_large"]);
  await end();
});

suite("with the real service", { skip }, () => {
  let service;
  before(async () => (service = await Service.start()));
  after(() => service.end());

  test("two editors of one person and one of another see each other's selections, and who goes", async () => {
    const people = [["alice", "laptop"], ["alice", "phone"], ["bob", "laptop"]];
    const editors = people.map(([userId, deviceId]) => {
      const room = joinRoom({ url: service.url, roomId: "document", userId, deviceId });
      const awareness = new RoomAwareness(room, new Y.Doc());
      awareness.setLocalState({ name: `${userId} ${deviceId}`, selection: null });
      return { room, awareness };
    });
    const seen = ({ awareness }) => [...awareness.getStates().values()].map(({ name, selection }) => `${name} ${selection}`).sort();
    await eventually("all see all", () => editors.every((editor) => seen(editor).length === 3));
    editors[1].awareness.setLocalStateField("selection", 7);
    await eventually("all see the selection", () => editors.every((editor) => seen(editor).includes("alice phone 7")));
    await editors[0].room.leave();
    await eventually("one is gone for the others", () => editors.slice(1).every((editor) => seen(editor).length === 2));
    assert.deepEqual(seen(editors[2]), ["alice phone 7", "bob laptop null"]);
    for (const { room, awareness } of editors) {
      awareness.destroy();
      await room.leave();
    }
  });
});
