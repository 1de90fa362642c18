import assert from "node:assert/strict";
import { after, test } from "node:test";
import { JSDOM } from "jsdom";
import { act, createElement as h, StrictMode, useEffect } from "react";
import { renderToString } from "react-dom/server";
import { LeaseholdProvider, useCount, useParticipants, useRoom } from "leasehold/react";
import { FakeStream, person, reply, stale, World } from "./help/world.js";

let renders = 0;

// Rendered before there is a window, as on a server.
const onServer = renderToString(h(LeaseholdProvider, { url: "http://service", token: () => "t" }, h(Counted, { world: { platform: {} } }), h(Someone, { world: { platform: {} } })));

const { window } = new JSDOM("<div id=root></div>");
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true });
globalThis.navigator ??= window.navigator;
const { createRoot } = await import("react-dom/client");
after(() => window.close());

function options(world, roomId = "r") {
  return { roomId, userId: "alice", platform: world.platform };
}

function Someone({ world, roomId, metadata, seen = {} }) {
  renders++;
  const room = useRoom({ ...options(world, roomId), metadata });
  const people = useParticipants(room);
  useEffect(() => {
    seen.effects = (seen.effects ?? 0) + 1;
  }, [room.moveCursor, room.setMetadata, room.reconnect]);
  Object.assign(seen, { room, people });
  return h("p", null, `${room.status} ${people.length}`);
}

function Counted({ world, seen = {} }) {
  seen.count = useCount(options(world, "counted"));
  return h("p", null, String(seen.count));
}

async function rendered(world, ...children) {
  const root = createRoot(window.document.getElementById("root"));
  const show = async (...children) => {
    await act(async () => root.render(h(StrictMode, null, h(LeaseholdProvider, { url: "http://service", token: () => "inline" }, ...children))));
    await act(async () => world.pass(100));
  };
  await show(...children);
  const unmount = async () => {
    await act(async () => root.unmount());
    await act(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      await world.settle();
    });
  };
  return { show, unmount };
}

test("on a server nothing is joined", () => {
  assert.equal(onServer, "<p>null</p><p>connecting 0</p>");
});

test("under StrictMode it joins once, shows who is there, and leaves when it is gone", async () => {
  const world = new World();
  const seen = {};
  world.answers.events = (request) => world.stream(request, (roomId) => ({ roomId, generation: 1, version: 1, participants: [person("alice")] }));
  const { unmount } = await rendered(world, h(Someone, { world, seen }));
  assert.equal(seen.room.status, "connected");
  assert.deepEqual(seen.people.map(({ userId }) => userId), ["alice"]);
  assert.equal(world.of("join").length, 1);
  assert.equal(world.streams.length, 1);
  await unmount();
  assert.equal(world.of("leave").length, 1);
  assert.equal(world.openStreams.length, 0);
  assert.equal(world.timers.size, 0);
});

test("two components share one membership, one that comes later sees everybody, and one that goes ends nothing", async () => {
  const world = new World();
  world.answers.events = (request) => world.stream(request, (roomId) => ({ roomId, generation: 1, version: 1, participants: [person("alice")] }));
  const [first, second] = [{}, {}];
  const { show, unmount } = await rendered(world, h(Someone, { key: 1, world, seen: first }));
  await show(h(Someone, { key: 1, world, seen: first }), h(Someone, { key: 2, world, seen: second }));
  assert.equal(second.people.length, 1);
  assert.equal(second.room.room, first.room.room);
  await show(h(Someone, { key: 2, world, seen: second }));
  await act(async () => world.openStreams[0].tell("joined", { roomId: "r", generation: 1, version: 2, participant: person("bob") }));
  await act(async () => world.settle());
  assert.equal(second.people.length, 2);
  assert.equal(world.of("join").length, 1);
  assert.equal(world.of("leave").length, 0);
  await unmount();
  assert.equal(world.of("leave").length, 1);
});

test("functions are the same at each render, and nothing renders without news", async () => {
  const world = new World();
  const seen = {};
  const { show, unmount } = await rendered(world, h(Someone, { world, seen }));
  for (let n = 0; n < 5; n++) await show(h(Someone, { world, seen }));
  // Two, since StrictMode runs each once more.
  assert.equal(seen.effects, 2);
  renders = 0;
  await act(async () => world.pass(60_000));
  assert.equal(renders, 0);
  await unmount();
});

test("metadata that changes is sent, and written in place it is not sent at each render", async () => {
  const world = new World();
  const { show, unmount } = await rendered(world, h(Someone, { world, metadata: { name: "A" } }));
  for (let n = 0; n < 5; n++) await show(h(Someone, { world, metadata: { name: "A" } }));
  await show(h(Someone, { world, metadata: { name: "B" } }));
  await act(async () => world.pass(500));
  assert.deepEqual(world.of("join").map(({ body }) => body.metadata), [{ name: "A" }]);
  const sent = world.of("heartbeat").filter(({ body }) => "metadata" in body);
  assert.deepEqual(sent.map(({ body }) => body.metadata), [{ name: "B" }]);
  await unmount();
});

test("another room is joined in place of the first, and rooms share one stream", async () => {
  const world = new World();
  const { show, unmount } = await rendered(world, h(Someone, { key: 1, world, roomId: "a" }), h(Someone, { key: 2, world, roomId: "b" }));
  assert.equal(world.streams.length, 1);
  await show(h(Someone, { key: 1, world, roomId: "a" }), h(Someone, { key: 2, world, roomId: "c" }));
  await act(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await world.pass(100);
  });
  assert.deepEqual(world.of("join").map(({ path }) => path.split("/")[2]), ["a", "b", "c"]);
  assert.deepEqual(world.of("leave").map(({ path }) => path.split("/")[2]), ["b"]);
  assert.equal(world.openStreams.length, 1);
  await unmount();
});

test("after an end, reconnect joins anew", async () => {
  const world = new World();
  const seen = {};
  const { unmount } = await rendered(world, h(Someone, { world, seen }));
  world.answers.heartbeat = ({ body }) => (body.epoch === 1 ? stale("superseded") : undefined);
  await act(async () => world.pass(6000));
  assert.equal(seen.room.status, "ended");
  assert.equal(seen.room.end.code, "superseded");
  await act(async () => seen.room.reconnect());
  await act(async () => world.pass(100));
  assert.equal(seen.room.status, "connected");
  assert.equal(seen.room.room.epoch, 2);
  await unmount();
});

test("a count is null until it is known, and then a number", async () => {
  const world = new World();
  const seen = {};
  const stream = new FakeStream();
  world.answers.events = () => (world.of("events").length === 1 ? stream.response : reply(503, {}));
  const { unmount } = await rendered(world, h(Counted, { world, seen }));
  assert.equal(seen.count, null);
  await act(async () => {
    stream.tell("count", { roomId: "counted", generation: 1, version: 3, memberCount: 42 });
    await world.settle();
  });
  assert.equal(seen.count, 42);
  assert.equal(world.of("join").length, 0);
  await unmount();
});
