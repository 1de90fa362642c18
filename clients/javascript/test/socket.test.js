import assert from "node:assert/strict";
import { test } from "node:test";
import { SocketTransport } from "../src/socket.js";
import { person, reply, tokenFor, World } from "./help/world.js";

function joined(world, options = {}) {
  return world.join({ transport: SocketTransport, ...options });
}

test("rooms share one socket, for what is heard and what is asked", async () => {
  const world = new World();
  const rooms = ["a", "b"].map((roomId) => joined(world, { roomId }));
  await world.pass(100);
  assert.equal(world.sockets.length, 1);
  assert.deepEqual(rooms.map(({ status }) => status), ["connected", "connected"]);
  world.sockets[0].tell({ type: "joined", roomId: "b", generation: 1, version: 2, participant: person("bob") });
  assert.equal(rooms[1].count, 1);
  await rooms[0].leave();
  assert.deepEqual(world.sockets[0].sent.filter(({ roomId }) => roomId === "a").map(({ type }) => type).slice(-2), ["leave", "unsubscribe"]);
  await rooms[1].leave();
  assert.equal(world.sockets[0].closed, true);
  assert.equal(world.requests.length, 0);
  assert.equal(world.timers.size, 0);
});

test("a dead socket that says it is open is found out by a question, and no close is waited for", async () => {
  const world = new World();
  const room = joined(world);
  await world.pass(1000);
  world.sockets[0].silent = true;
  world.sleep(60_000);
  await world.fire("window", "online");
  assert.notEqual(room.status, "connected");
  await world.pass(7000);
  assert.equal(world.sockets.length, 2);
  assert.equal(room.status, "connected");
  assert.equal(world.sockets[1].sent.filter(({ type }) => type === "heartbeat").length > 0, true);
  await room.leave();
});

test("a page's own silence is no dead socket", async () => {
  const world = new World();
  const watch = world.watch({ transport: SocketTransport });
  await world.pass(1000);
  world.freeze(60_000);
  await world.pass(300_000);
  assert.equal(world.sockets.length, 1);
  watch.close();
});

test("what is under way when a socket drops is not mistaken for the next one's", async () => {
  const world = new World();
  const room = joined(world);
  await world.pass(1000);
  const [first] = world.sockets;
  first.send = (text) => first.sent.push(JSON.parse(text));
  await world.show("hidden");
  first.drop();
  await world.pass(2000);
  // An answer of the old one that arrives late.
  first.onmessage?.({ data: JSON.stringify({ type: "answer", requestId: 3, status: 409, body: { code: "removed" } }) });
  assert.equal(world.sockets.length, 2);
  assert.equal(room.status, "connected");
  await room.leave();
});

test("sockets that are accepted and dropped at once come back ever slower, and never after the leave", async () => {
  const world = new World();
  world.randomness = 1;
  world.onSocket = (socket) => {
    socket.open();
    socket.drop();
  };
  const watch = world.watch({ transport: SocketTransport });
  await world.pass(60_000);
  assert.ok(world.sockets.length < 15, `${world.sockets.length}`);
  watch.close();
  const before = world.sockets.length;
  await world.pass(60_000);
  assert.equal(world.sockets.length, before);
});

test("a handshake that is refused is explained by a request, and stops what may not be", async () => {
  const world = new World();
  world.onSocket = (socket) => socket.drop();
  world.answers.participants = () => reply(403, { code: "forbidden" });
  const watch = world.watch({ transport: SocketTransport });
  await world.pass(1000);
  assert.equal(watch.end.code, "forbidden");
  assert.equal(world.timers.size, 0);
});

test("an open socket is shown the fresh token before the old one ends", async () => {
  const world = new World();
  let given = 0;
  const room = joined(world, { token: async () => tokenFor(300, `token${given++}`) });
  await world.pass(241_000);
  const shown = world.sockets[0].sent.filter(({ type }) => type === "authenticate");
  assert.equal(world.sockets.length, 1);
  assert.equal(shown.length, 1);
  assert.match(shown[0].token, /token1$/);
  assert.match(world.sockets[0].url, /token0$/);
  await room.leave();
});

test("a session that the socket says is stale is looked into at once", async () => {
  const world = new World();
  const room = joined(world);
  await world.pass(1000);
  world.onMessage = ({ type }) => (type === "heartbeat" ? { status: 409, body: { code: "superseded" } } : undefined);
  world.sockets[0].tell({ type: "stale", roomId: "r", userId: "alice", epoch: 1, code: "superseded" });
  await world.settle();
  assert.equal(room.end.code, "superseded");
});
