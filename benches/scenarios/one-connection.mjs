import { coalescingOff, ours } from "../lib/contenders.mjs";
import { joinOverHttp, membersOf, MemberFile } from "../lib/members.mjs";
import { ratioRow } from "../lib/rows.mjs";
import { alternate, PER_ROOM, ROOMS, stopEach } from "../lib/throughput.mjs";

export const about = "one connection and nothing else: what coalescing adds to the latency of a heartbeat";

export async function run(environment) {
  const { rounds, seconds } = environment;
  const contenders = [ours(environment), coalescingOff(environment)];
  const members = [...membersOf({ rooms: ROOMS, perRoom: PER_ROOM })];
  const file = new MemberFile(members);
  const beat = (contender) => contender.measure({ script: "heartbeat", args: [file.path], connections: 1, seconds });
  try {
    for (const contender of contenders) {
      await contender.start();
      await joinOverHttp(contender.baseUrl, members);
      await contender.cluster.sql(contender.database, "vacuum analyze");
      await beat(contender);
    }
    const measured = await alternate(contenders, rounds, beat);
    const [on, off] = contenders;
    return [
      ratioRow({
        figure: "one connection, p50",
        ours: measured.get(on),
        oursName: on.name,
        baseline: measured.get(off),
        baselineName: off.name,
        field: "p50Ms",
        most: 1.1,
      }),
    ];
  } finally {
    await stopEach(contenders);
    file.remove();
  }
}
