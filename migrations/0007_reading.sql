-- What readers see: one snapshot, judged by the lease predicate at one instant.

create function leasehold.room_members(
    p_room_ids text[],
    p_now timestamptz default null
)
    returns table (
        room_id text,
        as_of timestamptz,
        generation bigint,
        version bigint,
        opened_at timestamptz,
        user_id text,
        device_id text,
        epoch bigint,
        arrival bigint,
        joined_at timestamptz,
        last_seen_at timestamptz,
        lease_ms integer,
        lease_expires_at timestamptz,
        disconnected_at timestamptz,
        cursor jsonb,
        metadata jsonb,
        expired boolean
    )
    language sql stable
as $$
    -- Materialized, so that every row is judged at the same instant.
    with clock as materialized (select coalesce(p_now, clock_timestamp()) as instant)
    select q.room_id, clock.instant, r.generation, r.version, r.opened_at,
           m.user_id, m.device_id, m.epoch, m.arrival, m.joined_at, m.last_seen_at,
           m.lease_ms, m.lease_expires_at, m.disconnected_at, m.cursor, m.metadata,
           leasehold.lease_expired(m.lease_expires_at, clock.instant)
      from (select distinct unnest(p_room_ids) as room_id) q
     cross join clock
      left join leasehold.rooms r on r.room_id = q.room_id
      left join leasehold.members m on m.room_id = r.room_id
$$;

comment on function leasehold.room_members(text[], timestamptz) is
    'The rows of these rooms, expired ones marked: where there is one, prune_rooms and read again before answering. A room that does not exist is one row with a null generation.';

create view leasehold.live_members as
select r.room_id, r.generation, m.user_id, m.device_id, m.epoch, m.joined_at, m.last_seen_at,
       m.lease_ms, m.lease_expires_at, m.disconnected_at, m.cursor, m.metadata
  from leasehold.rooms r
  join leasehold.members m on m.room_id = r.room_id
 where not leasehold.lease_expired(m.lease_expires_at, clock_timestamp());

comment on view leasehold.live_members is
    'Who is here now: one row per session whose lease lives.';

create view leasehold.sessions as
select j.room_id, j.generation, j.user_id, j.device_id, j.epoch,
       j.occurred_at as joined_at,
       coalesce(e.occurred_at, lapsed.lease_expires_at) as ended_at,
       coalesce(e.reason, case when lapsed.lease_expires_at is not null then 'expired' end) as end_reason,
       coalesce(e.last_seen_at, m.last_seen_at) as last_seen_at,
       e.recorded_at as end_recorded_at
  from leasehold.membership_events j
  left join leasehold.membership_events e
    on e.room_id = j.room_id and e.user_id = j.user_id and e.epoch = j.epoch and e.kind = 'ended'
  left join leasehold.members m
    on m.room_id = j.room_id and m.user_id = j.user_id and m.device_id = j.device_id and m.epoch = j.epoch
  left join lateral (select m.lease_expires_at
                      where leasehold.lease_expired(m.lease_expires_at, clock_timestamp())) lapsed on true
 where j.kind = 'joined';

comment on view leasehold.sessions is
    'One row per epoch that was ever joined. A lease that has run out counts as ended, whether or not the sweep has recorded it (end_recorded_at).';

create view leasehold.room_lifetimes as
select g.room_id, g.generation, g.opened_at,
       coalesce(g.closed_at, lapsed.closed_at) as closed_at,
       coalesce(g.close_reason, case when lapsed.closed_at is not null then 'expired' end) as close_reason,
       coalesce(g.peak_members, r.peak_members) as peak_members
  from leasehold.room_generations g
  left join leasehold.rooms r on r.room_id = g.room_id and r.generation = g.generation
  left join lateral (
       select max(m.lease_expires_at) as closed_at
         from leasehold.members m
        where m.room_id = r.room_id
       having leasehold.lease_expired(max(m.lease_expires_at), clock_timestamp())) lapsed on true;

comment on view leasehold.room_lifetimes is
    'One row per lifetime of a room; closed_at is null while a member lives.';

create function leasehold.census(
    p_now timestamptz default null,
    out active_rooms bigint,
    out active_members bigint,
    out oldest_lease_age_seconds double precision
)
    language sql stable
as $$
    with clock as materialized (select coalesce(p_now, clock_timestamp()) as instant),
         person as (
        select m.room_id,
               bool_or(not leasehold.lease_expired(m.lease_expires_at, clock.instant)) as lives,
               min(m.last_seen_at) as last_seen_at
          from leasehold.members m
         cross join clock
         group by m.room_id, m.user_id
    )
    select count(distinct person.room_id) filter (where person.lives),
           count(*) filter (where person.lives),
           coalesce(extract(epoch from (select instant from clock) - min(person.last_seen_at)), 0)::double precision
      from person
$$;

comment on function leasehold.census(timestamptz) is
    'Live rooms and persons, and how long ago the longest unseen row was seen. Scans the members.';
