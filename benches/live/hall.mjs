// A hall whose readers only want the number: what one more member costs each of them.
import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { expect } from "../lib/http.mjs";
import { joinOverHttp, membersOf } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { percentile, stream } from "./wire.mjs";

const JOINS = 5;

export async function hall(environment) {
  const size = environment.quick ? 500 : 10_000;
  const service = ours(environment, {
    LEASEHOLD_MAX_SUBSCRIBERS_PER_ROOM: String(size),
    // Those who join while the hall is full.
    LEASEHOLD_MAX_MEMBERS_PER_ROOM: String(size + JOINS),
  });
  const sockets = [];
  try {
    await service.start();
    const members = [...membersOf({ rooms: 1, perRoom: size })];
    await joinOverHttp(service.baseUrl, members);
    const { room } = members[0];
    let bytes = 0;
    let asked = 0;
    let heard = [];
    const onText = (text) => {
      bytes += text.length;
      if (text.includes("event: count")) heard.push(performance.now() - asked);
    };
    for (let n = 0; n < size; n += 100) {
      const some = Array.from({ length: 100 }, () => stream(service.baseUrl, `/rooms/${room}/events?view=count`, onText));
      sockets.push(...(await Promise.all(some)));
    }
    await sleep(2_000);
    const delays = [];
    let total = 0;
    for (let n = 0; n < JOINS; n += 1) {
      [bytes, heard, asked] = [0, [], performance.now()];
      await expect(200, service.baseUrl, "POST", `/rooms/${room}/join`, { userId: `late-${n}` });
      const until = performance.now() + 20_000;
      while (heard.length < size && performance.now() < until) await sleep(20);
      if (heard.length < size) throw new Error(`${heard.length} of ${size} readers heard of a join`);
      delays.push(...heard);
      total += bytes;
      // Longer than the pause between two counts, so that each is read at once.
      await sleep(1_500);
    }
    const note = `${size} readers of view=count, ${size} members`;
    return [
      valueRow({ figure: "count, bytes a reader of a join", value: total / JOINS / size, unit: "B", note }),
      valueRow({ figure: "count, from the join to a reader, p50", value: percentile(delays, 0.5), unit: "ms", note }),
      valueRow({ figure: "count, from the join to a reader, p99", value: percentile(delays, 0.99), unit: "ms", note }),
    ];
  } finally {
    for (const socket of sockets) socket.destroy();
    await service.stop({ verify: true });
  }
}
