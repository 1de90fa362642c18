-- Lists over many rooms, in one snapshot, judged at one instant, in pages.

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
        member_count integer,
        as_of timestamptz
    )
    language sql stable
as $$
    with clock as materialized (select coalesce(p_now, clock_timestamp()) as instant)
    select r.room_id, r.generation, r.version, r.opened_at, live.persons, clock.instant
      from leasehold.rooms r
     cross join clock
     cross join lateral (
           -- While no lease of the room can have ended, its count is exact.
           select case when leasehold.lease_expired(r.next_expiry_at, clock.instant)
                       then (select count(distinct m.user_id)::integer
                               from leasehold.members m
                              where m.room_id = r.room_id
                                and not leasehold.lease_expired(m.lease_expires_at, clock.instant))
                       else r.member_count end as persons) live
     where r.room_id > p_after
       -- An id has at most 256 characters: nothing that starts with the prefix sorts behind this.
       and r.room_id between p_prefix and p_prefix || repeat(U&'\+10FFFF', 256)
       and live.persons > 0
     order by r.room_id
     limit p_limit
$$;

comment on function leasehold.list_rooms(text, text, integer, timestamptz) is
    'The rooms with a live member whose id starts with p_prefix, in order of id, those after p_after.';

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
        joined_at timestamptz,
        last_seen_at timestamptz,
        lease_ms integer,
        lease_expires_at timestamptz,
        disconnected_at timestamptz,
        as_of timestamptz
    )
    language sql stable
as $$
    with clock as materialized (select coalesce(p_now, clock_timestamp()) as instant)
    select distinct on (m.room_id)
           m.room_id, r.generation, m.epoch, m.joined_at, m.last_seen_at,
           m.lease_ms, m.lease_expires_at, m.disconnected_at, clock.instant
      from leasehold.members m
      join leasehold.rooms r on r.room_id = m.room_id
     cross join clock
     where m.user_id = p_user_id
       and m.room_id > p_after
       and not leasehold.lease_expired(m.lease_expires_at, clock.instant)
     order by m.room_id, m.epoch desc
     limit p_limit
$$;

comment on function leasehold.user_rooms(text, text, integer, timestamptz) is
    'Where a person is: each room with a live session of theirs, with the newest, in order of id, those after p_after.';

-- With what a page of it continues from.
create or replace view leasehold.sessions as
select j.room_id, j.generation, j.user_id, j.device_id, j.epoch,
       j.occurred_at as joined_at,
       coalesce(e.occurred_at, lapsed.lease_expires_at) as ended_at,
       coalesce(e.reason, case when lapsed.lease_expires_at is not null then 'expired' end) as end_reason,
       coalesce(e.last_seen_at, m.last_seen_at) as last_seen_at,
       e.recorded_at as end_recorded_at,
       j.version as joined_version,
       j.event_id as joined_event_id
  from leasehold.membership_events j
  left join leasehold.membership_events e
    on e.room_id = j.room_id and e.user_id = j.user_id and e.epoch = j.epoch and e.kind = 'ended'
  left join leasehold.members m
    on m.room_id = j.room_id and m.user_id = j.user_id and m.device_id = j.device_id and m.epoch = j.epoch
  left join lateral (select m.lease_expires_at
                      where leasehold.lease_expired(m.lease_expires_at, clock_timestamp())) lapsed on true
 where j.kind = 'joined';
