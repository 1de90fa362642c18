import assert from "node:assert/strict";
import { test } from "node:test";
import { held, reply, stale, World } from "./help/world.js";

async function connected(options) {
  const world = new World();
  const room = world.join(options);
  await world.pass(1000);
  return { world, room };
}

test("at most ten a second, the latest wins, the last arrives", async () => {
  const { world, room } = await connected();
  for (let n = 0; n < 200; n++) {
    room.moveCursor({ n });
    await world.pass(5);
  }
  await world.pass(200);
  const sent = world.of("cursor").map(({ body }) => body.cursor.n);
  assert.ok(sent.length >= 10 && sent.length <= 11, `${sent.length}`);
  assert.equal(sent[0], 0);
  assert.equal(sent.at(-1), 199);
  await room.leave();
});

test("it is cleared whatever was sent just before, and on a hidden page", async () => {
  const { world, room } = await connected();
  room.moveCursor({ x: 1 });
  await world.show("hidden");
  room.moveCursor({ x: 2 });
  room.moveCursor(null);
  await world.pass(150);
  assert.equal(world.of("cursor").at(-1).body.cursor, null);
  await room.leave();
});

test("never behind a slow request, and what may have been overtaken is said again", async () => {
  const { world, room } = await connected();
  const slow = held();
  world.answers.cursor = ({ body }) => (body.cursor.n === 0 ? slow.promise : undefined);
  for (let n = 0; n < 4; n++) {
    room.moveCursor({ n });
    await world.pass(100);
  }
  assert.deepEqual(world.of("cursor").map(({ body }) => body.cursor.n).slice(0, 4), [0, 1, 2, 3]);
  // The slow one arrives last: without another the service would keep it.
  slow.answer(reply(204));
  await world.pass(500);
  assert.equal(world.of("cursor").at(-1).body.cursor.n, 3);
  assert.ok(world.of("cursor").length >= 5);
  const settled = world.of("cursor").length;
  await world.pass(3000);
  assert.equal(world.of("cursor").length, settled);
  await room.leave();
});

test("of requests that nobody answers the oldest gives way", async () => {
  const { world, room } = await connected();
  world.answers.cursor = () => held().promise;
  for (let n = 0; n < 10; n++) {
    room.moveCursor({ n });
    await world.pass(100);
  }
  const sent = world.of("cursor");
  assert.deepEqual(sent.map(({ body }) => body.cursor.n), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(sent.filter(({ signal }) => !signal.aborted).length, 2);
  await room.leave();
});

test("what failed is said again once the service answers", async () => {
  const { world, room } = await connected();
  world.answers.cursor = () => Promise.reject(new Error("cut"));
  world.answers.heartbeat = () => Promise.reject(new Error("cut"));
  room.moveCursor({ x: 7 });
  await world.pass(5000);
  assert.equal(world.of("cursor").length, 1);
  world.answers = {};
  await world.pass(6000);
  assert.equal(world.of("cursor").length, 2);
  assert.deepEqual(world.of("cursor").at(-1).body.cursor, { x: 7 });
  await room.leave();
});

test("it renews as a heartbeat does, and one that is stale leads to a join with the latest", async () => {
  const { world, room } = await connected();
  await world.pass(3000);
  room.moveCursor({ x: 1 });
  world.answers.heartbeat = () => reply(503, {});
  // Joined 18.5 seconds ago, moved 14.5 seconds ago.
  await world.pass(14_500);
  assert.equal(room.status, "reconnecting");
  await world.pass(500);
  assert.equal(room.status, "lost");
  delete world.answers.heartbeat;
  await world.pass(12_000);
  assert.equal(room.status, "connected");
  world.answers.heartbeat = world.answers.cursor = ({ body }) => (body.epoch === 1 ? stale("expired") : undefined);
  room.moveCursor({ n: "last" });
  await world.pass(12_000);
  assert.equal(room.epoch, 2);
  assert.deepEqual(world.of("join").at(-1).body.cursor, { n: "last" });
  await room.leave();
});
