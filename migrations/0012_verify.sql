-- The invariants as a query: no row means that all of them hold.

create function leasehold.verify(p_room_id text default null, p_since timestamptz default null)
    returns table (invariant integer, room_id text, user_id text, detail text)
    language plpgsql stable
    -- Whether all rooms are meant decides the plan.
    set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    v_rooms text[];
    -- By these the history of the rooms is found.
    v_lifetimes bigint[];
begin
    if p_room_id is not null then
        v_rooms := array[p_room_id];
    elsif p_since is not null then
        v_rooms := array(select distinct e.room_id from leasehold.membership_events e where e.recorded_at >= p_since
                          union
                         select distinct m.room_id from leasehold.members m where m.last_seen_at >= p_since);
    end if;
    if v_rooms is not null then
        v_lifetimes := array(select r.lifetime_id from leasehold.rooms r where r.room_id = any (v_rooms)
                              union all
                             select c.lifetime_id from leasehold.closed_generations c where c.room_id = any (v_rooms));
    end if;

    return query
    -- 1. One logical member per room and user; each device's row is its newest session.
    select 1, m.room_id, m.user_id,
           format('device %L holds epoch %s, but epoch %s was joined later on it', m.device_id, m.epoch, max(e.epoch))
      from leasehold.members m
      join leasehold.membership_events e
        on e.room_id = m.room_id and e.user_id = m.user_id and e.device_id = m.device_id
       and e.kind = 'joined' and e.epoch > m.epoch
     where (v_rooms is null or m.room_id = any (v_rooms))
     group by m.room_id, m.user_id, m.device_id, m.epoch
    union all
    select 1, m.room_id, m.user_id, format('epoch %s is held by %s devices', m.epoch, count(*))
      from leasehold.members m
     where (v_rooms is null or m.room_id = any (v_rooms))
     group by m.room_id, m.user_id, m.epoch
    having count(*) > 1
    union all
    select 1, m.room_id, m.user_id, format('the devices of one person have %s places in the list', count(distinct m.arrival))
      from leasehold.members m
     where (v_rooms is null or m.room_id = any (v_rooms))
     group by m.room_id, m.user_id
    having count(distinct (m.arrival, m.arrived_at)) > 1

    -- 2. Epochs strictly increase in the order of the room's life, and stay above what was purged.
    union all
    select 2, e.room_id, e.user_id, format('epoch %s was joined after epoch %s', e.epoch, e.before)
      from (select e.room_id, e.user_id, e.epoch,
                   lag(e.epoch) over (partition by e.room_id, e.user_id order by e.generation, e.version) as before
              from leasehold.membership_events e
             where e.kind = 'joined' and (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))) e
     where e.epoch <= e.before

    -- 5. A room's row exists only with members, and its figures are theirs.
    union all
    select 5, r.room_id, null,
           format('member_count is %s, but %s persons have a row', r.member_count, count(distinct m.user_id))
      from leasehold.rooms r
      left join leasehold.members m on m.room_id = r.room_id
     where (v_rooms is null or r.room_id = any (v_rooms))
     group by r.room_id
    having count(distinct m.user_id) <> r.member_count or r.member_count = 0
    union all
    select 5, r.room_id, null,
           format('next_end is %s, but a lease ends at %s', r.next_end, min(m.lease_end))
      from leasehold.rooms r
      join leasehold.members m on m.room_id = r.room_id
     where (v_rooms is null or r.room_id = any (v_rooms))
     group by r.room_id
    having min(m.lease_end) < r.next_end

    -- 6. Generations strictly increase; a room is its newest generation, and any other is closed.
    union all
    select 6, r.room_id, null, format('generation %s of the room is not above all that ended', r.generation)
      from leasehold.rooms r
     where (v_rooms is null or r.room_id = any (v_rooms))
       and (exists (select from leasehold.closed_generations g
                     where g.room_id = r.room_id and g.generation >= r.generation)
            or r.generation <= (select f.generation from leasehold.generation_floors f where f.room_id = r.room_id))
    union all
    select 6, e.room_id, e.user_id, format('epoch %s ended in generation %s, not in the %s it joined', e.epoch, e.generation, j.generation)
      from leasehold.membership_events e
      join leasehold.membership_events j
        on j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch and j.kind = 'joined'
     where e.kind = 'ended' and e.generation <> j.generation and (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
    union all
    select 6, m.room_id, m.user_id, format('epoch %s joined generation %s, but the room is generation %s', m.epoch, j.generation, r.generation)
      from leasehold.members m
      join leasehold.rooms r on r.room_id = m.room_id
      join leasehold.membership_events j
        on j.room_id = m.room_id and j.user_id = m.user_id and j.epoch = m.epoch and j.kind = 'joined'
     where j.generation <> r.generation and (v_rooms is null or m.room_id = any (v_rooms))

    -- 6. A room is in one database.
    union all
    select 6, r.room_id, null, format('the room is here, but its slot %s is not this database''s', leasehold.slot_of(r.room_id))
      from leasehold.rooms r
     where (v_rooms is null or r.room_id = any (v_rooms))
       and not (select c.owns_all from leasehold.cell c)
       and not exists (select from leasehold.slots s
                        where s.slot = leasehold.slot_of(r.room_id) and s.state in ('owned', 'leaving'))

    -- 7. The history is complete: every version of a generation once, and members are its joins without an end.
    union all
    select 7, coalesce(e.room_id, g.room_id), null,
           format('generation %s should have events 1 to %s, but has %s up to %s%s',
                  coalesce(e.generation, g.generation), g.version, coalesce(e.events, 0), e.version,
                  ', and ' || g.purged || ' are purged')
      from (select e.lifetime_id, e.room_id, e.generation, count(*) as events, max(e.version) as version
              from leasehold.membership_events e
             where (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
             group by e.lifetime_id, e.room_id, e.generation) e
      full join (select l.lifetime_id, l.room_id, l.generation, l.version, p.events_purged as purged
                   from (select r.lifetime_id, r.room_id, r.generation, r.version from leasehold.rooms r
                         union all
                         select c.lifetime_id, c.room_id, c.generation, c.closed_version from leasehold.closed_generations c) l
                   left join leasehold.generation_purges p on p.room_id = l.room_id and p.generation = l.generation
                  where (v_rooms is null or l.room_id = any (v_rooms))) g
        on g.lifetime_id = e.lifetime_id and g.room_id = e.room_id and g.generation = e.generation
     where coalesce(e.events, 0) + coalesce(g.purged, 0) is distinct from g.version
        or (g.purged is null and e.version is distinct from g.version)
        or e.version > g.version
    union all
    select 7, coalesce(j.room_id, m.room_id), coalesce(j.user_id, m.user_id),
           format('epoch %s is %s', coalesce(j.epoch, m.epoch),
                  case when j.room_id is null then 'a member without a join in the history'
                       else 'joined and not ended in the history, but no member' end)
      from (select e.room_id, e.user_id, e.device_id, e.epoch
              from leasehold.membership_events e
             where (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
             group by e.room_id, e.user_id, e.device_id, e.epoch
            having count(*) filter (where e.kind = 'ended') = 0) j
      full join (select * from leasehold.members m where (v_rooms is null or m.room_id = any (v_rooms))) m
        on m.room_id = j.room_id and m.user_id = j.user_id
       and m.device_id = j.device_id and m.epoch = j.epoch
     where j.room_id is null or m.room_id is null
    union all
    select 7, e.room_id, e.user_id, format('epoch %s ended on device %L without having joined on it', e.epoch, e.device_id)
      from leasehold.membership_events e
     where e.kind = 'ended' and (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
       and not exists (select from leasehold.membership_events j
                        where j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch
                          and j.kind = 'joined' and j.device_id = e.device_id)
    union all
    select 7, e.room_id, e.user_id, format('epoch %s ended at version %s, before it joined at version %s', e.epoch, e.version, j.version)
      from leasehold.membership_events e
      join leasehold.membership_events j
        on j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch and j.kind = 'joined'
     where e.kind = 'ended' and e.generation = j.generation and e.version < j.version
       and (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
    union all
    select 7, e.room_id, e.user_id,
           format('version %s of generation %s says that %s members are left, but it is %s',
                  e.version, e.generation, e.member_count, e.counted)
      from (select p.*, sum(p.change) over (partition by p.lifetime_id order by p.version) as counted
              from (select s.*,
                           -- Who is replaced goes only as far as the join that follows.
                           case when s.kind = 'joined' and s.sessions = 1 and not s.replaces then 1
                                when s.kind = 'ended' and s.sessions = 0 and s.reason <> 'superseded' then -1
                                else 0 end as change
                      from (select h.*,
                                   sum(case h.kind when 'joined' then 1 else -1 end) over in_order as sessions,
                                   coalesce(lag(h.reason) over in_order = 'superseded'
                                            and lag(h.version) over in_order = h.version - 1, false) as replaces
                              from leasehold.membership_events h
                             where (v_lifetimes is null or h.lifetime_id = any (v_lifetimes))
                               -- What is purged in part cannot be counted.
                               and not exists (select from leasehold.generation_purges g
                                                where g.room_id = h.room_id and g.generation = h.generation)
                            window in_order as (partition by h.lifetime_id, h.user_id order by h.version)) s) p) e
     where e.member_count <> e.counted

    -- 4. The lease clock is behind by what the outages say, and never went back.
    union all
    select 4, null, null, format('outage %s began %s behind, but the one before it ended %s behind', o.outage_id, o.paused_before, o.before)
      from (select o.*, lag(o.paused_after) over (order by o.outage_id) as before
              from leasehold.outages o) o
     where o.paused_before <> o.before
    union all
    select 4, null, null, format('the lease clock is %s behind, but the last outage ended %s behind', p.paused, o.paused_after)
      from leasehold.pulse p
     cross join lateral (select o.paused_after from leasehold.outages o order by o.outage_id desc limit 1) o
     where p.paused <> o.paused_after
    union all
    select 4, null, null, format('outage %s stood at %s, before the place of an earlier one', o.outage_id, o.lease_at)
      from (select o.*, max(o.lease_at) over (order by o.outage_id rows between unbounded preceding and 1 preceding) as before
              from leasehold.outages o) o
     where o.lease_at < o.before

    -- 2 and 6. Epochs and generations are numbered without a gap, so what is missing below
    -- the oldest that is kept was purged, and must have left a floor.
    union all
    select 2, e.room_id, e.user_id,
           format('the epochs before %s are purged, but the floor is %s', e.epoch, coalesce(f.epoch, 0))
      from (select e.room_id, e.user_id, min(e.epoch) as epoch
              from leasehold.membership_events e
             where (v_lifetimes is null or e.lifetime_id = any (v_lifetimes))
             group by e.room_id, e.user_id) e
      left join leasehold.epoch_floors f on f.room_id = e.room_id and f.user_id = e.user_id
     where e.epoch > 1
       and coalesce(f.epoch,
                    (select max(z.epoch) from leasehold.erased_floors z
                      where z.person in (select p.person from leasehold.erased_persons(e.room_id, e.user_id) p)), 0) < e.epoch - 1
    union all
    select 6, g.room_id, null,
           format('the generations before %s are purged, but the floor is %s', g.generation, coalesce(f.generation, 0))
      from (select g.room_id, min(g.generation) as generation
              from (select r.room_id, r.generation from leasehold.rooms r
                    union all
                    select c.room_id, c.generation from leasehold.closed_generations c) g
             where (v_rooms is null or g.room_id = any (v_rooms))
             group by g.room_id) g
      left join leasehold.generation_floors f on f.room_id = g.room_id
     where coalesce(f.generation, 0) < g.generation - 1

    -- 7. In the feed each room's changes stand in the order of its life, and nothing behind what runs.
    union all
    select 7, e.room_id, e.user_id, format('version %s of generation %s stands in the feed before the change before it', e.version, e.generation)
      from (select h.room_id, h.user_id, h.generation, h.version,
                   (h.era, h.xact_id, h.event_id)::leasehold.feed_key < lag((h.era, h.xact_id, h.event_id)::leasehold.feed_key) over (
                       partition by h.room_id order by h.generation, h.version) as is_out_of_order
              from leasehold.membership_events h
             where h.era > 0 and (v_lifetimes is null or h.lifetime_id = any (v_lifetimes))) e
     where e.is_out_of_order
    union all
    select 7, null, null, format('the history goes on in cluster %s, but its transactions are counted by cluster %s; run leasehold.renumber_changes()', c.system_identifier, f.system_identifier)
      from leasehold.feed f, pg_control_system() c
     where f.system_identifier <> c.system_identifier;
end
$$;

comment on function leasehold.verify(text, timestamptz) is
    'Violations of the invariants 1, 2, 4, 5, 6 and 7; none where all is well. Reads the whole history, or that of one room, or of those in which something happened since an instant; locks nothing.';
