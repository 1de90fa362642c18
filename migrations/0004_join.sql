-- Joining: many members in one call, one clock reading, one commit.
--
-- The requests take effect in the order of the arrays. One statement decides
-- for all of them, each person at most once: where a person asks again, the
-- batch is cut there and the rest goes through a second statement. A row that does not exist cannot be locked, so the room is
-- put there first: two first joins of a room meet on its primary key, and a
-- join that waits for a deletion starts the next generation.

create function leasehold.open_rooms(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_now timestamptz default null
)
    returns timestamptz
    language plpgsql
as $$
declare
    v_now timestamptz;
begin
    loop
        -- A conflict locks the existing row, although the update never happens.
        insert into leasehold.rooms as r
               (room_id, generation, version, opened_at, next_expiry_at, member_count, peak_members)
        select distinct id collate "C" as id, 1, 0, '-infinity'::timestamptz, 'infinity'::timestamptz, 0, 0
          from unnest(p_room_ids) as id
         order by id
            on conflict (room_id) do update set version = r.version where false;
        exit when v_now is not null;

        v_now := coalesce(p_now, clock_timestamp());
        perform leasehold.lock_members(p_room_ids, p_user_ids, p_device_ids, v_now);
        -- Pruning may have deleted a room: it is opened again, under the lock that is still held.
        exit when not leasehold.prune_due(p_room_ids, v_now);
    end loop;
    return v_now;
end
$$;

comment on function leasehold.open_rooms(text[], text[], text[], timestamptz) is
    'Internal. Locks the rooms in order of id, those that do not exist as well (version 0), reads the clock, locks the sessions to be replaced and prunes what is due.';

create function leasehold.join_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_lease_ms integer[],
    p_metadata jsonb[],
    p_cursors jsonb[],
    p_if_present text[],
    p_max_members integer default null,
    p_max_devices integer default null,
    p_max_rooms integer default null,
    p_now timestamptz default null
)
    returns table (
        ord integer,
        outcome text,
        epoch bigint,
        generation bigint,
        lease_expires_at timestamptz,
        as_of timestamptz
    )
    language plpgsql
as $$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_start integer := 1;
    v_end integer := cardinality(p_room_ids);
    v_again record;
    v_no_room text[] := '{}';
    v_unopened text[];
begin
    v_now := leasehold.open_rooms(p_room_ids, p_user_ids, p_device_ids, p_now);

    for v_again in
        select a.ord, a.previous
          from (select q.ord::integer as ord,
                       lag(q.ord::integer) over (partition by q.room_id, q.user_id order by q.ord) as previous
                  from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                 union all
                select v_end + 1, v_end) a
         where a.previous is not null
         order by a.ord
    loop
        continue when v_again.previous < v_start;
        exit when v_start = 1 and v_again.ord > v_end;
        return query
        select v_start - 1 + j.ord, j.outcome, j.epoch, j.generation, j.lease_expires_at, j.as_of
          from leasehold.join_members(
                   p_room_ids[v_start:v_again.ord - 1], p_user_ids[v_start:v_again.ord - 1],
                   p_device_ids[v_start:v_again.ord - 1], p_lease_ms[v_start:v_again.ord - 1],
                   p_metadata[v_start:v_again.ord - 1], p_cursors[v_start:v_again.ord - 1],
                   p_if_present[v_start:v_again.ord - 1],
                   p_max_members, p_max_devices, p_max_rooms, v_now) j;
        v_start := v_again.ord;
    end loop;
    if v_start > 1 then
        return;
    end if;

    if p_max_rooms is not null then
        select coalesce(array_agg(n.room_id), '{}')
          into v_no_room
          from (select q.room_id, row_number() over (order by min(q.ord)) as rank
                  from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                  join leasehold.rooms r on r.room_id = q.room_id and r.version = 0
                 where not exists (select from leasehold.blocks b
                                    where b.room_id = q.room_id and b.user_id = q.user_id
                                      and b.blocked_until > v_now)
                 group by q.room_id) n
         where n.rank > p_max_rooms - (select count(*) from leasehold.rooms where version > 0);
    end if;

    return query
    with known as (
        -- Every look-up is by key, so a batch costs what its requests cost.
        select q.ord::integer as ord, q.room_id, q.user_id, q.device_id, q.if_present,
               r.version, r.member_count,
               case when r.version > 0 then r.generation
                    else 1 + greatest(
                        (select max(g.generation) from leasehold.room_generations g where g.room_id = q.room_id),
                        (select f.generation from leasehold.generation_floors f where f.room_id = q.room_id),
                        0)
               end as generation,
               1 + greatest(
                   (select max(e.epoch) from leasehold.membership_events e
                     where e.room_id = q.room_id and e.user_id = q.user_id),
                   (select f.epoch from leasehold.epoch_floors f
                     where f.room_id = q.room_id and f.user_id = q.user_id),
                   0) as epoch,
               s.sessions, s.arrival, s.held_epoch, s.held_last_seen_at,
               case when exists (select from leasehold.blocks b
                                  where b.room_id = q.room_id and b.user_id = q.user_id
                                    and b.blocked_until > v_now) then 'blocked'
                    when q.room_id = any (v_no_room) then 'too_many_rooms'
                    when q.if_present = 'reject' and s.sessions > 0 then 'already_present'
                    when s.held_epoch is null and s.sessions >= p_max_devices then 'too_many_devices'
               end as refusal
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_if_present)
               with ordinality as q (room_id, user_id, device_id, if_present, ord)
          join leasehold.rooms r on r.room_id = q.room_id
         cross join lateral (
               select count(*) as sessions,
                      min(m.arrival) as arrival,
                      min(m.epoch) filter (where m.device_id = q.device_id) as held_epoch,
                      min(m.last_seen_at) filter (where m.device_id = q.device_id) as held_last_seen_at
                 from leasehold.members m
                where m.room_id = q.room_id and m.user_id = q.user_id) s
    ), decided as (
        -- New persons take the free seats in the order in which they ask.
        select k.*,
               coalesce(k.refusal,
                        case when k.sessions = 0
                                  and k.member_count
                                      + count(*) filter (where k.sessions = 0 and k.refusal is null)
                                            over (partition by k.room_id order by k.ord)
                                      > p_max_members then 'room_full' end,
                        'joined') as decision
          from known k
    ), placed as (
        -- The end of the replaced session comes right before the join that replaces it.
        select d.*,
               v_now + p_lease_ms[d.ord] * interval '1 millisecond' as lease_expires_at,
               d.version + count(*) over in_order + count(d.held_epoch) over in_order as joined_version
          from decided d
         where d.decision = 'joined'
        window in_order as (partition by d.room_id order by d.ord)
    ), events as (
        insert into leasehold.membership_events
               (room_id, generation, version, user_id, device_id, epoch,
                kind, reason, occurred_at, recorded_at, last_seen_at)
        select p.room_id, p.generation, p.joined_version - 1, p.user_id, p.device_id, p.held_epoch,
               'ended', 'superseded', v_now, v_now, p.held_last_seen_at
          from placed p
         where p.held_epoch is not null
        union all
        select p.room_id, p.generation, p.joined_version, p.user_id, p.device_id, p.epoch,
               'joined', null, v_now, v_now, null
          from placed p
         order by 1, 3
    ), arrivals as (
        insert into leasehold.members
               (room_id, user_id, device_id, epoch, arrival,
                joined_at, last_seen_at, lease_expires_at, lease_ms, cursor, metadata)
        select p.room_id, p.user_id, p.device_id, p.epoch, coalesce(p.arrival, p.joined_version),
               v_now, v_now, p.lease_expires_at, p_lease_ms[p.ord], p_cursors[p.ord], p_metadata[p.ord]
          from placed p
         where p.held_epoch is null
    ), returns as (
        update leasehold.members m
           set epoch = p.epoch,
               joined_at = v_now,
               last_seen_at = v_now,
               lease_expires_at = p.lease_expires_at,
               disconnected_at = null,
               lease_ms = p_lease_ms[p.ord],
               cursor = p_cursors[p.ord],
               metadata = p_metadata[p.ord]
          from placed p
         where p.held_epoch is not null
           and m.room_id = p.room_id and m.user_id = p.user_id and m.device_id = p.device_id
    ), change as (
        select p.room_id, p.generation, p.version = 0 as opens,
               max(p.joined_version) as version,
               (count(*) filter (where p.sessions = 0))::integer as arrived,
               min(p.lease_expires_at) as first_expiry_at
          from placed p
         group by p.room_id, p.generation, p.version
    ), rooms as (
        update leasehold.rooms r
           set generation = c.generation,
               version = c.version,
               opened_at = case when c.opens then v_now else r.opened_at end,
               next_expiry_at = least(r.next_expiry_at, c.first_expiry_at),
               member_count = r.member_count + c.arrived,
               peak_members = greatest(r.peak_members, r.member_count + c.arrived)
          from change c
         where r.room_id = c.room_id
    ), generations as (
        insert into leasehold.room_generations (room_id, generation, opened_at)
        select c.room_id, c.generation, v_now from change c where c.opens
    )
    select p.ord, p.decision, p.epoch, p.generation, p.lease_expires_at, v_now
      from placed p
    union all
    select d.ord, d.decision, null, null, null, v_now
      from decided d
     where d.decision <> 'joined';

    -- A room in which every request was refused was never opened.
    select array_agg(room_id)
      into v_unopened
      from leasehold.rooms
     where room_id = any (p_room_ids) and version = 0;
    if v_unopened is not null then
        perform leasehold.prune_locked(v_unopened, v_now);
    end if;
end
$$;

comment on function leasehold.join_members(text[], text[], text[], integer[], jsonb[], jsonb[], text[], integer, integer, integer, timestamptz) is
    'Joins members, one per position of the arrays and in that order. Outcomes: joined, already_present, blocked, room_full, too_many_devices, too_many_rooms; only joined has an epoch.';

create function leasehold.join_member(
    p_room_id text,
    p_user_id text,
    p_device_id text default '',
    p_lease_ms integer default 15000,
    p_metadata jsonb default null,
    p_cursor jsonb default null,
    p_if_present text default 'replace',
    p_now timestamptz default null
)
    returns table (
        outcome text,
        epoch bigint,
        generation bigint,
        lease_expires_at timestamptz,
        as_of timestamptz
    )
    language sql
as $$
    select j.outcome, j.epoch, j.generation, j.lease_expires_at, j.as_of
      from leasehold.join_members(
               array[p_room_id], array[p_user_id], array[p_device_id], array[p_lease_ms],
               array[p_metadata], array[p_cursor], array[p_if_present], p_now => p_now) j
$$;

comment on function leasehold.join_member(text, text, text, integer, jsonb, jsonb, text, timestamptz) is
    'Joins one member, in the caller''s transaction. Outcomes as of join_members.';
