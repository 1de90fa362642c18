import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { promisify } from "node:util";
import { reply, stale, World } from "./help/world.js";

test("a hundred rooms that ended in every state leave no timer, listener, stream or worker, and reject nothing", async () => {
  const unhandled = [];
  const collect = (error) => unhandled.push(error);
  process.on("unhandledRejection", collect);
  const world = new World();
  const workers = [];
  world.platform.Worker = class {
    constructor() {
      workers.push(this);
    }
    postMessage() {}
    terminate() {
      this.terminated = true;
    }
  };
  const states = [
    async () => {},
    async () => world.settle(),
    async () => world.pass(6000),
    async () => {
      world.answers.join = () => Promise.reject(new Error("cut"));
      await world.pass(500);
    },
    async () => {
      world.answers.heartbeat = () => stale("removed");
      await world.pass(6000);
    },
    async () => {
      world.answers.events = () => reply(403, {});
      world.answers.participants = () => reply(403, { code: "forbidden" });
      await world.pass(500);
    },
  ];
  for (let n = 0; n < 100; n++) {
    world.answers = {};
    const room = world.join();
    room.moveCursor({ n });
    await states[n % states.length]();
    await room.leave();
  }
  await world.settle();
  assert.equal(world.timers.size, 0);
  assert.equal(world.openStreams.length, 0);
  assert.ok(workers.length > 0 && workers.every(({ terminated }) => terminated));
  const types = ["visibilitychange", "resume", "focus", "online", "offline", "pageshow", "pagehide"];
  const left = types.flatMap((type) => [...getEventListeners(world.window, type), ...getEventListeners(world.document, type)]);
  // Those of the tab's device, which the tab keeps.
  assert.equal(left.length, 2);
  process.off("unhandledRejection", collect);
  assert.deepEqual(unhandled, []);
});

test("a worker's timer fires where the page's own is late, and the page's where there is no worker", async () => {
  const world = new World();
  const posted = [];
  let worker;
  world.platform.Worker = class {
    constructor() {
      worker = this;
    }
    postMessage([id, ms]) {
      posted.push({ id, ms });
    }
    terminate() {}
  };
  const room = world.join();
  await world.settle();
  const heartbeat = posted.find(({ ms }) => ms === 4500);
  world.freeze(4500);
  worker.onmessage({ data: heartbeat.id });
  await world.settle();
  assert.equal(world.of("heartbeat").length, 1);
  await world.pass(100);
  assert.equal(world.of("heartbeat").length, 1);
  await room.leave();

  const strict = new World();
  strict.platform.Worker = class {
    constructor() {
      throw new Error("refused by the content security policy");
    }
  };
  const allowed = strict.join();
  await strict.pass(6000);
  assert.equal(strict.of("heartbeat").length, 1);
  await allowed.leave();
});

test("Node ends by itself once the room is left", async () => {
  const script = `
    import { joinRoom } from "leasehold";
    globalThis.fetch = async (url) => url.endsWith("/join")
      ? Response.json({ epoch: 1, generation: 1, leaseMs: 15000, heartbeatMs: 5000 })
      : new Response(null, { status: 204 });
    const room = joinRoom({ url: "http://service", roomId: "r", userId: "u" });
    await room.ready;
    await room.leave();
    console.log("left");`;
  const options = { cwd: new URL("..", import.meta.url).pathname, timeout: 5000 };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], options);
  assert.equal(stdout, "left\n");
});
