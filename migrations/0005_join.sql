-- Joining: many members in one call, one reading of the clock, one commit.
--
-- The requests take effect in the order of the arrays. One statement decides
-- for as many as it can, each person once: the batch is cut into rounds before
-- a person who asks again.

create type leasehold.placement as (
    ord                   integer,
    room_id               text collate "C",
    user_id               text collate "C",
    device_id             text collate "C",
    lifetime_id           bigint,
    generation            bigint,
    epoch                 bigint,
    version               bigint,
    xact_id               xid8,
    arrival               bigint,
    arrived_at            timestamptz,
    member_count          integer,
    opens                 boolean,
    arrives               boolean,
    replaced_device_id    text collate "C",
    replaced_epoch        bigint,
    replaced_last_seen_at timestamptz
);

comment on type leasehold.placement is
    'Internal. What a join that is granted writes.';

create function leasehold.blocks_of(p_room_id text, p_user_id text, p_at timestamptz)
    returns setof leasehold.blocks
    language sql stable
as $$
    select *
      from leasehold.blocks b
     where b.room_id in (p_room_id, '') and b.user_id in (p_user_id, '') and b.blocked_until > p_at
$$;

comment on function leasehold.blocks_of(text, text, timestamptz) is
    'Internal. What keeps a user out of a room at this instant: a block there, one everywhere, and one of the room, which is for those only who are not in it.';

create function leasehold.join_asked(p_room_id text, p_user_id text, p_device_id text, p_join_id text)
    returns table (epoch bigint)
    language sql stable
as $$
    select e.epoch
      from leasehold.membership_events e
     where e.user_id = p_user_id and e.room_id = p_room_id
       -- Few rows by the key, so that joins need no index more.
       and e.epoch > (select max(l.epoch) from leasehold.membership_events l
                       where l.user_id = p_user_id and l.room_id = p_room_id) - 32
       and e.kind = 'joined' and e.join_id = p_join_id and e.device_id = p_device_id
     order by e.epoch desc
     limit 1
$$;

comment on function leasehold.join_asked(text, text, text, text) is
    'Internal. Which of the last 32 joins of a user in a room was called this on this device; no row where none was.';

create function leasehold.open_and_prune(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_now timestamptz,
    out now timestamptz,
    out lease_now bigint,
    out lease_from bigint,
    out members_expired integer
)
    language plpgsql
as $$
begin
    perform leasehold.open_rooms(p_room_ids);
    select c.now, c.lease_now, c.lease_from
      into now, lease_now, lease_from
      from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(p_room_ids, p_user_ids, p_device_ids, lease_now);
    members_expired := leasehold.prune_due(p_room_ids, now, lease_now);
    if members_expired is not null then
        -- Pruning may have deleted a room: it is opened again, under the lock that is still held.
        perform leasehold.open_rooms(p_room_ids);
    end if;
    members_expired := coalesce(members_expired, 0);
end
$$;

comment on function leasehold.open_and_prune(text[], text[], text[], timestamptz) is
    'Internal. Locks these rooms in order of id, those that do not exist as well (version 0), reads the clock, locks these sessions and prunes what is due. Waits for whoever holds one. Errors: 55P03, 40P01.';

create function leasehold.write_placements(
    p_placed leasehold.placement[],
    p_lease_ms integer[],
    p_heartbeat_ms integer[],
    p_metadata jsonb[],
    p_cursors jsonb[],
    p_info jsonb[],
    p_join_ids text[],
    p_now timestamptz,
    p_lease_from bigint
)
    returns void
    language plpgsql
as $$
begin
    -- Rows are found by their keys and changed by their places, which nobody moves while they are
    -- locked: a plan that was made while the tables were empty would go through them otherwise.

    -- The end of the replaced session comes right before the join that replaces it.
    insert into leasehold.membership_events
           (lifetime_id, room_id, generation, version, user_id, device_id, epoch,
            kind, reason, occurred_at, recorded_at, last_seen_at, member_count, join_id, info, xact_id, era)
    select p.lifetime_id, p.room_id, p.generation, p.version - 1, p.user_id, p.replaced_device_id, p.replaced_epoch,
           'ended', 'superseded', p_now, p_now, p.replaced_last_seen_at, p.member_count, null, null,
           p.xact_id, f.era
      from unnest(p_placed) p
      join leasehold.feed f on f.only_row
     where p.replaced_epoch is not null
    union all
    select p.lifetime_id, p.room_id, p.generation, p.version, p.user_id, p.device_id, p.epoch,
           'joined', null, p_now, p_now, null, p.member_count, p_join_ids[p.ord], p_info[p.ord],
           p.xact_id, f.era
      from unnest(p_placed) p
      join leasehold.feed f on f.only_row
     order by 2, 4;

    if exists (select from unnest(p_placed) p where p.replaced_device_id <> p.device_id) then
        delete from leasehold.members m
         using unnest(p_placed) p
         where m.room_id = p.room_id and m.user_id = p.user_id and m.device_id = p.replaced_device_id
           and p.replaced_device_id <> p.device_id;
    end if;

    update leasehold.members m
       set epoch = p.epoch,
           joined_at = p_now,
           last_seen_at = p_now,
           lease_end = p_lease_from + p_lease_ms[p.ord] * 1000::bigint,
           disconnected_at = null,
           lease_ms = p_lease_ms[p.ord],
           heartbeat_ms = coalesce(p_heartbeat_ms[p.ord], greatest(p_lease_ms[p.ord] / 3, 1)),
           cursor = p_cursors[p.ord],
           metadata = p_metadata[p.ord],
           info = p_info[p.ord]
      from (select p.*, held.place
              from unnest(p_placed) p
             cross join lateral (
                   select h.ctid as place from leasehold.members h
                    where h.room_id = p.room_id and h.user_id = p.user_id and h.device_id = p.device_id
                   offset 0) held
             where p.replaced_device_id = p.device_id) p
     where m.ctid = p.place;

    insert into leasehold.members
           (room_id, user_id, device_id, epoch, arrival, arrived_at, joined_at, last_seen_at,
            lease_end, lease_ms, heartbeat_ms, cursor, metadata, info)
    select p.room_id, p.user_id, p.device_id, p.epoch, p.arrival, p.arrived_at, p_now, p_now,
           p_lease_from + p_lease_ms[p.ord] * 1000::bigint, p_lease_ms[p.ord],
           coalesce(p_heartbeat_ms[p.ord], greatest(p_lease_ms[p.ord] / 3, 1)),
           p_cursors[p.ord], p_metadata[p.ord], p_info[p.ord]
      from unnest(p_placed) p
     where p.replaced_device_id is distinct from p.device_id;

    update leasehold.rooms r
       set generation = c.generation,
           version = c.version,
           last_xact_id = c.xact_id,
           opened_at = case when c.opens then p_now else r.opened_at end,
           next_end = least(r.next_end, c.first_end),
           member_count = r.member_count + c.arrived,
           peak_members = greatest(r.peak_members, r.member_count + c.arrived)
      from (select held.place, p.generation, p.xact_id, p.opens, max(p.version) as version,
                   (count(*) filter (where p.arrives))::integer as arrived,
                   min(p_lease_from + p_lease_ms[p.ord] * 1000::bigint) as first_end
              from unnest(p_placed) p
             cross join lateral (
                   select h.ctid as place from leasehold.rooms h where h.room_id = p.room_id offset 0) held
             group by held.place, p.generation, p.xact_id, p.opens) c
     where r.ctid = c.place;
end
$$;

comment on function leasehold.write_placements(leasehold.placement[], integer[], integer[], jsonb[], jsonb[], jsonb[], text[], timestamptz, bigint) is
    'Internal. Writes the joins of one round. The caller holds the locks of their rooms and of the sessions that they replace.';

create function leasehold.join_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_lease_ms integer[],
    p_heartbeat_ms integer[] default '{}',
    p_metadata jsonb[] default '{}',
    p_cursors jsonb[] default '{}',
    p_if_present text[] default '{}',
    p_info jsonb[] default '{}',
    p_join_ids text[] default '{}',
    p_capacities integer[] default '{}',
    p_max_members integer default null,
    p_max_devices integer default null,
    p_max_rooms integer default null,
    p_now timestamptz default null,
    out outcomes text[],
    out epochs bigint[],
    out generations bigint[],
    out arrived_at timestamptz[],
    out lease_expires_at timestamptz[],
    out device_ids text[],
    out blocked_until timestamptz[],
    out as_of timestamptz,
    out members_expired integer
)
    language plpgsql
as $$
#variable_conflict use_column
declare
    v_requests integer := leasehold.check_requests(p_room_ids, p_user_ids, p_device_ids);
    v_lease_now bigint;
    v_lease_from bigint;
    v_again record;
    v_starts integer[] := '{1}';
    v_misdirected text[];
    v_full text[] := '{}';
    v_lost leasehold.members[];
    v_round record;
    v_unopened text[];
begin
    perform leasehold.check_lengths(v_requests, p_lease_ms, p_heartbeat_ms);
    perform leasehold.check_options(
                v_requests, p_if_present, p_metadata, p_cursors, p_info, p_join_ids, p_capacities);
    perform leasehold.share_users(p_user_ids);
    select o.now, o.lease_now, o.lease_from, o.members_expired
      into as_of, v_lease_now, v_lease_from, members_expired
      from leasehold.open_and_prune(p_room_ids, p_user_ids, p_device_ids, p_now) o;
    v_misdirected := leasehold.misdirected_rooms(p_room_ids);
    outcomes := '{}';
    epochs := '{}';
    generations := '{}';
    arrived_at := '{}';
    lease_expires_at := '{}';
    device_ids := '{}';
    blocked_until := '{}';

    -- A room whose capacity changes from one request to the next is judged anew as well.
    for v_again in
        select a.ord, a.previous
          from (select q.ord::integer as ord,
                       greatest(lag(q.ord::integer) over (partition by q.room_id, q.user_id order by q.ord),
                                case when lag(q.capacity) over in_room is distinct from q.capacity
                                     then lag(q.ord::integer) over in_room end) as previous
                  from unnest(p_room_ids, p_user_ids, p_capacities)
                       with ordinality as q (room_id, user_id, capacity, ord)
                window in_room as (partition by q.room_id order by q.ord)) a
         where a.previous is not null
         order by a.ord
    loop
        if v_again.previous >= v_starts[cardinality(v_starts)] then
            v_starts := v_starts || v_again.ord;
        end if;
    end loop;

    if p_max_rooms is not null then
        select coalesce(array_agg(n.room_id), '{}')
          into v_full
          from (select q.room_id, row_number() over (order by min(q.ord)) as rank
                  from unnest(p_room_ids, p_user_ids, p_device_ids, p_join_ids)
                       with ordinality as q (room_id, user_id, device_id, join_id, ord)
                  join leasehold.rooms r on r.room_id = q.room_id and r.version = 0
                 where q.room_id <> all (v_misdirected)
                   and not exists (select from leasehold.blocks_of(q.room_id, q.user_id, as_of))
                   and (q.join_id is null or not exists (
                           select from leasehold.join_asked(q.room_id, q.user_id, q.device_id, q.join_id)))
                 group by q.room_id) n
         where n.rank > p_max_rooms - (select count(*) from leasehold.rooms where version > 0);
    end if;

    for v_n in 1 .. cardinality(v_starts) loop
        v_lost := null;
        loop
            with known as (
                -- Every look-up is by key, so a batch costs what its requests cost.
                select q.ord::integer as ord, q.room_id, q.user_id, q.device_id, q.capacity,
                       r.lifetime_id, r.version, r.member_count,
                       case when r.version > 0 then r.generation
                            else 1 + greatest(
                                past.generation,
                                (select f.generation from leasehold.generation_floors f where f.room_id = q.room_id),
                                0)
                       end as generation,
                       greatest(r.last_xact_id, past.xact_id, pg_current_xact_id()) as xact_id,
                       1 + last.epoch as epoch,
                       s.sessions, s.arrival, s.arrived_at,
                       case when s.own_epoch is not null then q.device_id else way.device_id end as held_device_id,
                       coalesce(s.own_epoch, way.epoch) as held_epoch,
                       coalesce(s.own_last_seen_at, way.last_seen_at) as held_last_seen_at,
                       s.own_epoch, s.own_lease_ms, s.other,
                       b.blocked_until, asked.epoch as asked_epoch,
                       case when q.room_id = any (v_misdirected) then 'misdirected'
                            when b.blocked_until is not null then 'blocked'
                            when asked.epoch = s.own_epoch then 'asked_again'
                            when asked.epoch is not null
                                 then leasehold.stale_reason(q.room_id, q.user_id, asked.epoch, q.device_id)
                            when q.room_id = any (v_full) then 'too_many_rooms'
                            when r.locked and s.sessions = 0 then 'room_locked'
                            when q.if_present = 'reject' and s.other is not null then 'already_present'
                            when s.own_epoch is null and way.epoch is null
                                 and s.sessions >= p_max_devices then 'too_many_devices'
                       end as refusal
                  from unnest(p_room_ids, p_user_ids, p_device_ids, p_if_present, p_join_ids, p_capacities)
                       with ordinality as q (room_id, user_id, device_id, if_present, join_id, capacity, ord)
                 cross join lateral (select * from leasehold.rooms r where r.room_id = q.room_id offset 0) r
                  left join lateral (
                       -- The lifetime before: this one stands behind its last change in the feed.
                       select c.generation,
                              case when c.era = (select f.era from leasehold.feed f where f.only_row) then c.last_xact_id end as xact_id
                         from leasehold.closed_generations c
                        where c.room_id = q.room_id
                        order by c.generation desc
                        limit 1) past on r.version = 0
                 cross join lateral (
                       select coalesce(
                           greatest(
                               (select max(e.epoch) from leasehold.membership_events e
                                 where e.room_id = q.room_id and e.user_id = q.user_id),
                               (select f.epoch from leasehold.epoch_floors f
                                 where f.room_id = q.room_id and f.user_id = q.user_id)),
                           -- Of who is new here, or was erased; hashed only where somebody was.
                           (select max(f.epoch) from leasehold.erased_floors f
                             where (select exists (select from leasehold.erased_floors))
                               and f.person in (select p.person from leasehold.erased_persons(q.room_id, q.user_id) p)),
                           0) as epoch) last
                 cross join lateral (
                       select count(*) as sessions,
                              min(m.arrival) as arrival,
                              min(m.arrived_at) as arrived_at,
                              min(m.epoch) filter (where m.device_id = q.device_id) as own_epoch,
                              min(m.last_seen_at) filter (where m.device_id = q.device_id) as own_last_seen_at,
                              min(m.lease_ms) filter (where m.device_id = q.device_id) as own_lease_ms,
                              max(m.epoch) filter (where m.device_id <> q.device_id) as other
                         from leasehold.members m
                        where m.room_id = q.room_id and m.user_id = q.user_id) s
                  left join lateral (
                       select max(b.blocked_until) as blocked_until
                         from leasehold.blocks_of(q.room_id, q.user_id, as_of) b
                        where b.user_id <> '' or s.sessions = 0) b on true
                  left join lateral leasehold.join_asked(q.room_id, q.user_id, q.device_id, q.join_id) asked
                    on q.join_id is not null
                  left join unnest(v_lost) way
                    on way.room_id = q.room_id and way.user_id = q.user_id
                   and s.own_epoch is null and s.sessions >= p_max_devices
                 where q.ord between v_starts[v_n] and coalesce(v_starts[v_n + 1] - 1, v_requests)
            ), decided as (
                -- New members take the free seats in the order in which they ask.
                select k.*,
                       coalesce(k.refusal,
                                case when k.sessions = 0
                                          and k.member_count
                                              + count(*) filter (where k.sessions = 0 and k.refusal is null)
                                                    over (partition by k.room_id order by k.ord)
                                              > least(p_max_members, k.capacity) then 'room_full' end) as word
                  from known k
            ), numbered as (
                select d.*,
                       d.member_count + count(*) filter (where d.word is null and d.sessions = 0) over in_order as member_count_after,
                       d.version + count(*) filter (where d.word is null) over in_order
                                 + count(d.held_epoch) filter (where d.word is null) over in_order as joined_version
                  from decided d
                window in_order as (partition by d.room_id order by d.ord)
            )
            select array_agg((n.ord, n.room_id, n.user_id, n.device_id, n.lifetime_id, n.generation, n.epoch, n.joined_version, n.xact_id,
                              coalesce(n.arrival, n.joined_version), coalesce(n.arrived_at, as_of),
                              n.member_count_after, n.version = 0, n.sessions = 0,
                              n.held_device_id, n.held_epoch, n.held_last_seen_at)::leasehold.placement)
                       filter (where n.word is null) as placed,
                   array_agg(n.ord) filter (where n.word = 'asked_again') as asked_again,
                   array_agg(coalesce(nullif(n.word, 'asked_again'), 'joined')) as outcomes,
                   array_agg(case when n.word is null then n.epoch
                                  when n.word = 'asked_again' then n.own_epoch
                                  when n.word = 'already_present' then n.other end) as epochs,
                   array_agg(case when n.word is null or n.word in ('asked_again', 'already_present')
                                  then n.generation end) as generations,
                   array_agg(case when n.word is null or n.word in ('asked_again', 'already_present')
                                  then coalesce(n.arrived_at, as_of) end) as arrived_at,
                   array_agg(case when n.word is null then as_of + p_lease_ms[n.ord] * interval '1 millisecond'
                                  when n.word = 'asked_again' then as_of + n.own_lease_ms * interval '1 millisecond'
                                  when n.word = 'already_present' then (
                                       select as_of + (m.lease_end - v_lease_now) * interval '1 microsecond'
                                         from leasehold.members m
                                        where m.room_id = n.room_id and m.user_id = n.user_id and m.epoch = n.other) end) as lease_ends,
                   array_agg(case when n.word is null or n.word = 'asked_again' then n.device_id
                                  when n.word = 'already_present' then (
                                       select m.device_id from leasehold.members m
                                        where m.room_id = n.room_id and m.user_id = n.user_id and m.epoch = n.other) end) as device_ids,
                   array_agg(case when n.word = 'blocked' then n.blocked_until end) as blocked_until
              into v_round
              from (select * from numbered order by ord) n;
            exit when v_lost is not null or 'too_many_devices' <> all (v_round.outcomes);

            -- Of a member with all devices taken the one gives way that was lost first. One that
            -- is held is being renewed at this moment, so it is not lost.
            select coalesce(array_agg(l.m), '{}')
              into v_lost
              from (select distinct on (c.room_id, c.user_id) c.m
                      from (select m, m.room_id, m.user_id, m.epoch,
                                   least(m.disconnected_at, m.last_seen_at + m.heartbeat_ms * interval '1.5 milliseconds') as lost_at
                              from leasehold.members m
                             where (m.room_id, m.user_id) in (
                                       select q.room_id, q.user_id
                                         from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                                        where v_round.outcomes[q.ord::integer - v_starts[v_n] + 1] = 'too_many_devices')
                               and leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, as_of) = 'reconnecting'
                               for update skip locked) c
                     order by c.room_id, c.user_id, c.lost_at, c.epoch) l;
            exit when v_lost = '{}';
        end loop;

        if v_round.placed is not null then
            perform leasehold.write_placements(
                        v_round.placed, p_lease_ms, p_heartbeat_ms, p_metadata, p_cursors, p_info, p_join_ids,
                        as_of, v_lease_from);
        end if;
        if v_round.asked_again is not null then
            update leasehold.members m
               set last_seen_at = as_of,
                   lease_end = greatest(m.lease_end, v_lease_from + m.lease_ms * 1000::bigint),
                   disconnected_at = null
              from unnest(v_round.asked_again) as ord
             where m.room_id = p_room_ids[ord] and m.user_id = p_user_ids[ord] and m.device_id = p_device_ids[ord];
        end if;
        -- A round is a part of the arrays, so the answers follow each other as the requests do.
        outcomes := outcomes || v_round.outcomes;
        epochs := epochs || v_round.epochs;
        generations := generations || v_round.generations;
        arrived_at := arrived_at || v_round.arrived_at;
        lease_expires_at := lease_expires_at || v_round.lease_ends;
        device_ids := device_ids || v_round.device_ids;
        blocked_until := blocked_until || v_round.blocked_until;
    end loop;

    if 'joined' <> any (outcomes) then
        -- A room in which every request was refused was never opened.
        select array_agg(room_id)
          into v_unopened
          from leasehold.rooms
         where room_id = any (p_room_ids) and version = 0;
        delete from leasehold.rooms where room_id = any (v_unopened);
    end if;
end
$$;

comment on function leasehold.join_members(text[], text[], text[], integer[], integer[], jsonb[], jsonb[], text[], jsonb[], text[], integer[], integer, integer, integer, timestamptz) is
    'Joins members, one request per position of the arrays and in that order; arrays that are left empty mean their defaults. A join id of one of the person''s last 32 joins in the room on that device renews what it joined and answers the same. Answers one row of arrays in the same order. Outcomes: joined; already_present, with the session of another device that is there; blocked, with its end; room_full, room_locked, too_many_devices, too_many_rooms; misdirected where another database has the room; and for a join id whose session is over the same as stale_reason. Locks the users against remove_user, the rooms in order of id, then the sessions that are replaced or have expired; waits for whoever holds one. Run it at read committed. Errors: 22023 for arguments that cannot be, 23514 for an id that cannot be, 40001, 40P01, 55P03.';

create function leasehold.join_member(
    p_room_id text,
    p_user_id text,
    p_device_id text default '',
    p_lease_ms integer default 15000,
    p_heartbeat_ms integer default null,
    p_metadata jsonb default null,
    p_cursor jsonb default null,
    p_if_present text default 'replace',
    p_info jsonb default null,
    p_join_id text default null,
    p_capacity integer default null,
    p_now timestamptz default null,
    out outcome text,
    out epoch bigint,
    out generation bigint,
    out arrived_at timestamptz,
    out lease_expires_at timestamptz,
    out device_id text,
    out blocked_until timestamptz,
    out as_of timestamptz
)
    language sql
as $$
    select j.outcomes[1], j.epochs[1], j.generations[1], j.arrived_at[1], j.lease_expires_at[1], j.device_ids[1],
           j.blocked_until[1], j.as_of
      from leasehold.join_members(
               array[p_room_id], array[p_user_id], array[p_device_id], array[p_lease_ms],
               array[p_heartbeat_ms], array[p_metadata], array[p_cursor], array[p_if_present],
               array[p_info], array[p_join_id], array[p_capacity],
               p_now => p_now) j
$$;

comment on function leasehold.join_member(text, text, text, integer, integer, jsonb, jsonb, text, jsonb, text, integer, timestamptz) is
    'Joins one member, in the caller''s transaction. The same outcomes, locks and errors as join_members.';
