// What event streams cost while nothing happens.
import { readFileSync } from "node:fs";
import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { processCpu } from "../lib/cpu.mjs";
import { valueRow } from "../lib/rows.mjs";
import { subscribe } from "./wire.mjs";

const PER_ROOM = 10;
const SECONDS = 10;

const rssKib = (pid) => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]);

export async function idle(environment) {
  const subscribers = environment.quick ? 500 : 10_000;
  const service = ours(environment);
  const sockets = [];
  try {
    await service.start();
    const before = rssKib(service.server.pid);
    for (let n = 0; n < subscribers; n += 100) {
      const some = Array.from({ length: 100 }, (_, k) => subscribe(service.baseUrl, `room-${Math.floor((n + k) / PER_ROOM)}`, () => {}));
      sockets.push(...(await Promise.all(some)));
    }
    await sleep(2_000);
    const memory = (rssKib(service.server.pid) - before) / subscribers;
    const cpu = { service: processCpu(service.server.pid), database: service.databaseCpu() };
    await sleep(SECONDS * 1_000);
    const share = (us) => (us / (SECONDS * 1_000_000)) * 100;
    const note = `${subscribers} event streams, ${PER_ROOM} a room, one poll a second`;
    return [
      valueRow({ figure: "idle stream, memory", value: memory, unit: "KiB", note }),
      valueRow({ figure: "idle streams, service CPU", value: share(processCpu(service.server.pid) - cpu.service), unit: "%", note }),
      valueRow({ figure: "idle streams, database CPU", value: share(service.databaseCpu() - cpu.database), unit: "%", note }),
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
    await service.stop();
  }
}
