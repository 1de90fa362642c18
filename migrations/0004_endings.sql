-- How sessions end, and the only code that removes for expiry or deletes a room.

create function leasehold.end_sessions(
    p_places tid[],
    p_reason text,
    p_now timestamptz,
    p_by text default null,
    p_note text default null
)
    returns void
    language plpgsql
as $$
begin
    -- As in write_placements rows are found by key or place, whatever a plan that is kept believes of
    -- the tables.

    -- A member is gone with the last session: decided before anything is deleted.
    update leasehold.rooms r
       set version = r.version + t.sessions,
           member_count = r.member_count - t.members,
           last_xact_id = greatest(r.last_xact_id, pg_current_xact_id())
      from (select held.place, e.sessions, e.members
              from (select p.room_id,
                           sum(p.sessions)::bigint as sessions,
                           count(*) filter (where p.sessions = (
                               select count(*) from leasehold.members m
                                where m.room_id = p.room_id and m.user_id = p.user_id))::integer as members
                      from (select k.room_id, k.user_id, count(*) as sessions
                              from (select * from leasehold.members m where m.ctid = any (p_places) offset 0) k
                             group by k.room_id, k.user_id) p
                     group by p.room_id) e
             cross join lateral (
                   select h.ctid as place from leasehold.rooms h where h.room_id = e.room_id offset 0) held) t
     where r.ctid = t.place;

    -- Numbered up to the version that the room has now.
    insert into leasehold.membership_events
           (lifetime_id, room_id, generation, version, user_id, device_id, epoch,
            kind, reason, occurred_at, recorded_at, last_seen_at, member_count, ended_by, note, xact_id, era)
    select r.lifetime_id, n.room_id, r.generation, r.version - n.sessions + n.step, n.user_id, n.device_id, n.epoch,
           'ended', p_reason, n.occurred_at, p_now, n.last_seen_at,
           r.member_count + n.departures - count(*) filter (where n.departs) over in_order, p_by, p_note,
           r.last_xact_id, f.era
      from (select o.*,
                   count(*) filter (where o.departs) over (partition by o.room_id) as departures
              from (select e.*,
                           count(*) over (partition by e.room_id) as sessions,
                           row_number() over in_order as step,
                           -- The last of these sessions that the member has, and there is none beside them.
                           row_number() over of_member = (
                               select count(*) from leasehold.members b
                                where b.room_id = e.room_id and b.user_id = e.user_id) as departs
                      from (select m.room_id, m.user_id, m.device_id, m.epoch, m.last_seen_at,
                                   coalesce(i.ended_at, p_now) as occurred_at
                              from (select * from leasehold.members m where m.ctid = any (p_places) offset 0) m
                             cross join lateral leasehold.lease_instants(case when p_reason = 'expired' then m.lease_end end) i) e
                    window in_order as (partition by e.room_id order by e.occurred_at, e.user_id, e.device_id),
                           of_member as (partition by e.room_id, e.user_id order by e.occurred_at, e.device_id)) o) n
     cross join lateral (select * from leasehold.rooms r where r.room_id = n.room_id offset 0) r
      join leasehold.feed f on f.only_row
    window in_order as (partition by n.room_id order by n.step)
     order by n.room_id, n.step;

    delete from leasehold.members m where m.ctid = any (p_places);
end
$$;

comment on function leasehold.end_sessions(tid[], text, timestamptz, text, text) is
    'Internal. Removes the sessions in these places (ctid), and records their end. The caller holds their locks, so that they stay in their places, and those of their rooms, and prunes afterwards.';

create function leasehold.prune_locked(
    p_room_ids text[],
    p_now timestamptz,
    p_lease_now bigint,
    out members_expired integer,
    out rooms_closed integer
)
    language plpgsql
as $$
declare
    v_expired tid[];
begin
    -- One that somebody holds is renewed by them, or is left for the next time.
    select array_agg(e.place)
      into v_expired
      from (select ctid as place
              from leasehold.members
             where room_id = any (p_room_ids)
               and leasehold.lease_expired(lease_end, p_lease_now)
               for update skip locked) e;
    members_expired := coalesce(cardinality(v_expired), 0);
    if members_expired > 0 then
        perform leasehold.end_sessions(v_expired, 'expired', p_now);
    end if;

    -- Starts after the room's lock was granted, so it counts every member who joined before; should a
    -- count ever be wrong, the key of the members that are left refuses this.
    with closed as (
        delete from leasehold.rooms r
         where r.room_id = any (p_room_ids) and r.member_count = 0
        returning r.*
    )
    insert into leasehold.closed_generations
           (room_id, generation, lifetime_id, opened_at, closed_at, close_reason, closed_version, peak_members, era, last_xact_id)
    select r.room_id, r.generation, r.lifetime_id, r.opened_at, e.occurred_at, e.reason, e.version, r.peak_members, e.era, e.xact_id
      from closed r
     cross join lateral (
           select * from leasehold.membership_events e
            where e.lifetime_id = r.lifetime_id and e.version = r.version offset 0) e
     order by e.event_id;
    get diagnostics rooms_closed = row_count;

    if rooms_closed < cardinality(p_room_ids) then
        update leasehold.rooms r
           set next_end = (select min(m.lease_end) from leasehold.members m where m.room_id = r.room_id)
         where r.room_id = any (p_room_ids);
    end if;
end
$$;

comment on function leasehold.prune_locked(text[], timestamptz, bigint) is
    'Internal. The only place that removes for expiry and the only one that deletes a room. Passes over sessions that another transaction holds. The caller holds the rooms'' locks.';

create function leasehold.prune_due(p_locked text[], p_now timestamptz, p_lease_now bigint)
    returns integer
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
       and (member_count = 0 or leasehold.lease_expired(next_end, p_lease_now));
    if v_due is null then
        return null;
    end if;
    return (select p.members_expired from leasehold.prune_locked(v_due, p_now, p_lease_now) p);
end
$$;

comment on function leasehold.prune_due(text[], timestamptz, bigint) is
    'Internal. Prunes those of the locked rooms that are empty or may hold an expired session; how many expired, or null where there was no such room.';

create function leasehold.prune_rooms(
    p_room_ids text[],
    p_now timestamptz default null,
    out members_expired integer,
    out rooms_closed integer
)
    language plpgsql
as $$
declare
    v_rooms text[] := leasehold.lock_free_rooms(p_room_ids);
begin
    select p.members_expired, p.rooms_closed
      into members_expired, rooms_closed
      from leasehold.clocks(p_now) c, leasehold.prune_locked(v_rooms, c.now, c.lease_now) p;
end
$$;

comment on function leasehold.prune_rooms(text[], timestamptz) is
    'Removes the expired sessions of these rooms, and the rooms that this leaves empty. Waits for nobody: what another transaction holds is left for the next time.';
