// From an acknowledged cursor to its event at a subscriber, on the same instance and on another, under load.
import { Worker } from "node:worker_threads";
import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { joinOverHttp, membersOf } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { Line, percentile, subscribe } from "./wire.mjs";

const PER_ROOM = 5;
const HERTZ = 5;
const PROBED = 20;
const LINES = 500;

/** Moves one member of a probed room again and again; answers the delays at both subscribers. */
async function probe(here, there, member, until) {
  const seen = [new Map(), new Map()];
  const sockets = await Promise.all(
    [here, there].map((baseUrl, side) =>
      subscribe(baseUrl, member.room, (text) => {
        for (const [, n] of text.matchAll(/"n": ?(\d+)/g)) {
          if (!seen[side].has(n)) seen[side].set(n, performance.now());
        }
      }),
    ),
  );
  const line = new Line(here);
  const acknowledged = new Map();
  for (let n = 1; performance.now() < until; n += 1) {
    if ((await line.cursor(member, n)) !== 204) throw new Error("a probe was refused");
    acknowledged.set(String(n), performance.now());
    await sleep(150 + Math.random() * 100);
  }
  await sleep(2_000);
  line.end();
  for (const socket of sockets) socket.destroy();
  return seen.map((times) => [...acknowledged].map(([n, at]) => (times.has(n) ? Math.max(0, times.get(n) - at) : Infinity)));
}

export async function latency(environment) {
  const rooms = environment.quick ? 50 : 1_000;
  const seconds = environment.quick ? 3 : 15;
  const one = ours(environment);
  const two = ours(environment);
  try {
    await one.start();
    await two.serve();
    const members = [...membersOf({ rooms: rooms + PROBED, perRoom: PER_ROOM })];
    await joinOverHttp(one.baseUrl, members);
    const probed = members.filter((_, place) => place % PER_ROOM === 0).slice(0, PROBED);
    const movers = new Worker(new URL("./movers.mjs", import.meta.url), {
      workerData: { baseUrl: one.baseUrl, hertz: HERTZ, lines: Math.min(LINES, rooms), members: members.filter((member) => !probed.includes(member)) },
    });
    const report = (message) => new Promise((resolve) => (movers.once("message", resolve), movers.postMessage(message)));
    // Every room has a subscriber, or nothing would watch it.
    const others = await Promise.all([...new Set(members.map(({ room }) => room))].map((room) => subscribe(one.baseUrl, room, () => {})));
    await sleep(2_000);
    await report("go");
    const until = performance.now() + seconds * 1_000;
    const delays = await Promise.all(probed.map((member) => probe(one.baseUrl, two.baseUrl, member, until)));
    const load = await report("stop");
    for (const socket of others) socket.destroy();
    if (load.failed > 0) throw new Error(`${load.failed} cursors were refused`);
    const note = `${rooms} rooms of ${PER_ROOM}, ${Math.round(load.perSecond)} of ${members.length * HERTZ} cursors/s`;
    return ["same instance", "other instance"].flatMap((where, side) => {
      const values = delays.flatMap((both) => both[side]);
      const bounds = { below: side === 0 ? 30 : 60 };
      return [
        valueRow({ figure: `event, ${where}, p50`, value: percentile(values, 0.5), unit: "ms", note }),
        valueRow({ figure: `event, ${where}, p99`, value: percentile(values, 0.99), unit: "ms", note, ...bounds }),
      ];
    });
  } finally {
    await two.stopServing();
    await one.stop({ verify: true });
  }
}
