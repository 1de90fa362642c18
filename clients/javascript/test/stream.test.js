import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStream } from "../src/event-stream.js";
import { FakeStream, person, reply, World } from "./help/world.js";

test("events are read whole wherever the bytes are cut", () => {
  const text = ': hi\r\nretry: 1500\r\n\r\nevent: joined\r\nid: 1\r\ndata: {"name":"Zoë 🎈"}\r\n\r\ndata: a\ndata:b\n\nevent: left\rdata: c\r\rdata: open';
  const bytes = new TextEncoder().encode(text);
  const expected = [["joined", '{"name":"Zoë 🎈"}'], ["message", "a\nb"], ["left", "c"]];
  for (let size = 1; size <= bytes.length; size++) {
    const events = [];
    const stream = new EventStream((type, data) => events.push([type, data]));
    for (let at = 0; at < bytes.length; at += size) {
      // As some browsers reuse what they read into.
      const chunk = bytes.slice(at, at + size);
      stream.push(chunk);
      chunk.fill(0);
    }
    assert.deepEqual(events, expected, `in chunks of ${size}`);
    assert.equal(stream.retryMs, 1500);
  }
});

test("rooms that come in the same moment share one stream, and so does one that comes later", async () => {
  const world = new World();
  const token = () => "same";
  const rooms = ["a", "b", "c"].map((roomId) => world.join({ roomId, token }));
  await world.pass(100);
  assert.equal(world.streams.length, 1);
  assert.deepEqual(world.of("events")[0].rooms, ["a", "b", "c"]);
  rooms.push(world.join({ roomId: "d", token }));
  await world.pass(100);
  assert.equal(world.openStreams.length, 1);
  world.openStreams[0].tell("joined", { roomId: "b", generation: 1, version: 2, participant: person("bob") });
  await world.settle();
  assert.deepEqual(rooms.map((room) => room.count), [0, 1, 0, 0]);
  await rooms[0].leave();
  await world.pass(100);
  assert.deepEqual(world.of("events").at(-1).rooms, ["b", "c", "d"]);
  for (const room of rooms) await room.leave();
  assert.equal(world.openStreams.length, 0);
});

test("a hundred and first room has a connection of its own", async () => {
  const world = new World();
  const rooms = Array.from({ length: 101 }, (_, n) => world.watch({ roomId: `r${n}` }));
  await world.pass(100);
  assert.deepEqual(world.of("events").map(({ rooms }) => rooms.length), [100, 1]);
  for (const room of rooms) room.close();
  assert.equal(world.timers.size, 0);
});

test("switched on and off fast there is one stream, or none", async () => {
  const world = new World();
  for (let n = 0; n < 20; n++) world.watch().close();
  const watch = world.watch();
  await world.pass(100);
  assert.equal(world.openStreams.length, 1);
  assert.equal(world.of("events").length, 1);
  watch.close();
  await world.pass(100);
  assert.equal(world.openStreams.length, 0);
});

test("one of several rooms that may not be read stops alone; answers left open are given up", async () => {
  const world = new World();
  const bodies = [];
  world.answers.events = (request) => {
    if (!request.rooms.includes("secret")) return undefined;
    const never = new FakeStream(request.signal);
    bodies.push(never);
    return new Response(never.response.body, { status: 403 });
  };
  world.answers.participants = ({ path }) => (path.includes("secret") ? reply(403, { code: "forbidden", error: "no" }) : undefined);
  const open = world.watch({ roomId: "open" });
  const secret = world.watch({ roomId: "secret" });
  await world.pass(1000);
  assert.equal(open.live, true);
  assert.equal(secret.end.code, "forbidden");
  assert.ok(bodies.length >= 1 && bodies.every((body) => body.closed));
  const before = world.requests.length;
  await world.pass(10_000);
  assert.equal(world.requests.length, before);
  open.close();
});

test("a full service is asked again, after what it asks to wait", async () => {
  const world = new World();
  world.answers.events = () => (world.of("events").length <= 2 ? reply(503, { code: "too_many_subscribers" }, { "retry-after": "3" }) : undefined);
  const watch = world.watch();
  await world.pass(10_000);
  const at = world.of("events").map((request) => request.at);
  assert.equal(at.length, 3);
  assert.ok(at[1] - at[0] >= 3000 && at[2] - at[1] >= 3000);
  assert.equal(watch.live, true);
  watch.close();
});

test("streams that are taken and cut at once come back ever slower", async () => {
  const world = new World();
  world.randomness = 1;
  world.answers.events = (request) => {
    const stream = new FakeStream(request.signal);
    stream.cut();
    return stream.response;
  };
  const watch = world.watch();
  await world.pass(60_000);
  assert.ok(world.of("events").length < 15, `${world.of("events").length}`);
  watch.close();
});

test("over a blip nobody vanishes, and what was missed shows as differences", async () => {
  const world = new World();
  let people = [person("alice"), person("bob"), person("carol", { arrivedAtMs: 2 })];
  world.answers.events = (request) => world.stream(request, (roomId) => ({ roomId, generation: 1, version: 9, participants: people }));
  const watch = world.watch();
  await world.pass(100);
  const [alice] = watch.participants;
  const list = watch.participants;
  watch.heard.length = 0;
  people = [person("alice", { lastSeenMs: 99 }), person("carol", { arrivedAtMs: 2, cursor: { x: 1 } }), person("dave", { arrivedAtMs: 3 })];
  world.streams[0].cut();
  await world.settle();
  assert.equal(watch.live, false);
  assert.equal(watch.participants, list);
  await world.pass(1000);
  assert.equal(watch.live, true);
  const told = watch.heard.filter(({ type }) => !["live", "participants"].includes(type));
  assert.deepEqual(told.map(({ type, detail }) => [type, detail.userId ?? detail.participant.userId]), [
    ["left", "bob"],
    ["updated", "carol"],
    ["joined", "dave"],
  ]);
  assert.ok(watch.heard.filter(({ type }) => type === "participants").every(({ detail }) => detail.length === 3));
  // Whom nothing happened to is the same entry.
  assert.equal(watch.participants[0], alice);
  watch.close();
});

test("whoever looks later at a room that is followed already sees everybody", async () => {
  const world = new World();
  world.answers.events = (request) => world.stream(request, (roomId) => ({ roomId, generation: 3, version: 9, participants: [person("bob")] }));
  const first = world.watch();
  await world.pass(100);
  const second = world.watch();
  await world.pass(100);
  assert.equal(world.streams.length, 1);
  assert.deepEqual(second.participants.map(({ userId }) => userId), ["bob"]);
  assert.equal(second.live, true);
  first.close();
  world.openStreams[0].tell("joined", { roomId: "r", generation: 3, version: 10, participant: person("carol") });
  await world.settle();
  assert.equal(second.count, 2);
  assert.equal(first.count, 1);
  second.close();
});

test("a stream on which nothing comes is replaced, also after a sleep; one that has news is not", async () => {
  const world = new World();
  const watch = world.watch();
  await world.pass(100);
  world.streams[0].silent = true;
  await world.pass(50_000);
  assert.equal(world.streams.length, 2);
  await world.pass(300_000);
  assert.equal(world.streams.length, 2);
  world.streams[1].silent = true;
  world.freeze(60_000);
  await world.fire("window", "online");
  await world.pass(3000);
  assert.equal(world.streams.length, 3);
  assert.equal(world.openStreams.length, 1);
  watch.close();
});

test("a stream that the database's silence makes old says so", async () => {
  const world = new World();
  const watch = world.watch();
  await world.pass(100);
  world.streams[0].tell("stale", { roomId: "r", asOfMs: 1 });
  await world.settle();
  assert.equal(watch.live, false);
  world.streams[0].tell("snapshot", { roomId: "r", generation: 1, version: 1, participants: [] });
  await world.settle();
  assert.equal(watch.live, true);
  watch.close();
});

test("who is put out hears it from the stream at once", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(100);
  world.streams[0].tell("removed", { roomId: "r", userId: "alice", code: "blocked" });
  await world.settle();
  assert.equal(room.end.code, "blocked");
  await world.pass(60_000);
  assert.equal(world.of("heartbeat").length, 0);
  assert.equal(world.timers.size, 0);
});

test("one's own end on the stream is looked into at once", async () => {
  const world = new World();
  const room = world.join();
  await world.pass(100);
  world.answers.heartbeat = () => reply(409, { code: "room_closed" });
  world.streams[0].tell("room_closed", { roomId: "r", generation: 1, version: 2, reason: "room_closed" });
  await world.settle();
  assert.equal(room.end.code, "room_closed");
});

test("with view=count there is a number and no names", async () => {
  const world = new World();
  world.answers.events = (request) => {
    const stream = new FakeStream(request.signal);
    world.streams.push(stream);
    stream.tell("count", { roomId: "r", generation: 2, version: 3, memberCount: 4 });
    return stream.response;
  };
  const watch = world.watch({ view: "count" });
  await world.pass(100);
  assert.match(world.of("events")[0].url, /view=count/);
  assert.equal(watch.count, 4);
  world.streams[0].tell("count", { roomId: "r", generation: null, version: null, memberCount: 0 });
  await world.settle();
  assert.equal(watch.count, 0);
  watch.close();
});
