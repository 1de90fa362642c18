-- What readers see: one snapshot, judged by the lease predicate at one reading
-- of the clocks. Nothing here locks or changes anything.

create function leasehold.room_sessions(
    p_room_ids text[],
    p_now timestamptz default null
)
    returns table (
        room_id text,
        as_of timestamptz,
        has_expired boolean,
        is_misdirected boolean,
        generation bigint,
        version bigint,
        opened_at timestamptz,
        locked boolean,
        user_id text,
        device_id text,
        epoch bigint,
        arrival bigint,
        arrived_at timestamptz,
        joined_at timestamptz,
        last_seen_at timestamptz,
        heartbeat_ms integer,
        lease_expires_at timestamptz,
        status text,
        cursor jsonb,
        metadata jsonb,
        info jsonb
    )
    language sql stable
as $$
    select q.room_id, clock.now, coalesce(due.expired > 0, false),
           r.room_id is null and leasehold.is_misdirected(q.room_id),
           case when due.live = 0 then null else r.generation end,
           r.version + coalesce(due.expired, 0), r.opened_at, r.locked,
           m.user_id, m.device_id, m.epoch, m.arrival, m.arrived_at, m.joined_at, m.last_seen_at, m.heartbeat_ms,
           clock.now + (m.lease_end - clock.lease_now) * interval '1 microsecond',
           leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, clock.now),
           m.cursor, m.metadata, m.info
      from (select distinct unnest(p_room_ids) as room_id) q
     cross join leasehold.clocks(p_now) clock
      left join leasehold.rooms r on r.room_id = q.room_id
      -- Where a lease may have ended: the version that the room has when that is recorded.
      left join lateral (
           select count(*) filter (where leasehold.lease_expired(e.lease_end, clock.lease_now)) as expired,
                  count(*) filter (where not leasehold.lease_expired(e.lease_end, clock.lease_now)) as live
             from leasehold.members e
            where e.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having count(*) > 0) due on true
      left join leasehold.members m
        on m.room_id = r.room_id and not leasehold.lease_expired(m.lease_end, clock.lease_now)
$$;

comment on function leasehold.room_sessions(text[], timestamptz) is
    'Who is in these rooms: one row per live session, and of a room without one a single row with a null generation, and is_misdirected where another database has it. has_expired says that prune_rooms has something to do; version counts it as done. Locks nothing.';

create view leasehold.live_members as
select r.room_id, r.generation, m.user_id, m.device_id, m.epoch,
       leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, c.now) as status,
       m.arrived_at, m.joined_at, m.last_seen_at, m.lease_ms, m.heartbeat_ms,
       c.now + (m.lease_end - c.lease_now) * interval '1 microsecond' as lease_expires_at,
       m.disconnected_at, m.cursor, m.metadata, m.info
  from leasehold.clocks() c
  join leasehold.members m on not leasehold.lease_expired(m.lease_end, c.lease_now)
  join leasehold.rooms r on r.room_id = m.room_id;

comment on view leasehold.live_members is
    'Who is here now: one row per session whose lease lives.';

create view leasehold.sessions as
select l.room_id, j.generation, j.user_id, j.device_id, j.epoch,
       j.occurred_at as joined_at,
       coalesce(e.occurred_at, lapsed.ended_at) as ended_at,
       coalesce(e.reason, case when lapsed.ended_at is not null then 'expired' end) as end_reason,
       coalesce(e.last_seen_at, m.last_seen_at) as last_seen_at,
       e.recorded_at as end_recorded_at,
       e.ended_by, e.note, j.info,
       j.version as joined_version,
       j.event_id as joined_event_id
  from (select r.room_id, r.generation, r.lifetime_id from leasehold.rooms r
        union all
        select c.room_id, c.generation, c.lifetime_id from leasehold.closed_generations c) l
  -- A room's joins are found by its lifetimes, and must not be looked for by the room: no index begins with it.
  join leasehold.membership_events j
    on j.lifetime_id = l.lifetime_id and l.room_id = j.room_id || '' and l.generation = j.generation
  -- Each by its key, whatever a plan that is kept believes of the tables.
  left join lateral (
       select * from leasehold.membership_events e
        where e.user_id = j.user_id and e.room_id = j.room_id and e.epoch = j.epoch and e.kind = 'ended'
        limit 1) e on true
  left join lateral (
       select * from leasehold.members m
        where m.room_id = j.room_id and m.user_id = j.user_id and m.device_id = j.device_id and m.epoch = j.epoch
        limit 1) m on true
  left join lateral (select leasehold.lease_instant(m.lease_end) as ended_at
                      where leasehold.lease_expired(m.lease_end, (select leasehold.lease_clock()))) lapsed on true
 where j.kind = 'joined';

comment on view leasehold.sessions is
    'One row per epoch that was ever joined. A lease that has run out counts as ended, whether or not the sweep has recorded it (end_recorded_at).';

create view leasehold.room_lifetimes as
select l.room_id, l.generation, l.opened_at, l.closed_at, l.close_reason, l.peak_members, p.purged_until, l.lifetime_id
  from (select c.room_id, c.generation, c.opened_at, c.closed_at, c.close_reason, c.peak_members, c.lifetime_id
          from leasehold.closed_generations c
        union all
        select r.room_id, r.generation, r.opened_at, lapsed.closed_at,
               case when lapsed.closed_at is not null then 'expired' end, r.peak_members, r.lifetime_id
          from leasehold.rooms r
          left join lateral (
               select leasehold.lease_instant(max(m.lease_end)) as closed_at
                 from leasehold.members m
                where m.room_id = r.room_id
               having leasehold.lease_expired(max(m.lease_end), (select leasehold.lease_clock()))) lapsed on true) l
  left join leasehold.generation_purges p on p.room_id = l.room_id and p.generation = l.generation;

comment on view leasehold.room_lifetimes is
    'One row per lifetime of a room; closed_at is null while a member lives; its events are those with its lifetime_id. Sessions that ended until purged_until may be purged; null where all are kept.';

create function leasehold.list_rooms(
    p_prefix text default '',
    p_after text default '',
    p_limit integer default 100,
    p_now timestamptz default null
)
    returns table (
        room_id text,
        generation bigint,
        version bigint,
        opened_at timestamptz,
        locked boolean,
        member_count integer,
        as_of timestamptz
    )
    language sql stable
as $$
    select r.room_id, r.generation, r.version + live.expired, r.opened_at, r.locked, live.members, clock.now
      from leasehold.rooms r
     cross join leasehold.clocks(p_now) clock
     cross join lateral (
           -- While no lease of the room can have ended, its count is exact.
           select 0::bigint as expired, r.member_count as members
            where not leasehold.lease_expired(r.next_end, clock.lease_now)
            union all
           select count(*) filter (where leasehold.lease_expired(m.lease_end, clock.lease_now)),
                  (count(distinct m.user_id)
                      filter (where not leasehold.lease_expired(m.lease_end, clock.lease_now)))::integer
             from leasehold.members m
            where m.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having leasehold.lease_expired(r.next_end, clock.lease_now)) live
     where r.room_id > p_after
       -- An id has at most 256 characters: nothing that starts with the prefix sorts behind this.
       and r.room_id between p_prefix and p_prefix || repeat(U&'\+10FFFF', 256)
       and live.members > 0
     order by r.room_id
     limit p_limit
$$;

comment on function leasehold.list_rooms(text, text, integer, timestamptz) is
    'The rooms with a live member whose id starts with p_prefix, in order of id, those after p_after. Locks nothing.';

create function leasehold.user_rooms(
    p_user_id text,
    p_after text default '',
    p_limit integer default 100,
    p_now timestamptz default null
)
    returns table (
        room_id text,
        generation bigint,
        epoch bigint,
        status text,
        joined_at timestamptz,
        last_seen_at timestamptz,
        lease_expires_at timestamptz,
        as_of timestamptz
    )
    language sql stable
as $$
    select distinct on (m.room_id)
           m.room_id, r.generation, m.epoch,
           -- One connected device is enough; connected sorts before reconnecting.
           min(leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, clock.now))
               over (partition by m.room_id),
           m.joined_at, max(m.last_seen_at) over (partition by m.room_id),
           clock.now + (m.lease_end - clock.lease_now) * interval '1 microsecond', clock.now
      from leasehold.members m
      join leasehold.rooms r on r.room_id = m.room_id
     cross join leasehold.clocks(p_now) clock
     where m.user_id = p_user_id
       and m.room_id > p_after
       and not leasehold.lease_expired(m.lease_end, clock.lease_now)
     order by m.room_id, m.epoch desc
     limit p_limit
$$;

comment on function leasehold.user_rooms(text, text, integer, timestamptz) is
    'Where a user is: each room with a live session of theirs, with the newest of them and the best status of all, in order of id, those after p_after. Locks nothing.';

create function leasehold.departures(
    p_room_ids text[],
    p_generations bigint[],
    p_user_ids text[],
    p_arrivals bigint[]
)
    returns table (ord integer, epoch bigint, version bigint, reason text)
    language sql stable
as $$
    -- A stay is over at its first end that leaves no session of the member; the end of a
    -- superseded one is followed at once by the join that replaced it.
    (select distinct on (q.ord) q.ord::integer, e.epoch, e.version, e.reason
      from unnest(p_room_ids, p_generations, p_user_ids, p_arrivals)
           with ordinality as q (room_id, generation, user_id, arrival, ord)
     cross join lateral (
           select h.epoch, h.version, h.reason,
                  sum(case h.kind when 'joined' then 1 else -1 end) over (order by h.version) as sessions
             from leasehold.membership_events h
            where h.user_id = q.user_id and h.room_id = q.room_id
              and h.generation = q.generation and h.version >= q.arrival) e
     where e.sessions = 0 and e.reason <> 'superseded'
     order by q.ord, e.version)
    union all
    select q.ord::integer, null, g.closed_version, g.close_reason
      from unnest(p_room_ids, p_generations, p_user_ids)
           with ordinality as q (room_id, generation, user_id, ord)
      join leasehold.closed_generations g on g.room_id = q.room_id and g.generation = q.generation
     where q.user_id is null
$$;

comment on function leasehold.departures(text[], bigint[], text[], bigint[]) is
    'Internal. How stays ended that began at these arrivals (members.arrival): the last session''s epoch and reason, and the version of its end; where the user is null, how the lifetime ended. No row for what goes on, or whose history is purged. Locks nothing.';

create function leasehold.census(
    p_now timestamptz default null,
    out active_rooms bigint,
    out active_members bigint,
    out oldest_lease_age_seconds double precision,
    out paused_seconds double precision,
    out pulse_age_seconds double precision,
    out outages bigint
)
    language sql stable
    -- Whoever asks may have switched it off for what looks up by keys.
    set enable_seqscan = on
as $$
    with clock as (select c.now, c.lease_now from leasehold.clocks(p_now) c),
         live as (
        -- The rooms know their members; only where a lease may have ended these are counted anew.
        select case when leasehold.lease_expired(r.next_end, clock.lease_now)
                    then (select count(distinct m.user_id)
                            from leasehold.members m
                           where m.room_id = r.room_id and not leasehold.lease_expired(m.lease_end, clock.lease_now))
                    else r.member_count end as members
          from leasehold.rooms r
         cross join clock
    ), counted as (
        select count(*) filter (where live.members > 0) as rooms, coalesce(sum(live.members), 0)::bigint as members from live
    )
    select counted.rooms, counted.members,
           coalesce(extract(epoch from clock.now - (select min(m.last_seen_at) from leasehold.members m)), 0)::double precision,
           ((leasehold.micros(clock.now) - clock.lease_now) / 1000000.0)::double precision,
           extract(epoch from clock.now - p.last_at)::double precision,
           (select count(*) from leasehold.outages)
      from counted, clock, leasehold.pulse p
$$;

comment on function leasehold.census(timestamptz) is
    'Live rooms and members, how long ago the longest unseen session was seen, by how much the lease clock is behind, how old the pulse is (null where nobody has served), and how many outages there were. Scans the rooms and once the members; locks nothing.';

create function leasehold.heartbeat_interval(
    p_room_id text,
    p_user_id text,
    p_device_id text,
    p_epoch bigint
)
    returns integer
    language sql stable
as $$
    select m.heartbeat_ms
      from leasehold.members m
     where m.room_id = p_room_id and m.user_id = p_user_id
       and m.device_id = p_device_id and m.epoch = p_epoch
$$;

comment on function leasehold.heartbeat_interval(text, text, text, bigint) is
    'Internal. How often this session is to be heard of, in milliseconds; null where it is not the current one. Locks nothing.';

create function leasehold.room_counts(
    p_room_ids text[],
    p_now timestamptz default null
)
    returns table (
        room_id text,
        as_of timestamptz,
        has_expired boolean,
        is_misdirected boolean,
        generation bigint,
        version bigint,
        member_count integer
    )
    language sql stable
as $$
    select q.room_id, clock.now, coalesce(live.expired > 0, false),
           r.room_id is null and leasehold.is_misdirected(q.room_id),
           case when live.members > 0 then r.generation end,
           case when live.members > 0 then r.version + live.expired end,
           coalesce(live.members, 0)
      from (select distinct unnest(p_room_ids) as room_id) q
     cross join leasehold.clocks(p_now) clock
      left join leasehold.rooms r on r.room_id = q.room_id
      left join lateral (
           -- While no lease of the room can have ended, its count is exact.
           select 0::bigint as expired, r.member_count as members
            where not leasehold.lease_expired(r.next_end, clock.lease_now)
            union all
           select count(*) filter (where leasehold.lease_expired(m.lease_end, clock.lease_now)),
                  (count(distinct m.user_id)
                      filter (where not leasehold.lease_expired(m.lease_end, clock.lease_now)))::integer
             from leasehold.members m
            where m.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having leasehold.lease_expired(r.next_end, clock.lease_now)) live on true
$$;

comment on function leasehold.room_counts(text[], timestamptz) is
    'How many persons are in these rooms: one row each, of a room without one with a null generation and version, and is_misdirected where another database has it. has_expired says that prune_rooms has something to do; version counts it as done. Locks nothing.';

create function leasehold.user_last_seen(p_user_id text)
    returns timestamptz
    language sql stable
as $$
    -- From room to room by the key: what it costs is the rooms that the user has been in, not the joins.
    with recursive been as (
        (select e.room_id
           from leasehold.membership_events e
          where e.user_id = p_user_id
          order by e.room_id
          limit 1)
        union all
        select (select e.room_id
                  from leasehold.membership_events e
                 where e.user_id = p_user_id and e.room_id > been.room_id
                 order by e.room_id
                 limit 1)
          from been
         where been.room_id is not null
    )
    select greatest(
        (select max(ended.last_seen_at)
           from been
          cross join lateral (
                -- Devices of one stay end in any order.
                select e.last_seen_at
                  from leasehold.membership_events e
                 where e.user_id = p_user_id and e.room_id = been.room_id and e.kind = 'ended'
                 order by e.epoch desc
                 limit 16) ended),
        (select max(m.last_seen_at) from leasehold.members m where m.user_id = p_user_id))
$$;

comment on function leasehold.user_last_seen(text) is
    'When a user was last heard of in any room, as far as the history is kept; null where never. Looks at the last 16 ended sessions in each room. Locks nothing.';

create function leasehold.whereabouts(
    p_user_ids text[],
    p_max_rooms integer default 100,
    p_now timestamptz default null
)
    returns table (
        ord bigint,
        room_id text,
        generation bigint,
        epoch bigint,
        status text,
        joined_at timestamptz,
        last_seen_at timestamptz,
        lease_expires_at timestamptz
    )
    language sql stable
as $$
    select u.ord, r.room_id, r.generation, r.epoch, r.status, r.joined_at,
           case when r.room_id is null then leasehold.user_last_seen(u.user_id) else r.last_seen_at end,
           r.lease_expires_at
      from unnest(p_user_ids) with ordinality as u (user_id, ord)
      left join lateral leasehold.user_rooms(u.user_id, '', p_max_rooms, p_now) r on true
     order by u.ord, r.room_id
$$;

comment on function leasehold.whereabouts(text[], integer, timestamptz) is
    'Where each of these users is, the first p_max_rooms rooms of each, in order; for who is in none one row that says when they were last seen. Locks nothing.';
