import { ours } from "../lib/contenders.mjs";
import { joinInSql } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { age, NO_OWN_SWEEP, sweep } from "../lib/sweeping.mjs";
import { log } from "../lib/throughput.mjs";

export const about = "a sweep of 300,000 members, each in a room of their own, and how long it takes to count as many";

export async function run(environment) {
  const rooms = environment.quick ? 10_000 : 300_000;
  const service = ours(environment, NO_OWN_SWEEP);
  const { cluster, database } = service;
  try {
    await service.migrate();
    log(`  joining ${rooms.toLocaleString("en-US")} members`);
    await joinInSql(cluster, database, { rooms, perRoom: 1 });
    const counted = Number(await cluster.sql(database, `select clock_timestamp() as began \\gset
      select from leasehold.census() \\g /dev/null
      select extract(epoch from clock_timestamp() - :'began')`));
    const aged = await age(cluster, database, "true");
    const swept = await sweep(cluster, database);
    if (aged !== rooms || swept.members !== rooms || swept.rooms !== rooms) throw new Error(`${swept.members} members and ${swept.rooms} rooms swept instead of ${rooms}`);
    await service.stop({ verify: true });
    const figure = rooms.toLocaleString("en-US");
    return [
      valueRow({ figure: `census of ${figure} members in as many rooms`, value: counted, unit: "s" }),
      valueRow({ figure: `sweep of ${figure} members in as many rooms`, value: swept.seconds, unit: "s", below: 10 }),
    ];
  } finally {
    await service.stop();
  }
}
