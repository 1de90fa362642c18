// What the scenarios about expiry share: ageing members and sweeping them.

/** No sweep but the one that is measured. */
export const NO_OWN_SWEEP = { LEASEHOLD_SWEEP_INTERVAL_MS: "3600000" };

/** Lets the leases of some members end a moment ago, as if they had stopped beating. */
export function age(cluster, database, whereMembers) {
  return cluster.sql(
    database,
    `with aged as (
       update leasehold.members m
          set lease_end = leasehold.lease_clock() - 1000,
              last_seen_at = clock_timestamp() - interval '1 millisecond' - lease_ms * interval '1 millisecond'
        where ${whereMembers}
       returning room_id, lease_end
     ), room as (
       update leasehold.rooms r
          set next_end = least(r.next_end, a.first)
         from (select room_id, min(lease_end) as first from aged group by room_id) a
        where r.room_id = a.room_id
     )
     select count(*) from aged`,
  ).then(Number);
}

/** Sweeps until nothing is left, one batch and one commit a call, and says how long the database took. */
export async function sweep(cluster, database) {
  const answer = await cluster.sql(
    database,
    `create temporary table swept (members integer, rooms integer);
    select clock_timestamp() as began \\gset
    do $$
    declare
      v_batch record;
    begin
      loop
        select * into v_batch from leasehold.sweep();
        if not v_batch.ran then
          raise exception 'another sweep is under way';
        end if;
        insert into swept values (v_batch.members_expired, v_batch.rooms_closed);
        commit;
        exit when v_batch.finished;
      end loop;
    end $$;
    select extract(epoch from clock_timestamp() - :'began'), sum(members), sum(rooms) from swept;`,
  );
  const [seconds, members, rooms] = answer.split("|").map(Number);
  return { seconds, members, rooms };
}
