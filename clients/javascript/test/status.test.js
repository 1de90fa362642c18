import assert from "node:assert/strict";
import { test } from "node:test";
import { held, reply, stale, World } from "./help/world.js";

test("own deadline: counted from before the request was sent, and before the server's", async () => {
  const world = new World();
  const join = held();
  world.answers.join = () => join.promise;
  world.answers.heartbeat = () => Promise.reject(new Error("cut"));
  const room = world.join();
  await world.pass(4000);
  join.answer(reply(200, { epoch: 1, leaseMs: 15_000, heartbeatMs: 5000 }));
  await world.settle();
  assert.equal(room.status, "connected");
  // The server may have taken it at the very moment at which it was sent.
  await world.pass(10_800);
  assert.equal(room.status, "reconnecting");
  await world.pass(200);
  assert.equal(room.status, "lost");
  assert.deepEqual(room.heard.filter(({ type }) => type === "status").map(({ detail }) => detail), ["connected", "reconnecting", "lost"]);
  await room.leave();
});

test("a heartbeat that fails is told at once, and so is the next that succeeds", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => reply(503, { code: "unavailable" });
  await world.pass(5000);
  assert.equal(room.status, "reconnecting");
  delete world.answers.heartbeat;
  await world.pass(1000);
  assert.equal(room.status, "connected");
  assert.equal(world.of("join").length, 1);
  await room.leave();
});

test("a heartbeat that nobody answers is tried again within the lease", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => (world.of("heartbeat").length === 1 ? held().promise : undefined);
  await world.pass(14_000);
  assert.equal(room.status, "connected");
  assert.ok(!room.heard.some(({ detail }) => detail === "lost"));
  await room.leave();
});

test("after a service that was away for longer than the lease its word counts, not the own deadline", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => Promise.reject(new Error("refused"));
  await world.pass(30_000);
  assert.equal(room.status, "lost");
  delete world.answers.heartbeat;
  await world.pass(11_000);
  assert.equal(room.status, "connected");
  assert.equal(world.of("join").length, 1);
  await room.leave();
});

test("heartbeats come at the server's interval, less up to a fifth", async () => {
  for (const [randomness, gap] of [[0, 5000], [1, 4000]]) {
    const world = new World();
    world.randomness = randomness;
    const room = world.join();
    await world.pass(60_000);
    const at = world.of("heartbeat").map((request) => request.at);
    assert.equal(at[5] - at[4], gap);
    await room.leave();
  }
});

test("after a laptop's sleep it is not connected before the server said so", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  world.sleep(60_000);
  assert.notEqual(room.status, "connected");
  const heartbeat = held();
  world.answers.heartbeat = () => (world.of("heartbeat").length === 1 ? heartbeat.promise : undefined);
  // No event tells of it.
  await world.pass(2500);
  assert.equal(room.status, "reconnecting");
  heartbeat.answer(stale("expired"));
  await world.pass(1000);
  assert.equal(room.status, "connected");
  assert.equal(world.of("join").length, 2);
  await room.leave();
});

test("a page that is stopped for a minute joins again once, and keeps its stream", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  world.freeze(60_000);
  assert.equal(room.status, "lost");
  world.answers.heartbeat = ({ body }) => (body.epoch === 1 ? stale("expired") : undefined);
  // Before what the stream said meanwhile is read.
  world.window.dispatchEvent(new Event("focus"));
  await world.pass(3000);
  assert.equal(room.status, "connected");
  assert.equal(world.of("join").length, 2);
  assert.equal(world.streams.length, 1);
  await room.leave();
});

test("a clock that is set by an hour costs a heartbeat and nothing else", async () => {
  for (const jump of [3_600_000, -3_600_000]) {
    const world = new World();
    const room = world.join();
    await world.pass(1000);
    world.wall += jump;
    await world.pass(10_000);
    assert.equal(room.status, "connected");
    assert.equal(world.of("join").length, 1);
    assert.equal(world.streams.length, 1);
    await room.leave();
  }
});

test("hidden: a longer lease at once; shown: the usual one at once", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  await world.show("hidden");
  assert.equal(world.of("heartbeat").at(-1).body.leaseMs, 120_000);
  // Timers of hidden pages run once a minute.
  world.freeze(60_000);
  assert.equal(room.status, "connected");
  await world.pass(1000);
  assert.equal(room.status, "connected");
  const before = world.of("heartbeat").length;
  await world.show("visible");
  assert.equal(world.of("heartbeat").length, before + 1);
  assert.equal(world.of("heartbeat").at(-1).body.leaseMs, 15_000);
  assert.ok(!room.heard.some(({ detail }) => detail === "lost" || detail === "reconnecting"));
  await world.pass(6000);
  assert.equal(world.of("heartbeat").at(-1).body.leaseMs, undefined);
  await room.leave();
});

test("a shorter lease whose answer is lost is counted on as the shorter one", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  await world.show("hidden");
  world.answers.heartbeat = () => Promise.reject(new Error("cut"));
  await world.show("visible");
  await world.pass(15_000);
  assert.equal(room.status, "lost");
  await room.leave();
});

test("a service that allows no such lease is asked once, and the membership goes on", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  world.answers.heartbeat = ({ body }) => (body.leaseMs > 60_000 ? reply(400, { code: "invalid_request" }) : undefined);
  await world.show("hidden");
  await world.pass(30_000);
  assert.equal(room.status, "connected");
  assert.equal(world.of("heartbeat").filter(({ body }) => body.leaseMs).length, 1);
  await room.leave();
});

test("however long a service is away, a renewal is tried once a heartbeat at least", async () => {
  const world = new World();
  world.randomness = 1;
  const room = world.join({ leaseMs: 3000 });
  await world.settle();
  world.answers.heartbeat = () => Promise.reject(new Error("refused"));
  await world.pass(60_000);
  const at = world.of("heartbeat").map((request) => request.at);
  assert.ok(at.slice(1).every((time, index) => time - at[index] <= 1000), `${at}`);
  await room.leave();
});
