import assert from "node:assert/strict";
import { test } from "node:test";
import { reply, tokenFor, World } from "./help/world.js";

/** A callback whose tokens hold for so long, and how often it was asked. */
function provider(seconds) {
  const given = [];
  const token = async () => {
    given.push(tokenFor(seconds, `token${given.length}`));
    return given.at(-1);
  };
  return { given, token };
}

test("one token for all requests of the moment, replaced before it ends, on the stream as well", async () => {
  const world = new World();
  const { given, token } = provider(300);
  const room = world.join({ token });
  await world.pass(239_000);
  assert.equal(given.length, 1);
  await world.pass(2000);
  assert.equal(given.length, 2);
  assert.equal(world.openStreams.length, 1);
  assert.equal(world.of("events").at(-1).token, given[1]);
  await world.pass(10_000);
  assert.equal(world.of("heartbeat").at(-1).token, given[1]);
  assert.equal(room.live, true);
  assert.deepEqual(room.heard.filter(({ type }) => type === "left"), []);
  await room.leave();
});

test("the clock of this machine may be wrong by an hour, and the token hold for 30 days", async () => {
  for (const wrong of [-3_600_000, 3_600_000]) {
    const world = new World();
    world.wall = 1_700_000_000_000 + wrong;
    const short = provider(300);
    const room = world.join({ token: short.token });
    await world.pass(200_000);
    assert.equal(short.given.length, 1);
    await room.leave();
  }
  const world = new World();
  const { given, token } = provider(30 * 24 * 3600);
  const room = world.join({ token });
  await world.pass(60_000);
  assert.equal(given.length, 1);
  assert.equal(world.streams.length, 1);
  await room.leave();
});

test("a token that ended is replaced once and the request asked again; the next refusal is final", async () => {
  const world = new World();
  const { given, token } = provider(300);
  const room = world.join({ token });
  await world.settle();
  world.answers.heartbeat = (request) => (request.token === given[0] ? reply(401, { code: "unauthorized" }) : undefined);
  await world.pass(6000);
  assert.equal(given.length, 2);
  assert.equal(room.status, "connected");
  world.answers.heartbeat = () => reply(401, { code: "unauthorized" });
  await world.pass(6000);
  assert.equal(given.length, 3);
  assert.equal(room.end.code, "unauthorized");
  const before = world.requests.length;
  await world.pass(60_000);
  assert.equal(world.requests.length, before);
});

test("a fixed token that is refused is final at once", async () => {
  const world = new World();
  world.answers.join = () => reply(401, { code: "unauthorized" });
  const room = world.join({ token: "fixed" });
  await world.pass(60_000);
  assert.equal(world.of("join").length, 1);
  assert.equal(room.end.code, "unauthorized");
});

test("a callback that rejects is a failed attempt, and asked again", async () => {
  const world = new World();
  let asked = 0;
  const room = world.join({
    token: () => {
      if (++asked <= 2) throw new Error("the backend is away");
      return "good";
    },
  });
  await world.pass(5000);
  assert.equal(room.status, "connected");
  assert.equal(room.live, true);
  assert.equal(world.of("join").at(-1).token, "good");
  await room.leave();
});

test("every way back uses the newest token", async () => {
  const world = new World();
  const { given, token } = provider(60);
  const room = world.join({ token });
  await world.pass(1000);
  for (const way of ["timer", "online", "visible", "reconnect"]) {
    for (const stream of world.openStreams) stream.cut();
    world.answers.events = () => Promise.reject(new Error("cut"));
    await world.pass(70_000);
    delete world.answers.events;
    if (way === "online") await world.fire("window", "online");
    if (way === "visible") await world.show("visible");
    if (way === "reconnect") room.reconnect();
    await world.pass(way === "timer" ? 11_000 : 20);
    assert.equal(world.openStreams.length, 1, way);
    assert.equal(world.of("events").at(-1).token, given.at(-1), way);
  }
  await room.leave();
});
