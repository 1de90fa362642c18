import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { joinRoom, watchRoom } from "../src/index.js";
import { platform } from "../src/platform.js";
import { SocketTransport } from "../src/socket.js";
import { StreamTransport } from "../src/stream.js";
import { Gateway, mintToken } from "../server/index.js";
import { eventually, KEY, SECRET, Service, skip } from "./help/service.js";

suite("with the real service", { skip }, () => {
  let service;
  let lastRoom = 0;
  before(async () => {
    service = await Service.start({
      LEASEHOLD_SERVER_KEYS: KEY,
      LEASEHOLD_JWT_HS256_SECRET: SECRET,
      LEASEHOLD_LEASE_MS: "3000",
      LEASEHOLD_HEARTBEAT_MS: "1000",
    });
  });
  after(() => service.end());

  /** How somebody is in a fresh room, or in a given one. */
  function somebody(userId, options = {}) {
    const { roomId = `room ${++lastRoom}/é`, transport, expiresInSeconds = 60, ...rest } = options;
    const token = () => mintToken({ sub: userId, roomIds: [roomId] }, SECRET, { expiresInSeconds });
    return { url: service.url, roomId, userId, token, deviceId: `of ${userId}`, transport, ...rest };
  }

  const transports = [["a stream", StreamTransport], ["a socket", SocketTransport]];
  for (const [name, transport] of transports) {
    test(`over ${name}: two see each other, their metadata and cursors, and who leaves`, async () => {
      const options = somebody("alice", { transport, metadata: { name: "Alice" } });
      const alice = joinRoom(options);
      await alice.ready;
      const bob = joinRoom(somebody("bob", { transport, roomId: options.roomId }));
      const left = [];
      bob.on("left", (event) => left.push([event.userId, event.reason]));
      await eventually("both see both", () => alice.count === 2 && bob.count === 2);
      assert.deepEqual(bob.participants.map(({ userId }) => userId), ["alice", "bob"]);
      assert.deepEqual(bob.participants[0].metadata, { name: "Alice" });
      for (let x = 0; x < 30; x++) alice.moveCursor({ x });
      await eventually("the last position", () => bob.participants[0].cursor?.x === 29);
      alice.setMetadata({ name: "Alicia" });
      await eventually("the new name", () => bob.participants[0].metadata.name === "Alicia");
      assert.equal(bob.self.userId, "bob");
      await alice.leave();
      await eventually("alice has left", () => bob.count === 1);
      assert.deepEqual(left, [["alice", "left"]]);
      await bob.leave();
    });

    test(`over ${name}: it stays for longer than a lease, over tokens that end, as one session`, async () => {
      const room = joinRoom(somebody("alice", { transport, expiresInSeconds: 3 }));
      await room.ready;
      const statuses = [];
      const gone = [];
      room.on("status", (status) => statuses.push(status));
      room.on("left", (event) => gone.push(event));
      await new Promise((resolve) => setTimeout(resolve, 7000));
      assert.equal(room.status, "connected");
      assert.equal(room.epoch, 1);
      assert.equal(room.live, true);
      assert.deepEqual([statuses, gone], [[], []]);
      await room.leave();
    });

    test(`over ${name}: removed and blocked, it stops and says so`, async () => {
      const options = somebody("alice", { transport });
      const room = joinRoom(options);
      await room.ready;
      await eventually("the stream", () => room.live);
      await service.ask("DELETE", `/rooms/${encodeURIComponent(options.roomId)}/participants/alice?blockForMs=60000`);
      await eventually("it has ended", () => room.status === "ended");
      assert.ok(["removed", "blocked"].includes(room.end.code), room.end.code);
      const again = joinRoom(options);
      await assert.rejects(again.ready, { code: "blocked" });
      assert.ok(again.end.blockedUntilMs > 0);
    });
  }

  test("a session that expired joins again; one whose device is taken over stops", async () => {
    const options = somebody("alice");
    const stopped = { ...platform, held: false, fetch: (url, init) => (stopped.held ? new Promise(() => {}) : platform.fetch(url, init)) };
    const room = joinRoom({ ...options, platform: stopped });
    await room.ready;
    stopped.held = true;
    await eventually("it is lost", () => room.status === "lost");
    await eventually("the service has seen the end", async () => (await service.participants(encodeURIComponent(options.roomId))).length === 0);
    stopped.held = false;
    await eventually("it is back", () => room.status === "connected", 15_000);
    assert.equal(room.epoch, 2);
    const other = joinRoom(options);
    await other.ready;
    await eventually("the first has stopped", () => room.status === "ended");
    assert.equal(room.end.code, "superseded");
    assert.equal(other.status, "connected");
    await other.leave();
  });

  test("the same person in two tabs is one; closing one keeps the other", async () => {
    const options = somebody("alice");
    const [first, second] = ["tab 1", "tab 2"].map((deviceId) => joinRoom({ ...options, deviceId }));
    await Promise.all([first.ready, second.ready]);
    await eventually("one person", () => first.count === 1 && second.count === 1);
    await first.leave();
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(second.count, 1);
    assert.equal(second.status, "connected");
    await second.leave();
  });

  test("who leaves before the join is answered is not there", async () => {
    const options = somebody("alice");
    for (let n = 0; n < 10; n++) await joinRoom(options).leave();
    assert.deepEqual(await service.participants(encodeURIComponent(options.roomId)), []);
  });

  test("a watcher counts without names; one who may not read is told so", async () => {
    const options = somebody("alice");
    const room = joinRoom(options);
    const count = watchRoom({ url: service.url, roomId: options.roomId, token: options.token, view: "count" });
    await eventually("one is there", () => count.count === 1);
    assert.deepEqual(count.participants, []);
    const stranger = watchRoom({ url: service.url, roomId: options.roomId, token: mintToken({ sub: "eve", roomIds: ["other"] }, SECRET) });
    await eventually("it has ended", () => stranger.end !== null);
    assert.equal(stranger.end.code, "forbidden");
    count.close();
    await room.leave();
  });

  test("a gateway renews and ends many at once, each answered in its place", async () => {
    const gateway = new Gateway({ url: service.url, key: KEY });
    const { epoch } = await service.ask("POST", "/rooms/many/join", { userId: "alice" });
    const unknown = Array.from({ length: 1200 }, (_, n) => ({ roomId: "many", userId: `nobody ${n}`, epoch: 1 }));
    const results = await gateway.heartbeats([...unknown, { roomId: "many", userId: "alice", epoch }]);
    assert.equal(results.length, 1201);
    assert.equal(results[0].code, "unknown_session");
    assert.equal(results.at(-1).status, 204);
    assert.deepEqual(await gateway.leaves([{ roomId: "many", userId: "alice", epoch }]), [{ status: 204 }]);
    assert.deepEqual(await service.participants("many"), []);
    const refused = await new Gateway({ url: service.url, key: "no key" }).leaves([{ roomId: "many", userId: "alice", epoch }]);
    assert.deepEqual([refused[0].status, refused[0].code], [401, "unauthorized"]);
  });

  test("the service is stopped for longer than the lease, and nobody flickers", async () => {
    const options = somebody("alice");
    const rooms = [joinRoom(options), joinRoom(somebody("bob", { roomId: options.roomId, transport: SocketTransport }))];
    for (const room of rooms) {
      room.gone = [];
      room.on("left", (event) => room.gone.push(event.userId));
    }
    await eventually("both see both", () => rooms.every(({ count }) => count === 2));
    await service.halt();
    await new Promise((resolve) => setTimeout(resolve, 5000));
    assert.deepEqual(rooms.map(({ status }) => status), ["lost", "lost"]);
    assert.deepEqual(rooms.map(({ count, live }) => [count, live]), [[2, false], [2, false]]);
    await service.serve();
    await eventually("both are back", () => rooms.every(({ status, live }) => status === "connected" && live), 20_000);
    assert.deepEqual(rooms.map(({ gone, epoch }) => [gone, epoch]), [[[], 1], [[], 1]]);
    for (const room of rooms) await room.leave();
  });
});
