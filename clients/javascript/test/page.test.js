import assert from "node:assert/strict";
import { test } from "node:test";
import { held, reply, World } from "./help/world.js";

test("pagehide leaves with a request that outlives the page, naming device, epoch and token", async () => {
  const world = new World();
  const room = world.join({ token: async () => "of alice", deviceId: "tab" });
  await world.pass(1000);
  world.window.dispatchEvent(new Event("pagehide"));
  // In the event itself: there may be no later.
  const [leave] = world.of("leave");
  assert.equal(leave.keepalive, true);
  assert.equal(leave.token, "of alice");
  assert.deepEqual(leave.body, { userId: "alice", deviceId: "tab", epoch: 1 });
  await world.show("hidden");
  await world.pass(60_000);
  assert.equal(world.of("join").length, 1);
  assert.equal(world.of("heartbeat").length, 0);
  await room.leave();
});

test("without a token the leave needs no question first", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  await world.fire("window", "pagehide");
  assert.equal(world.of("leave")[0].headers["content-type"], "text/plain");
  await room.leave();
});

test("a join that is answered after pagehide is left again", async () => {
  const world = new World();
  const join = held();
  world.answers.join = () => join.promise;
  const room = world.join();
  await world.settle();
  await world.fire("window", "pagehide");
  join.answer(reply(200, { epoch: 4, leaseMs: 15_000, heartbeatMs: 5000 }));
  await world.settle();
  assert.deepEqual(world.of("leave").map(({ body }) => body.epoch), [4]);
  await room.leave();
});

for (const [target, type] of [["window", "pageshow"], ["document", "resume"], ["window", "focus"]]) {
  test(`back from the cache, told by ${type} alone: joins again`, async () => {
    const world = new World();
    const room = world.join();
    await world.settle();
    await world.fire("window", "pagehide", { persisted: true });
    // Browsers keep no page that has something open.
    assert.equal(world.openStreams.length, 0);
    await world.show("hidden");
    await world.pass(60_000);
    assert.equal(world.openStreams.length, 0);
    assert.equal(room.status, "lost");
    await world.fire(target, type, { persisted: true });
    assert.equal(room.status, "connected");
    assert.equal(room.epoch, 2);
    assert.equal(world.of("join").length, 2);
    await world.pass(100);
    assert.equal(world.openStreams.length, 1);
    assert.equal(room.live, true);
    await room.leave();
  });
}

test("a page that is frozen, or asks whether to stay, leaves nothing", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  await world.fire("document", "freeze");
  await world.fire("window", "beforeunload");
  await world.pass(10_000);
  assert.equal(world.of("leave").length, 0);
  assert.equal(room.status, "connected");
  await room.leave();
});

test("a room that was left, or stopped, stays so whatever the page does", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  await room.leave();
  const refused = world.join({ roomId: "other" });
  world.answers.heartbeat = () => reply(409, { code: "removed" });
  await world.pass(6000);
  assert.equal(refused.status, "ended");
  const before = world.requests.length;
  for (const visibility of ["hidden", "visible"]) await world.show(visibility);
  for (const type of ["online", "offline", "focus", "pagehide", "pageshow"]) await world.fire("window", type, { persisted: true });
  await world.fire("document", "resume");
  await world.pass(60_000);
  assert.equal(world.requests.length, before);
});

test("offline is a reason to ask, and not believed", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(1000);
  await world.fire("window", "offline");
  assert.equal(world.of("heartbeat").length, 1);
  assert.equal(room.status, "connected");
  world.answers.heartbeat = () => Promise.reject(new Error("no network"));
  await world.fire("window", "offline");
  assert.equal(room.status, "reconnecting");
  await room.leave();
});

test("online tries at once, with a request that was under way before given up", async () => {
  const world = new World();
  const room = world.join();
  await world.settle();
  world.answers.heartbeat = () => (world.of("heartbeat").length === 1 ? held().promise : undefined);
  await world.pass(7000);
  await world.fire("window", "online");
  assert.equal(world.of("heartbeat").length, 2);
  assert.equal(room.status, "connected");
  await room.leave();
});

test("one device a tab: kept over a reload, another in a duplicated tab, the same for all its rooms", async () => {
  const world = new World();
  const first = world.join();
  const second = world.join({ roomId: "other" });
  await world.settle();
  assert.equal(first.deviceId, second.deviceId);

  // A duplicated tab gets a copy of the storage of the tab that lives.
  const duplicate = new World();
  for (const entry of world.storage) duplicate.storage.set(...entry);
  const copied = duplicate.join();
  assert.notEqual(copied.deviceId, first.deviceId);

  await world.fire("window", "pagehide");
  const reloaded = new World();
  for (const entry of world.storage) reloaded.storage.set(...entry);
  const again = reloaded.join();
  assert.equal(again.deviceId, first.deviceId);
  for (const room of [first, second, copied, again]) await room.leave();
});

test("a page without storage has a device all the same", async () => {
  const world = new World();
  Object.defineProperty(world.window, "sessionStorage", {
    get() {
      throw new Error("of a sandbox");
    },
  });
  const room = world.join();
  await world.settle();
  assert.match(world.of("join")[0].body.deviceId, /^[0-9a-f]{24}$/);
  await room.leave();
});
