-- The lease rule, and the only code that removes for expiry or deletes a room.
--
-- Every change of membership goes: lock the rooms in order of id, then read
-- the clock, then decide. now() is frozen at the start of the transaction and
-- would be stale after a wait for a lock. p_now is null in production; tests
-- set it, and that is the whole of fake time.
--
-- Run these at READ COMMITTED, the default: each statement after the lock must
-- see what was committed before the lock was granted. Under a stricter level
-- they are refused by Postgres (40001) rather than wrong.

create function leasehold.lease_expired(p_lease_expires_at timestamptz, p_at timestamptz)
    returns boolean
    language sql immutable parallel safe
    return p_at > p_lease_expires_at;

comment on function leasehold.lease_expired(timestamptz, timestamptz) is
    'The one lease predicate: at its end the member still lives, strictly past it it is gone.';

create function leasehold.lock_rooms(
    p_room_ids text[],
    p_now timestamptz default null,
    out locked text[],
    out instant timestamptz
)
    language plpgsql
as $$
begin
    select array_agg(r.room_id)
      into locked
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
             order by room_id
               for no key update) r;
    locked := coalesce(locked, '{}');
    instant := coalesce(p_now, clock_timestamp());
end
$$;

comment on function leasehold.lock_rooms(text[], timestamptz) is
    'Internal. Locks the rooms that exist, in order of id, then reads the clock. Only what it returns is locked.';

create function leasehold.held_rooms(p_room_ids text[])
    returns boolean[]
    language plpgsql
as $$
declare
    v_free text[];
begin
    select coalesce(array_agg(r.room_id), '{}')
      into v_free
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
               for no key update skip locked) r;
    return array(
        select q.room_id <> all (v_free)
               and exists (select from leasehold.rooms r where r.room_id = q.room_id)
          from unnest(p_room_ids) with ordinality as q (room_id, ord)
         order by q.ord);
end
$$;

comment on function leasehold.held_rooms(text[]) is
    'Internal. For each of these rooms whether another transaction holds it at this moment; locks the others until the end of the transaction.';

create function leasehold.lock_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_now timestamptz
)
    returns void
    language plpgsql
as $$
declare
    v_due text[];
begin
    select array_agg(room_id)
      into v_due
      from leasehold.rooms
     where room_id = any (p_room_ids)
       and leasehold.lease_expired(next_expiry_at, p_now);
    -- All at once: two passes, each in order, could still meet a heartbeat that waits in between.
    perform
       from (select q.room_id, q.user_id, q.device_id
               from unnest(p_room_ids, p_user_ids, p_device_ids) as q (room_id, user_id, device_id)
              union
             select e.room_id, e.user_id, e.device_id
               from leasehold.members e
              where e.room_id = any (v_due)
                and leasehold.lease_expired(e.lease_expires_at, p_now)) k
       join leasehold.members m
         on m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
      order by m.room_id, m.user_id, m.device_id
        for update of m;
end
$$;

comment on function leasehold.lock_members(text[], text[], text[], timestamptz) is
    'Internal. Locks these sessions and the expired ones of their rooms, in the order in which heartbeats lock them. The caller holds the rooms'' locks.';

create function leasehold.end_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_reason text,
    p_now timestamptz
)
    returns void
    language plpgsql
as $$
declare
    v_rows tid[];
begin
    -- In the order in which heartbeats lock them, so that neither waits for the other for ever.
    select array_agg(l.ctid)
      into v_rows
      from (select m.ctid
              from unnest(p_room_ids, p_user_ids, p_device_ids) as k (room_id, user_id, device_id)
              join leasehold.members m
                on m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
             order by m.room_id, m.user_id, m.device_id
               for update of m) l;

    with gone as (
        delete from leasehold.members m
         where m.ctid = any (v_rows)
        returning m.room_id, m.user_id, m.device_id, m.epoch, m.last_seen_at,
                  case when p_reason = 'expired' then m.lease_expires_at else p_now end as occurred_at
    ), numbered as (
        select gone.*,
               row_number() over (partition by room_id order by occurred_at, user_id, device_id) as step
          from gone
    ), person as (
        -- A person is gone with the last device; this snapshot still shows what was deleted above.
        select room_id,
               count(*) as sessions,
               count(*) = (select count(*)
                             from leasehold.members m
                            where m.room_id = gone.room_id and m.user_id = gone.user_id) as is_gone
          from gone
         group by room_id, user_id
    ), room as (
        update leasehold.rooms r
           set version = r.version + t.sessions,
               member_count = r.member_count - t.persons
          from (select room_id, sum(sessions) as sessions, count(*) filter (where is_gone) as persons
                  from person
                 group by room_id) t
         where r.room_id = t.room_id
    )
    -- By key, and not from the update above: this snapshot still shows the version before it.
    insert into leasehold.membership_events
           (room_id, generation, version, user_id, device_id, epoch,
            kind, reason, occurred_at, recorded_at, last_seen_at)
    select n.room_id, r.generation, r.version + n.step, n.user_id, n.device_id, n.epoch,
           'ended', p_reason, n.occurred_at, p_now, n.last_seen_at
      from numbered n
      join leasehold.rooms r on r.room_id = n.room_id
     order by n.room_id, n.step;
end
$$;

comment on function leasehold.end_members(text[], text[], text[], text, timestamptz) is
    'Internal. Removes sessions and records their end. The caller holds their rooms'' locks and prunes afterwards.';

create function leasehold.prune_locked(
    p_room_ids text[],
    p_now timestamptz,
    out members_expired integer,
    out rooms_closed integer
)
    language plpgsql
as $$
declare
    v_rooms text[];
    v_users text[];
    v_devices text[];
begin
    -- A heartbeat under way holds its row: wait for it, then judge the lease that it left.
    select array_agg(e.room_id), array_agg(e.user_id), array_agg(e.device_id)
      into v_rooms, v_users, v_devices
      from (select room_id, user_id, device_id
              from leasehold.members
             where room_id = any (p_room_ids)
               and leasehold.lease_expired(lease_expires_at, p_now)
             order by room_id, user_id, device_id
               for update) e;
    members_expired := coalesce(cardinality(v_rooms), 0);
    if members_expired > 0 then
        perform leasehold.end_members(v_rooms, v_users, v_devices, 'expired', p_now);
    end if;

    -- Starts after the room's lock was granted, so it sees every member who joined before.
    with closed as (
        delete from leasehold.rooms r
         where r.room_id = any (p_room_ids)
           and not exists (select from leasehold.members m where m.room_id = r.room_id)
        returning r.room_id, r.generation, r.version, r.peak_members
    )
    update leasehold.room_generations g
       set closed_at = e.occurred_at,
           close_reason = e.reason,
           closed_version = e.version,
           peak_members = c.peak_members
      from closed c
      join leasehold.membership_events e
        on e.room_id = c.room_id and e.generation = c.generation and e.version = c.version
     where g.room_id = c.room_id and g.generation = c.generation;
    get diagnostics rooms_closed = row_count;

    update leasehold.rooms r
       set next_expiry_at = (select min(m.lease_expires_at)
                               from leasehold.members m
                              where m.room_id = r.room_id)
     where r.room_id = any (p_room_ids);
end
$$;

comment on function leasehold.prune_locked(text[], timestamptz) is
    'Internal. The only place that removes for expiry and the only one that deletes a room. The caller holds the rooms'' locks.';

create function leasehold.prune_due(p_locked text[], p_now timestamptz)
    returns boolean
    language plpgsql
as $$
declare
    v_due text[];
begin
    select array_agg(room_id)
      into v_due
      from leasehold.rooms
     where room_id = any (p_locked)
       and version > 0
       and (member_count = 0 or leasehold.lease_expired(next_expiry_at, p_now));
    if v_due is null then
        return false;
    end if;
    perform leasehold.prune_locked(v_due, p_now);
    return true;
end
$$;

comment on function leasehold.prune_due(text[], timestamptz) is
    'Internal. Prunes those of the locked rooms that are empty or may hold an expired member; says whether there were any.';

create function leasehold.prune_rooms(
    p_room_ids text[],
    p_now timestamptz default null,
    out members_expired integer,
    out rooms_closed integer
)
    language plpgsql
as $$
declare
    v_held record;
begin
    v_held := leasehold.lock_rooms(p_room_ids, p_now);
    select p.members_expired, p.rooms_closed
      into members_expired, rooms_closed
      from leasehold.prune_locked(v_held.locked, v_held.instant) p;
end
$$;

comment on function leasehold.prune_rooms(text[], timestamptz) is
    'Removes the expired members of these rooms, and the rooms that this leaves empty.';
