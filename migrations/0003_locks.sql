-- What may be asked, and the order of locks.
--
-- Every change of membership goes: lock, then read the clock, then decide, in
-- statements of their own. now() is frozen at the start of the transaction and
-- would be stale after a wait for a lock. p_now is null in production; tests
-- set it, and that is the whole of fake time.
--
-- The order of locks, for everything in this schema:
-- 0. the users, where somebody is put out of all rooms: a join shares them, so
--    that none is in flight then;
-- 1. the rows of rooms, in order of id; one that does not exist yet is put
--    there (version 0), so that two first joins meet on its key;
-- 2. then the rows of sessions in order of room, user and device: all that the
--    call needs in one pass, and those that have expired with them.
-- Whoever waits for a lock waits in this order, so nobody waits in a circle.
-- Heartbeats, prune_rooms and the sweep wait for nobody: they pass over what is
-- held, and need no order. Ids are compared by their bytes (collate "C"),
-- whatever the language of the database.
--
-- Run these at READ COMMITTED, the default: each statement after the lock must
-- see what was committed before the lock was granted. Under a stricter level
-- they are refused by Postgres (40001) rather than wrong.

create function leasehold.session_status(
    p_last_seen_at timestamptz,
    p_heartbeat_ms integer,
    p_disconnected_at timestamptz,
    p_at timestamptz
)
    returns text
    language sql stable parallel safe
    return case when p_disconnected_at is not null
                     or p_at > p_last_seen_at + p_heartbeat_ms * interval '1.5 milliseconds' then 'reconnecting'
                when p_last_seen_at is not null then 'connected' end;

comment on function leasehold.session_status(timestamptz, integer, timestamptz, timestamptz) is
    'Internal. What a live session''s heartbeats say of its connection: connected, or reconnecting where it was not heard of for more than one and a half of its intervals, or its transport was reported lost.';

create function leasehold.check_requests(p_room_ids text[], p_user_ids text[], p_device_ids text[])
    returns integer
    language plpgsql immutable
as $$
declare
    v_requests integer := cardinality(p_room_ids);
begin
    if (cardinality(p_user_ids) = v_requests and cardinality(p_device_ids) = v_requests) is not true then
        raise exception 'the arrays of rooms, users and devices have different lengths'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass one of each per request.';
    end if;
    if coalesce(array_position(p_room_ids, null), array_position(p_user_ids, null),
                array_position(p_device_ids, null)) is not null then
        raise exception 'a room, user or device is null'
            using errcode = 'invalid_parameter_value',
                  hint = 'The one unnamed device is the empty string.';
    end if;
    return v_requests;
end
$$;

comment on function leasehold.check_requests(text[], text[], text[]) is
    'Internal. How many requests these arrays make. Errors: 22023 where they do not fit together.';

create function leasehold.check_sessions(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[])
    returns integer
    language plpgsql immutable
as $$
declare
    v_requests integer := leasehold.check_requests(p_room_ids, p_user_ids, p_device_ids);
begin
    if (cardinality(p_epochs) = v_requests and array_position(p_epochs, null) is null) is not true then
        raise exception 'there is not one epoch per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the epoch that the session''s join answered.';
    end if;
    return v_requests;
end
$$;

comment on function leasehold.check_sessions(text[], text[], bigint[], text[]) is
    'Internal. How many requests these arrays make. Errors: 22023 where they do not fit together.';

create function leasehold.check_lengths(p_requests integer, p_lease_ms integer[], p_heartbeat_ms integer[])
    returns void
    language plpgsql immutable
as $$
begin
    if (cardinality(p_lease_ms) = p_requests and 1 <= all (p_lease_ms)) is not true then
        raise exception 'there is not one lease of at least 1 ms per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the length in milliseconds, for instance 15000.';
    end if;
    if (cardinality(p_heartbeat_ms) in (0, p_requests) and 1 <= all (array_remove(p_heartbeat_ms, null))) is not true then
        raise exception 'a heartbeat interval is less than 1 ms, or there is not one per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the interval in milliseconds, or null for a third of the lease.';
    end if;
end
$$;

comment on function leasehold.check_lengths(integer, integer[], integer[]) is
    'Internal. Errors: 22023 where a lease is null or shorter than a millisecond, an interval is, or there is not one per request.';

create function leasehold.check_options(
    p_requests integer,
    p_if_present text[],
    p_metadata jsonb[],
    p_cursors jsonb[],
    p_info jsonb[],
    p_join_ids text[],
    p_capacities integer[]
)
    returns void
    language plpgsql immutable
as $$
begin
    if not (array_remove(p_if_present, null) <@ array['replace', 'reject']) then
        raise exception 'if_present is neither replace nor reject'
            using errcode = 'invalid_parameter_value',
                  hint = 'replace takes the place of the session on the same device; reject changes nothing where the user is there.';
    end if;
    if not (1 <= all (array_remove(p_capacities, null))) then
        raise exception 'a capacity is less than 1'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass how many members the room may have, or null for no limit.';
    end if;
    if (cardinality(p_if_present) in (0, p_requests) and cardinality(p_metadata) in (0, p_requests)
        and cardinality(p_cursors) in (0, p_requests) and cardinality(p_info) in (0, p_requests)
        and cardinality(p_join_ids) in (0, p_requests) and cardinality(p_capacities) in (0, p_requests)) is not true then
        raise exception 'the arrays of options have different lengths'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass one of each per request, or an empty array for the default.';
    end if;
end
$$;

comment on function leasehold.check_options(integer, text[], jsonb[], jsonb[], jsonb[], text[], integer[]) is
    'Internal. Errors: 22023 for a word that is not one, a capacity that is none, or arrays that do not fit together.';

create function leasehold.user_lock(p_user_id text)
    returns integer
    language sql immutable parallel safe
    return hashtext(p_user_id) & 511;

comment on function leasehold.user_lock(text) is
    'Internal. Which of the locks of all users stands for this one.';

create function leasehold.user_locks(p_user_ids text[])
    returns table (class integer, object integer)
    language sql immutable
as $$
    -- 512 locks for all users: a join of thousands must not fill the lock table. The first number is
    -- this project's alone.
    select distinct hashtext('leasehold users'), leasehold.user_lock(id)
      from unnest(p_user_ids) as id
     order by 2
$$;

comment on function leasehold.user_locks(text[]) is
    'Internal. The advisory locks that stand for these users, in order; several users share one.';

create function leasehold.share_users(p_user_ids text[])
    returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(l.class, l.object) from leasehold.user_locks(p_user_ids) l;
end
$$;

comment on function leasehold.share_users(text[]) is
    'Internal. From here to the end of the transaction lock_user waits for these users; waits for it. Errors: 55P03, 40P01.';

create function leasehold.lock_user(p_user_id text)
    returns void
    language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(l.class, l.object) from leasehold.user_locks(array[p_user_id]) l;
end
$$;

comment on function leasehold.lock_user(text) is
    'Internal. Returns when no join of this user is in flight, and lets none begin to the end of the transaction. Errors: 55P03, 40P01.';

create function leasehold.lock_rooms(p_room_ids text[])
    returns text[]
    language plpgsql
as $$
declare
    v_rooms text[];
begin
    select array_agg(r.room_id)
      into v_rooms
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
             order by room_id
               for no key update) r;
    return coalesce(v_rooms, '{}');
end
$$;

comment on function leasehold.lock_rooms(text[]) is
    'Internal. Locks those of these rooms that exist, in order of id, and answers them: only they are locked. Waits for whoever holds one. Errors: 55P03, 40P01.';

create function leasehold.lock_free_rooms(p_room_ids text[])
    returns text[]
    language plpgsql
as $$
declare
    v_rooms text[];
begin
    select array_agg(r.room_id)
      into v_rooms
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
               for no key update skip locked) r;
    return coalesce(v_rooms, '{}');
end
$$;

comment on function leasehold.lock_free_rooms(text[]) is
    'Internal. Locks those of these rooms that exist and that no other transaction holds, and answers them. Never waits.';

create function leasehold.open_rooms(p_room_ids text[])
    returns void
    language plpgsql
as $$
begin
    -- A conflict locks the existing row, although the update never happens.
    insert into leasehold.rooms as r
           (room_id, generation, version, opened_at, next_end, member_count, peak_members)
    select distinct id collate "C" as id, 1, 0, '-infinity'::timestamptz, 9223372036854775807, 0, 0
      from unnest(p_room_ids) as id
     order by id
        on conflict (room_id) do update set version = r.version where false;
end
$$;

comment on function leasehold.open_rooms(text[]) is
    'Internal. Locks these rooms in order of id, those that do not exist as well: they are there then, with version 0. Waits for whoever holds one. Errors: 55P03, 40P01.';

create function leasehold.lock_sessions(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_lease_now bigint default null
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
       and leasehold.lease_expired(next_end, p_lease_now);
    -- All at once: two passes, each in order, could still meet somebody who waits in between.
    perform
       from (select q.room_id collate "C" as room_id, q.user_id collate "C" as user_id, q.device_id collate "C" as device_id
               from unnest(p_room_ids, p_user_ids, p_device_ids) as q (room_id, user_id, device_id)
              union
             select e.room_id, e.user_id, e.device_id
               from leasehold.members e
              where e.room_id = any (v_due)
                and leasehold.lease_expired(e.lease_end, p_lease_now)
              order by 1, 2, 3) k
      -- Each by its key: a plan that was made while the table was empty would go through it for each.
      cross join lateral (
            select from leasehold.members m
             where m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
               for update) locked;
end
$$;

comment on function leasehold.lock_sessions(text[], text[], text[], bigint) is
    'Internal. Locks these sessions, and with p_lease_now the expired ones of their rooms, in order of room, user and device. Waits for whoever holds one. Who means to change membership holds the rooms already. Errors: 55P03, 40P01.';

create function leasehold.lock_live_sessions(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_now timestamptz,
    out now timestamptz,
    out lease_from bigint,
    out places tid[],
    out live integer[],
    out locked integer[]
)
    language plpgsql
as $$
declare
    v_first_end bigint;
    v_lease_now bigint;
begin
    select array_agg(l.ctid), array_agg(l.ord::integer), min(l.lease_end)
      into places, locked, v_first_end
      from (select m.ctid, q.ord, m.lease_end
              from unnest(p_room_ids) with ordinality as q (room_id, ord)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = p_user_ids[q.ord]
               and m.device_id = p_device_ids[q.ord] and m.epoch = p_epochs[q.ord]
               for no key update of m skip locked) l;
    select c.now, c.lease_now, c.lease_from into now, v_lease_now, lease_from from leasehold.clocks(p_now) c;
    live := locked;
    if leasehold.lease_expired(v_first_end, v_lease_now) then
        -- A locked row does not move.
        select array_agg(l.place), array_agg(l.ord)
          into places, live
          from unnest(places, locked) as l (place, ord)
          join leasehold.members m on m.ctid = l.place
         where not leasehold.lease_expired(m.lease_end, v_lease_now);
    end if;
end
$$;

comment on function leasehold.lock_live_sessions(text[], text[], bigint[], text[], timestamptz) is
    'Internal. Locks those of these sessions whose epoch is current and which no other transaction holds, then reads the clock. Answers the places of those that live and which requests they are, and which requests are locked. Never waits.';

create function leasehold.await_opening(p_room_id text)
    returns void
    language plpgsql
as $$
begin
    insert into leasehold.rooms
           (room_id, generation, version, opened_at, next_end, member_count, peak_members)
    values (p_room_id, 1, 0, '-infinity', 9223372036854775807, 0, 0);
    raise sqlstate 'LH000';
exception
    -- It was only tried: what was inserted is gone again.
    when unique_violation or sqlstate 'LH000' then
        null;
end
$$;

comment on function leasehold.await_opening(text) is
    'Internal. Returns when no other transaction is about to open this room, which does not exist; leaves nothing behind. Errors: 55P03, 40P01.';

create function leasehold.await_room(p_room_id text, p_now timestamptz default null)
    returns void
    language plpgsql
as $$
begin
    if leasehold.lock_rooms(array[p_room_id]) = '{}' then
        perform leasehold.await_opening(p_room_id);
    end if;
    perform leasehold.lock_sessions(
                array[p_room_id], array[null::text], array[null::text], leasehold.lease_clock(p_now));
end
$$;

comment on function leasehold.await_room(text, timestamptz) is
    'Internal. Returns when no other transaction holds the room, or a session in it that has expired; changes nothing. Locks both to the end of the transaction. Errors: 55P03, 40P01.';

create function leasehold.await_session(p_room_id text, p_user_id text, p_device_id text)
    returns void
    language plpgsql
as $$
begin
    perform leasehold.lock_sessions(array[p_room_id], array[p_user_id], array[p_device_id]);
end
$$;

comment on function leasehold.await_session(text, text, text) is
    'Internal. Returns when no other transaction holds the session; changes nothing. Locks it to the end of the transaction. Errors: 55P03, 40P01.';

create function leasehold.held_rows(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_joins boolean,
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
#variable_conflict use_column
declare
    v_users integer[] := '{}';
    v_lease_now bigint := leasehold.lease_clock(p_now);
    v_free text[] := leasehold.lock_free_rooms(p_room_ids);
    v_held text[];
    v_room text;
    v_patience text := current_setting('lock_timeout');
    v_places tid[];
begin
    if p_joins then
        v_users := array(select l.object from leasehold.user_locks(p_user_ids) l
                          where not pg_try_advisory_xact_lock_shared(l.class, l.object));
    end if;
    select coalesce(array_agg(room_id), '{}')
      into v_held
      from leasehold.rooms
     where room_id = any (p_room_ids) and room_id <> all (v_free);

    -- What another transaction is about to insert cannot be seen, only run into.
    for v_room in
        select distinct q.room_id from unnest(p_room_ids) as q (room_id) where q.room_id <> all (v_free || v_held)
    loop
        begin
            perform set_config('lock_timeout', '1ms', true);
            perform leasehold.await_opening(v_room);
            perform set_config('lock_timeout', v_patience, true);
        exception
            when lock_not_available then
                v_held := v_held || v_room;
        end;
    end loop;

    select coalesce(array_agg(l.ctid), '{}')
      into v_places
      from (select m.ctid
              from leasehold.members m
             where m.room_id = any (v_free)
               and (leasehold.lease_expired(m.lease_end, v_lease_now)
                    or (m.room_id, m.user_id, m.device_id) in (
                        select * from unnest(p_room_ids, p_user_ids, p_device_ids)))
               for update of m skip locked) l;
    return array(
        select case when leasehold.user_lock(q.user_id) = any (v_users) then 'user'
                    when q.room_id = any (v_held)
                         or exists (select from leasehold.members m
                                     where m.room_id = q.room_id and m.ctid <> all (v_places)
                                       and leasehold.lease_expired(m.lease_end, v_lease_now)) then 'room'
                    when exists (select from leasehold.members m
                                  where m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
                                    and m.ctid <> all (v_places)) then 'session' end
          from unnest(p_room_ids, p_user_ids, p_device_ids) with ordinality as q (room_id, user_id, device_id, ord)
         order by q.ord);
end
$$;

comment on function leasehold.held_rows(text[], text[], text[], boolean, timestamptz) is
    'Internal. What a join or leave would wait for at this moment, for each request: user where another transaction puts this one, or one that shares its lock, out of all rooms and joins wait for that; room where another transaction holds the room, opens it, or holds a session in it that has expired; session where one holds the request''s own; null where nothing is held. Locks the others to the end of the transaction; waits a millisecond per room that does not exist.';

create function leasehold.slot_of(p_room_id text)
    returns integer
    language plpgsql immutable parallel safe
as $$
declare
    v_hash bytea := sha256(convert_to(p_room_id, 'UTF8'));
begin
    -- Its first three hexadecimal digits, which a proxy can cut out.
    return (get_byte(v_hash, 0) << 4) | (get_byte(v_hash, 1) >> 4);
end
$$;

comment on function leasehold.slot_of(text) is
    'Which of 4,096 slots a room is of: the first twelve bits of the SHA-256 of its id in UTF-8.';

create function leasehold.is_misdirected(p_room_id text)
    returns boolean
    language sql stable
as $$
    select not c.owns_all
           and not exists (select from leasehold.slots s
                            where s.slot = leasehold.slot_of(p_room_id) and s.state = 'owned')
      from leasehold.cell c
$$;

comment on function leasehold.is_misdirected(text) is
    'Whether another database has this room, or is about to: then nothing is to be said of it here. Locks nothing.';

create function leasehold.misdirected_rooms(p_room_ids text[])
    returns text[]
    language plpgsql
as $$
begin
    -- A snapshot from before the lock may not know of a fence.
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from leasehold.cell for share;
    end if;
    if (select c.owns_all from leasehold.cell c) then
        return '{}';
    end if;
    return array(select distinct q.room_id
                   from unnest(p_room_ids) as q (room_id)
                  -- By key: as a join it would go through all slots with plans that are kept.
                  where (select s.state from leasehold.slots s
                          where s.slot = leasehold.slot_of(q.room_id)) is distinct from 'owned');
end
$$;

comment on function leasehold.misdirected_rooms(text[]) is
    'Internal. Those of these rooms that this database may not open. The caller has locked them with open_rooms, so a fence that this does not see waits for its transaction; see leasehold.room_writers. Errors: 40001 at a stricter level than read committed, where a fence came between.';
