// A hundred rooms on one connection: how soon a cursor is there, while others move in all of them.
import { Worker } from "node:worker_threads";
import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { joinOverHttp, membersOf } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { Line, percentile, stream } from "./wire.mjs";

const ROOMS = 100;
const PER_ROOM = 5;
const HERTZ = 1;
const SECONDS = 10;

export async function manyRooms(environment) {
  const service = ours(environment);
  let socket;
  try {
    await service.start();
    const members = [...membersOf({ rooms: ROOMS, perRoom: PER_ROOM })];
    await joinOverHttp(service.baseUrl, members);
    const rooms = [...new Set(members.map(({ room }) => room))];
    const waiting = new Map();
    let [events, bytes, rest] = [0, 0, ""];
    socket = await stream(service.baseUrl, `/events?${rooms.map((room) => `room=${room}`).join("&")}`, (text) => {
      bytes += text.length;
      events += text.match(/^event: /gm)?.length ?? 0;
      rest = (rest + text).slice(-40_000);
      for (const [n, heard] of waiting) {
        if (rest.includes(`"cursor":{"n": ${n}}`) || rest.includes(`"cursor":{"n":${n}}`)) heard(performance.now());
      }
    });
    // Probed members are the service's, the others are moved by a thread.
    const probed = members.filter((_, place) => place % PER_ROOM === 0);
    const others = members.filter((_, place) => place % PER_ROOM !== 0);
    const movers = new Worker(new URL("./movers.mjs", import.meta.url), {
      workerData: { baseUrl: service.baseUrl, hertz: HERTZ, lines: 50, members: others },
    });
    const report = (message) => new Promise((resolve) => (movers.once("message", resolve), movers.postMessage(message)));
    await sleep(1_000);
    await report("go");
    [events, bytes] = [0, 0];
    const [line, delays, began] = [new Line(service.baseUrl), [], performance.now()];
    for (let n = 1; performance.now() - began < SECONDS * 1_000; n += 1) {
      const heard = new Promise((resolve) => waiting.set(n, resolve));
      await line.cursor(probed[n % probed.length], n);
      const acknowledged = performance.now();
      delays.push(Math.max(0, (await heard) - acknowledged));
      waiting.delete(n);
      await sleep(10);
    }
    const seconds = (performance.now() - began) / 1_000;
    const load = await report("stop");
    line.end();
    const note = `one connection, ${ROOMS} rooms of ${PER_ROOM}, ${Math.round(load.perSecond)} cursors/s answered`;
    return [
      valueRow({ figure: "many rooms, events on the connection", value: events / seconds, unit: "/s", note }),
      valueRow({ figure: "many rooms, bytes an event", value: bytes / events, unit: "B", note }),
      valueRow({ figure: "many rooms, from the cursor to the reader, p99", value: percentile(delays, 0.99), unit: "ms", note }),
    ];
  } finally {
    socket?.destroy();
    await service.stop({ verify: true });
  }
}
