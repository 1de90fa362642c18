import { sleep } from "../lib/children.mjs";
import { ours } from "../lib/contenders.mjs";
import { joinOverHttp, membersOf } from "../lib/members.mjs";
import { valueRow } from "../lib/rows.mjs";
import { PER_ROOM } from "../lib/throughput.mjs";

export const about = "what a service without clients asks of its database, counted in the server's log";

const ROOMS = 100;
const SETTLE_MS = 2_000;
const SECONDS = 10;

export async function run(environment) {
  const service = ours(environment);
  const { cluster, database } = service;
  // Every statement is logged for this database alone, begin and commit included.
  const statements = () => (cluster.log().match(new RegExp(`^${database}: LOG:  (statement|execute)`, "gm")) ?? []).length;
  try {
    await service.migrate();
    await cluster.sql("postgres", `alter database ${database} set log_statement = 'all'`);
    await service.serve();
    await joinOverHttp(service.baseUrl, [...membersOf({ rooms: ROOMS, perRoom: PER_ROOM })]);
    if (statements() === 0) throw new Error("the server's log has no statement of the service");
    await sleep(SETTLE_MS);
    const before = statements();
    await sleep(SECONDS * 1_000);
    return [
      valueRow({
        figure: "idle service", value: (statements() - before) / SECONDS, unit: "statements/s",
        note: `${ROOMS * PER_ROOM} members, no clients`, below: 2,
      }),
    ];
  } finally {
    await service.stop();
  }
}
