import { ours } from "../lib/contenders.mjs";
import { sleep } from "../lib/children.mjs";
import { joinInSql, membersOf, MemberFile } from "../lib/members.mjs";
import { ratioRow, valueRow } from "../lib/rows.mjs";
import { age, NO_OWN_SWEEP } from "../lib/sweeping.mjs";
import { PER_ROOM, ROOMS } from "../lib/throughput.mjs";

export const about = "100,000 members of 20,000 rooms expire at once, while 10,000 others beat";

const CONNECTIONS = 64;
const DOOMED_PER_ROOM = 5;
/** Long enough that the sweep ends while the load still runs, short enough that it is most of it. */
const SECONDS = 5;

export async function run(environment) {
  const doomedRooms = environment.quick ? 2_000 : 20_000;
  const doomed = doomedRooms * DOOMED_PER_ROOM;
  const service = ours(environment, NO_OWN_SWEEP);
  const { cluster, database } = service;
  const living = new MemberFile(membersOf({ rooms: ROOMS, perRoom: PER_ROOM }));
  const beat = (seconds) => service.measure({ script: "heartbeat", args: [living.path], connections: CONNECTIONS, seconds });
  const left = async () => Number(await cluster.sql(database, "select count(*) from leasehold.rooms where room_id like 'doomed-%'"));
  try {
    await service.migrate();
    await joinInSql(cluster, database, { rooms: ROOMS, perRoom: PER_ROOM });
    await joinInSql(cluster, database, { rooms: doomedRooms, perRoom: DOOMED_PER_ROOM, prefix: "doomed-" });
    await service.serve();
    await beat(1);
    const before = await beat(2);
    const aged = await age(cluster, database, "m.room_id like 'doomed-%'");
    if (aged !== doomed) throw new Error(`${aged} members aged instead of ${doomed}`);

    const beats = beat(SECONDS);
    await sleep(200);
    const began = performance.now();
    await service.command("sweep");
    const seconds = (performance.now() - began) / 1_000;
    const during = await beats;
    if ((await left()) > 0) throw new Error(`${await left()} rooms are left after the sweep`);
    await service.stop({ verify: true });
    return [
      valueRow({
        figure: `mass expiry of ${doomed.toLocaleString("en-US")} members in ${doomedRooms.toLocaleString("en-US")} rooms, under load`,
        value: seconds, unit: "s", below: 10,
      }),
      ratioRow({
        figure: "heartbeats of the living meanwhile",
        ours: during,
        oursName: service.name,
        baseline: before,
        baselineName: "before it",
      }),
    ];
  } finally {
    await service.stop();
    living.remove();
  }
}
