import { ours } from "../lib/contenders.mjs";
import { joinInSql } from "../lib/members.mjs";
import { pgbench } from "../lib/pgbench.mjs";
import { valueRow } from "../lib/rows.mjs";
import { PER_ROOM } from "../lib/throughput.mjs";

export const about = "millions of beats straight through the SQL function: HOT updates and the size of the table";

const PER_BATCH = 500;
const CLIENTS = 2;

// The arrays are made beforehand, each batch of members from all over the table.
const batchTable = (batches) => `
  create table batches as
  select batch,
         array_agg(room_id) as rooms, array_agg(user_id) as users, array_agg(device_id) as devices, array_agg(epoch) as epochs
    from (select *, (row_number() over (order by hashtext(room_id || user_id))) % ${batches} as batch from leasehold.members) m
   group by batch;
  alter table batches add primary key (batch);
  vacuum analyze batches;`;

// Divides by zero, and so fails the run, where a beat was refused. Each client has batches of its own: what
// another one holds would be passed over.
const beatScript = (batches) => `\\set batch random(0, ${Math.floor(batches / CLIENTS) - 1}) * ${CLIENTS} + :client_id
select 1 / ('renewed' = all (leasehold.heartbeat_members(rooms, users, epochs, devices)))::integer
  from batches
 where batch = :batch;
`;

export async function run(environment) {
  const members = environment.quick ? 20_000 : 100_000;
  const beats = environment.quick ? 200_000 : 5_000_000;
  const service = ours(environment);
  const { cluster, database } = service;
  const sizeOf = async () => Number(await cluster.sql(database, "select pg_table_size('leasehold.members')"));
  try {
    await service.migrate();
    await joinInSql(cluster, database, { rooms: members / PER_ROOM, perRoom: PER_ROOM });
    await cluster.sql(database, batchTable(members / PER_BATCH));
    const sizeBefore = await sizeOf();
    const counters = "from pg_stat_user_tables where schemaname = 'leasehold' and relname = 'members'";
    const before = (await cluster.sql(database, `select n_tup_upd, n_tup_hot_upd ${counters}`)).split("|").map(Number);
    const { perSecond } = await pgbench(cluster, {
      database, script: beatScript(members / PER_BATCH), clients: CLIENTS, transactions: beats / PER_BATCH,
    });
    const after = (await cluster.sql(database, `select n_tup_upd, n_tup_hot_upd ${counters}`)).split("|").map(Number);
    const [updated, hot] = after.map((count, index) => count - before[index]);
    if (updated < beats) throw new Error(`only ${updated} of ${beats} beats reached the table`);
    const millions = `${beats / 1_000_000} million beats of ${members.toLocaleString("en-US")} members`;
    return [
      valueRow({ figure: "HOT updates", value: (100 * hot) / updated, unit: "%", note: `${Math.round(perSecond * PER_BATCH).toLocaleString("en-US")} beats/s in SQL`, least: 95 }),
      valueRow({ figure: "table size against its first", value: (await sizeOf()) / sizeBefore, unit: "×", note: millions, most: 1.5 }),
    ];
  } finally {
    await service.stop();
  }
}
