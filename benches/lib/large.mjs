// The largest set of members, filled once a run and copied by the scenarios that want it.
import { Service } from "./contenders.mjs";
import { joinInSql } from "./members.mjs";
import { log, PER_ROOM } from "./throughput.mjs";

let filled;

export const largeRooms = ({ quick }) => (quick ? 5_000 : 50_000);

/** A migrated database with `largeRooms` rooms of ten, to copy from. */
export async function largeDatabase(environment) {
  if (filled === undefined) {
    const rooms = largeRooms(environment);
    log(`  joining ${(rooms * PER_ROOM).toLocaleString("en-US")} members`);
    const source = new Service(environment, "large", "large");
    await source.migrate();
    await joinInSql(source.cluster, source.database, { rooms, perRoom: PER_ROOM });
    filled = source;
  }
  return filled;
}
