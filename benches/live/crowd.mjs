// One room, a thousand who watch and fifty who move.
import { Worker } from "node:worker_threads";
import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { expect } from "../lib/http.mjs";
import { joinOverHttp, membersOf } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { percentile, subscribe } from "./wire.mjs";

const MOVERS = 50;
const HERTZ = 5;
const SECONDS = 10;

export async function crowd(environment) {
  const subscribers = environment.quick ? 100 : 1_000;
  // The rule of src/stream/rate.rs.
  const most = 1_000 / (4 + 0.2 * (subscribers + MOVERS));
  const service = ours(environment);
  const sockets = [];
  try {
    await service.start();
    const members = [...membersOf({ rooms: 1, perRoom: MOVERS })];
    await joinOverHttp(service.baseUrl, members);
    const { room } = members[0];
    const ids = new Set();
    for (let n = 0; n < subscribers; n += 1) {
      // One of them counts batches by their ids; the others only read.
      const onText = n === 0 ? (text) => [...text.matchAll(/^id: (.*)$/gm)].forEach(([, id]) => ids.add(id)) : () => {};
      sockets.push(await subscribe(service.baseUrl, room, onText));
    }
    const movers = new Worker(new URL("./movers.mjs", import.meta.url), {
      workerData: { baseUrl: service.baseUrl, hertz: HERTZ, lines: MOVERS, members },
    });
    const report = (message) => new Promise((resolve) => (movers.once("message", resolve), movers.postMessage(message)));
    await sleep(1_000);
    await report("go");
    ids.clear();
    const answers = [];
    const until = performance.now() + SECONDS * 1_000;
    while (performance.now() < until) {
      const asked = performance.now();
      await expect(200, service.baseUrl, "GET", "/rooms/elsewhere/participants");
      answers.push(performance.now() - asked);
      await sleep(20);
    }
    const batches = ids.size / SECONDS;
    const load = await report("stop");
    const note = `${subscribers} streams, ${MOVERS} cursors at ${HERTZ} Hz, ${Math.round(load.perSecond)} cursors/s answered`;
    return [
      valueRow({ figure: "one room, batches", value: batches, unit: "/s", note, most: Math.ceil(most * 10) / 10 }),
      valueRow({ figure: "one room, list of another, p99", value: percentile(answers, 0.99), unit: "ms", note, below: 100 }),
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
    await service.stop({ verify: true });
  }
}
