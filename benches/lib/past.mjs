// A long history: sessions that ended weeks ago, as the rules would have written them, each room's ten members in one lifetime.
import { log } from "./throughput.mjs";

export const PAST_PER_ROOM = 10;
/** What one room leaves: a join and an end of each member. */
const EVENTS_PER_ROOM = 2 * PAST_PER_ROOM;
/** Rooms that lived at the same time, so that their events lie among each other. */
const ROOMS_AT_ONCE = 1_000;
const BEGAN_DAYS_AGO = 60;
const MS_BETWEEN_EVENTS = 50;

export const pastRoom = (room) => `past-${room}`;
export const pastUser = (room, user) => `user-${room}-${user}`;

/** Members of some rooms of the past, spread over all of it. */
export function* membersOfThePast({ rooms, every }) {
  for (let room = 0; room < rooms; room += every) {
    for (let user = 0; user < PAST_PER_ROOM; user += 1) yield { room: pastRoom(room), user: pastUser(room, user), epoch: 1 };
  }
}

/** The age that the older half has, in words of `leasehold purge`. */
export function olderHalf(rooms) {
  return `${Math.round(BEGAN_DAYS_AGO * 86_400 - (rooms * EVENTS_PER_ROOM * MS_BETWEEN_EVENTS) / 2 / 1_000)}s`;
}

/** Joining them one by one would take hours: they are written into the tables, without indexes, which are made again after it. */
export async function fillPast(cluster, database, rooms) {
  log(`  writing ${(rooms * EVENTS_PER_ROOM).toLocaleString("en-US")} events of the past`);
  await cluster.sql(
    database,
    `set synchronous_commit = off; set maintenance_work_mem = '1GB'; set max_parallel_maintenance_workers = 2;
    create temporary table made_again (step integer, statement text);
    insert into made_again
    select 1, format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
      from pg_constraint
     where conrelid in ('leasehold.membership_events'::regclass, 'leasehold.closed_generations'::regclass) and contype in ('p', 'u', 'c')
    union all
    select 0, pg_get_indexdef(i.indexrelid)
      from pg_index i
     where i.indrelid in ('leasehold.membership_events'::regclass, 'leasehold.closed_generations'::regclass)
       and not exists (select from pg_constraint c where c.conindid = i.indexrelid);
    do $$
    declare
      v_name record;
    begin
      for v_name in select conrelid::regclass as owner, conname from pg_constraint
                     where conrelid in ('leasehold.membership_events'::regclass, 'leasehold.closed_generations'::regclass)
                       and contype in ('p', 'u', 'c') loop
        execute format('alter table %s drop constraint %I', v_name.owner, v_name.conname);
      end loop;
      for v_name in select indexrelid::regclass as name from pg_index
                     where indrelid in ('leasehold.membership_events'::regclass, 'leasehold.closed_generations'::regclass) loop
        execute format('drop index %s', v_name.name);
      end loop;
    end $$;
    insert into leasehold.membership_events
           (lifetime_id, xact_id, era, room_id, generation, version, user_id, device_id, epoch, kind, reason,
            occurred_at, recorded_at, last_seen_at, member_count)
    select e.room + 1, pg_current_xact_id(), f.era, 'past-' || e.room, 1, e.version, 'user-' || e.room || '-' || (e.version - 1) % ${PAST_PER_ROOM}, '', 1,
           case when e.joins then 'joined' else 'ended' end, case when not e.joins then 'left' end,
           e.at, e.at, case when not e.joins then e.at end,
           case when e.joins then e.version else ${EVENTS_PER_ROOM} - e.version end
      from (select (n / ${ROOMS_AT_ONCE * EVENTS_PER_ROOM}) * ${ROOMS_AT_ONCE} + n % ${ROOMS_AT_ONCE} as room,
                   n % ${ROOMS_AT_ONCE * EVENTS_PER_ROOM} / ${ROOMS_AT_ONCE} + 1 as version,
                   n % ${ROOMS_AT_ONCE * EVENTS_PER_ROOM} / ${ROOMS_AT_ONCE} < ${PAST_PER_ROOM} as joins,
                   now() - interval '${BEGAN_DAYS_AGO} days' + n * interval '${MS_BETWEEN_EVENTS} milliseconds' as at
              from generate_series(0, ${rooms * EVENTS_PER_ROOM - 1}) n) e
     cross join leasehold.feed f;
    insert into leasehold.closed_generations
           (room_id, generation, lifetime_id, opened_at, closed_at, close_reason, closed_version, peak_members, era, last_xact_id)
    select j.room_id, 1, j.lifetime_id, j.occurred_at, j.occurred_at + interval '1 hour', 'left', ${EVENTS_PER_ROOM}, ${PAST_PER_ROOM},
           j.era, j.xact_id
      from leasehold.membership_events j
     where j.version = 1;
    select setval(pg_get_serial_sequence('leasehold.rooms', 'lifetime_id'), ${rooms} + 1);
    select statement from made_again order by step desc \\gexec
    `,
  );
  await cluster.sql(database, "vacuum analyze leasehold.membership_events, leasehold.closed_generations");
  await cluster.sql(database, "checkpoint");
}
