import assert from "node:assert/strict";
import { test } from "node:test";
import { held, reply, stale, World } from "./help/world.js";

test("who leaves before the join is answered is out when the answer comes", async () => {
  const world = new World();
  const join = held();
  world.answers.join = () => join.promise;
  const room = world.join();
  await world.settle();
  const left = room.leave();
  await world.settle();
  assert.equal(world.of("leave").length, 0);
  join.answer(reply(200, { epoch: 7, leaseMs: 15_000, heartbeatMs: 5000 }));
  await left;
  assert.deepEqual(world.of("leave").map(({ body }) => body.epoch), [7]);
  assert.equal(world.timers.size, 0);
});

test("a join whose answer is lost is asked again as the same join", async () => {
  const world = new World();
  let asked = 0;
  world.answers.join = () => (++asked === 1 ? Promise.reject(new Error("cut")) : undefined);
  const room = world.join();
  await world.pass(1000);
  assert.equal(room.status, "connected");
  const ids = world.of("join").map(({ body }) => body.joinId);
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
  await room.leave();
});

test("nothing is dialled after a leave during back-off, or during the wait for a token", async () => {
  const world = new World();
  world.answers.join = () => reply(503, { code: "unavailable" });
  const room = world.join();
  await world.pass(3000);
  await room.leave();
  const before = world.requests.length;
  await world.pass(120_000);
  assert.equal(world.requests.length, before);

  const other = new World();
  const token = held();
  const waiting = other.join({ token: () => token.promise });
  await other.settle();
  const left = waiting.leave();
  token.answer("late");
  await left;
  await other.pass(60_000);
  assert.equal(other.requests.length, 0);
});

for (const code of ["expired", "unknown_session"]) {
  test(`${code}: joins again by itself`, async () => {
    const world = new World();
    const room = world.join();
    await world.settle();
    world.answers.heartbeat = ({ body }) => (body.epoch === 1 ? stale(code) : undefined);
    await world.pass(6000);
    assert.equal(room.epoch, 2);
    assert.equal(room.status, "connected");
    const [first, second] = world.of("join").map(({ body }) => body.joinId);
    assert.notEqual(first, second);
    await room.leave();
  });
}

for (const code of ["superseded", "removed", "room_closed"]) {
  test(`${code}: stops and says so`, async () => {
    const world = new World();
    const room = world.join();
    await world.settle();
    world.answers.heartbeat = () => stale(code);
    await world.pass(6000);
    const before = world.requests.length;
    await world.pass(120_000);
    assert.equal(world.requests.length, before);
    assert.equal(room.status, "ended");
    assert.equal(room.end.code, code);
    assert.deepEqual(room.heard.filter(({ type }) => type === "ended").map(({ detail }) => detail.code), [code]);
    assert.equal(world.of("leave").length, 0);
    assert.equal(world.timers.size, 0);
    assert.equal(world.openStreams.length, 0);
  });
}

test("a join that is refused stops, and says so where it is waited for", async () => {
  for (const code of ["blocked", "room_locked", "forbidden"]) {
    const world = new World();
    world.answers.join = () => reply(403, { error: "no", code, blockedUntilMs: 5 });
    const room = world.join();
    await assert.rejects(room.ready, { code });
    await world.pass(60_000);
    assert.equal(world.of("join").length, 1);
    assert.equal(room.end.blockedUntilMs, 5);
    assert.equal(world.timers.size, 0);
  }
});

test("Retry-After is obeyed, also when the page wakes before", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => reply(429, { code: "rate_limited" }, { "retry-after": "4" });
  await world.pass(5000);
  assert.equal(world.of("heartbeat").length, 1);
  await world.fire("window", "online");
  room.setMetadata({ a: 1 });
  await world.pass(3000);
  assert.equal(world.of("heartbeat").length, 1);
  await world.pass(2000);
  assert.equal(world.of("heartbeat").length, 2);
  await room.leave();
});

test("waits grow while a join is accepted and its heartbeat refused, and after failures, and stay bounded", async () => {
  const world = new World();
  world.randomness = 1;
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => stale("unknown_session");
  await world.pass(120_000);
  const at = world.of("join").map((request) => request.at);
  const gaps = at.slice(1).map((time, index) => time - at[index]);
  assert.ok(gaps.length > 5);
  // The heartbeat's own pause is four seconds of each.
  assert.ok(gaps.at(-1) > gaps[0] + 4000, `${gaps}`);
  await room.leave();

  const failing = new World();
  failing.answers.join = () => Promise.reject(new Error("cut"));
  failing.randomness = 1;
  const never = failing.join();
  await failing.pass(600_000);
  assert.ok(failing.of("join").length >= 50);
  const last = failing.of("join").slice(-2).map((request) => request.at);
  assert.ok(last[1] - last[0] <= 10_000);
  delete failing.answers.join;
  never.reconnect();
  await failing.settle();
  assert.equal(never.status, "connected");
  await never.leave();
});

test("full jitter: clients that fail together do not come back together", async () => {
  const waits = [];
  for (const randomness of [0.01, 0.5, 0.99]) {
    const world = new World();
    world.randomness = randomness;
    world.answers.join = () => reply(503, {});
    const room = world.join();
    await world.pass(60_000);
    waits.push(world.of("join")[4].at - world.of("join")[3].at);
    await room.leave();
  }
  assert.ok(waits[0] < 100 && waits[2] > 1500, `${waits}`);
});

test("changes made offline are one join with the last of each", async () => {
  const world = new World();
  world.answers.join = () => Promise.reject(new Error("offline"));
  const room = world.join();
  await world.settle();
  for (let n = 0; n < 500; n++) {
    room.moveCursor({ x: n });
    room.setMetadata({ n });
  }
  const before = world.requests.length;
  delete world.answers.join;
  await world.pass(2000);
  const later = world.requests.slice(before).filter(({ kind }) => kind !== "events");
  assert.deepEqual(later.map(({ kind }) => kind), ["join"]);
  assert.deepEqual(later[0].body.cursor, { x: 499 });
  assert.deepEqual(later[0].body.metadata, { n: 499 });
  await room.leave();
});

test("metadata that changes while a heartbeat is under way, and often, arrives at last and not often", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  for (let n = 0; n < 100; n++) {
    room.setMetadata({ n });
    await world.pass(10);
  }
  await world.pass(200);
  const sent = world.of("heartbeat").filter(({ body }) => "metadata" in body);
  assert.ok(sent.length <= 12, `${sent.length}`);
  assert.deepEqual(sent.at(-1).body.metadata, { n: 99 });
  await room.leave();
});

test("metadata that is too large is told, and costs nobody the membership", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = ({ body }) => (body.metadata ? reply(400, { code: "metadata_too_large" }) : undefined);
  room.setMetadata({ large: true });
  await world.pass(20_000);
  assert.equal(room.status, "connected");
  assert.deepEqual(room.heard.filter(({ type }) => type === "problem").map(({ detail }) => detail.code), ["metadata_too_large"]);
  await room.leave();
});

test("a listener that joins, leaves and throws from every event leaves one session or none", async () => {
  const world = new World();
  const room = world.join();
  const reported = [];
  globalThis.reportError = (error) => reported.push(error.message);
  room.on("status", () => {
    room.reconnect();
    throw new Error("of the listener");
  });
  room.on("ended", () => room.reconnect());
  await world.pass(1000);
  assert.equal(world.of("join").length, 1);
  assert.equal(world.openStreams.length, 1);
  await room.leave();
  await world.pass(1000);
  delete globalThis.reportError;
  assert.deepEqual(reported, ["of the listener", "of the listener"]);
  assert.equal(world.openStreams.length, 0);
});
