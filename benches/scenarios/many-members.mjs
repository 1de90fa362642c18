import { largeDatabase, largeRooms } from "../lib/large.mjs";
import { joinInSql, membersOf, MemberFile } from "../lib/members.mjs";
import { Service } from "../lib/contenders.mjs";
import { ratioRow } from "../lib/rows.mjs";
import { alternate, log, PER_ROOM, stopEach } from "../lib/throughput.mjs";

export const about = "heartbeats with 500,000 members against 10,000";

const CONNECTIONS = 64;

export async function run(environment) {
  const { rounds, seconds } = environment;
  const sized = (id, rooms) =>
    Object.assign(new Service(environment, id, `${(rooms * PER_ROOM).toLocaleString("en-US")} members`), { rooms });
  const many = sized("many", largeRooms(environment));
  const few = sized("few", 1_000);
  const contenders = [many, few];
  try {
    for (const contender of contenders) {
      const size = { rooms: contender.rooms, perRoom: PER_ROOM };
      if (contender === many) {
        await many.copyFrom(await largeDatabase(environment));
      } else {
        await few.migrate();
        await joinInSql(few.cluster, few.database, size);
      }
      contender.file = new MemberFile(membersOf(size));
      await contender.serve();
    }
    const beat = (contender, round) =>
      contender.measure({ script: "heartbeat", args: [contender.file.path, round / rounds], connections: CONNECTIONS, seconds });
    for (const contender of contenders) await beat(contender, 0);
    log(`  ${many.name} against ${few.name}`);
    const measured = await alternate(contenders, rounds, beat);
    return [
      ratioRow({
        figure: `heartbeats, ${many.name}`,
        ours: measured.get(many),
        oursName: "Leasehold",
        baseline: measured.get(few),
        baselineName: few.name,
        least: 0.8,
      }),
    ];
  } finally {
    await stopEach(contenders);
    for (const contender of contenders) contender.file?.remove();
  }
}
