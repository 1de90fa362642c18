-- The scheduled jobs: the sweep expires leases and deletes empty rooms, the
-- purge forgets closed lifetimes. Both work in bounded batches.
--
-- Nothing depends on them for what a reader sees; they keep the tables small
-- and the history timely. They may be called by the service, by pg_cron or by
-- cron, and by all of them at once: a second one returns instead of queueing.

create function leasehold.sweep(
    p_max_members integer default 1000,
    p_now timestamptz default null,
    out ran boolean,
    out members_expired integer,
    out rooms_closed integer,
    out finished boolean
)
    language plpgsql
as $$
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_rooms text[];
    v_seen integer;
begin
    members_expired := 0;
    rooms_closed := 0;
    finished := false;
    -- Held to the end of the transaction; the two numbers spell "leasehold sweep" for this project alone.
    ran := pg_try_advisory_xact_lock(hashtext('leasehold'), hashtext('sweep'));
    if not ran then
        return;
    end if;

    -- What somebody is changing is pruned by them, or by the next sweep: it does not hold up the rest.
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    select array_agg(distinct due.room_id), count(*)
      into v_rooms, v_seen
      from (select r.room_id
              from leasehold.members m
              join leasehold.rooms r on r.room_id = m.room_id
             where leasehold.lease_expired(m.lease_end, v_lease_now)
             limit p_max_members
               for no key update of r skip locked
               for update of m skip locked) due;
    if v_rooms is not null then
        -- Read again, now that the rooms are locked.
        select p.members_expired, p.rooms_closed
          into members_expired, rooms_closed
          from leasehold.clocks(p_now) c, leasehold.prune_locked(v_rooms, c.now, c.lease_now) p;
    end if;

    finished := v_seen < p_max_members;
    if finished then
        update leasehold.sweeps set last_swept_at = v_now, unfinished_at = null;
    else
        update leasehold.sweeps set unfinished_at = v_now;
    end if;
end
$$;

comment on function leasehold.sweep(integer, timestamptz) is
    'One batch of the expiry job: finds up to p_max_members expired sessions and prunes their rooms. Call it again until finished; ran is false where another sweep is under way. Locks the rooms and sessions that it prunes; waits for nobody.';

create function leasehold.sweep_works()
    returns boolean
    language sql stable
as $$
    -- Whoever holds a sweep's lock and waits for its client does nothing. What others do is hidden
    -- from some roles: then it is taken for work.
    select exists (
        select from pg_locks l
          join pg_stat_activity a on a.pid = l.pid
         where l.locktype = 'advisory' and l.granted and l.objsubid = 2
           and l.database = (select oid from pg_database where datname = current_database())
           and l.classid = (hashtext('leasehold')::bigint & 4294967295)::oid
           and l.objid = (hashtext('sweep')::bigint & 4294967295)::oid
           and a.state is distinct from 'idle in transaction'
           and a.state is distinct from 'idle in transaction (aborted)')
$$;

comment on function leasehold.sweep_works() is
    'Internal. Whether a transaction of a sweep is at work at this moment, anywhere.';

-- No room is locked by a purge: a join reads the history and the floors in one
-- statement, so in one snapshot, and sees a lifetime either there or purged.
create function leasehold.purge(
    p_older_than interval,
    p_max_events integer default 10000,
    p_now timestamptz default null,
    out ran boolean,
    out generations_purged integer,
    out events_purged integer,
    out blocks_purged integer,
    out finished boolean
)
    language plpgsql
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_room_ids text[];
    v_generations bigint[];
begin
    generations_purged := 0;
    events_purged := 0;
    blocks_purged := 0;
    finished := false;
    -- Held to the end of the transaction.
    ran := pg_try_advisory_xact_lock(hashtext('leasehold'), hashtext('purge'));
    if not ran then
        return;
    end if;

    -- The oldest first, until their events are enough; a generation goes whole, and
    -- with it what the room had before, should clocks have run backwards.
    with due as (
        select g.room_id, g.generation, g.closed_version,
               sum(g.closed_version) over (order by g.closed_at, g.room_id, g.generation) as events
          from (select g.*
                  from leasehold.room_generations g
                 where g.closed_at < v_now - p_older_than
                 order by g.closed_at, g.room_id, g.generation
                 limit p_max_events) g
    ), chosen as (
        select d.room_id, max(d.generation) as generation
          from due d
         where d.events - d.closed_version < p_max_events
         group by d.room_id
    )
    select array_agg(g.room_id), array_agg(g.generation)
      into v_room_ids, v_generations
      from chosen c
      join leasehold.room_generations g
        on g.room_id = c.room_id and g.generation <= c.generation;

    if v_room_ids is not null then
        with gone as (
            delete from leasehold.membership_events e
             using unnest(v_room_ids, v_generations) as k (room_id, generation)
             where e.room_id = k.room_id and e.generation = k.generation
            returning e.room_id, e.generation, e.version, e.user_id, e.epoch, e.xact_id, e.event_id
        ), floors as (
            insert into leasehold.epoch_floors as f (room_id, user_id, epoch)
            select g.room_id, g.user_id, max(g.epoch)
              from gone g
             group by g.room_id, g.user_id
                on conflict (room_id, user_id) do update set epoch = greatest(f.epoch, excluded.epoch)
        ), highest as (
            -- What closed its room is one item more in the feed.
            select g.xact_id, g.event_id,
                   case when exists (select from leasehold.room_generations l
                                      where l.room_id = g.room_id and l.generation = g.generation
                                        and l.closed_version = g.version)
                        then 2 else 1 end as part
              from gone g
             order by g.xact_id desc, g.event_id desc
             limit 1
        ), mark as (
            update leasehold.purges p
               set purged_xact_id = h.xact_id, purged_event_id = h.event_id, purged_part = h.part
              from highest h
             where p.purged_xact_id is null
                or (p.purged_xact_id, p.purged_event_id) < (h.xact_id, h.event_id)
        )
        select count(*) into events_purged from gone;

        insert into leasehold.generation_floors as f (room_id, generation)
        select k.room_id, max(k.generation)
          from unnest(v_room_ids, v_generations) as k (room_id, generation)
         group by k.room_id
            on conflict (room_id) do update set generation = greatest(f.generation, excluded.generation);

        delete from leasehold.room_generations g
         using unnest(v_room_ids, v_generations) as k (room_id, generation)
         where g.room_id = k.room_id and g.generation = k.generation;
        generations_purged := cardinality(v_room_ids);
    end if;

    delete from leasehold.blocks b
     using (select room_id, user_id
              from leasehold.blocks
             where blocked_until <= v_now
             limit p_max_events) k
     where b.room_id = k.room_id and b.user_id = k.user_id
       -- Somebody may be prolonging it.
       and b.blocked_until <= v_now;
    get diagnostics blocks_purged = row_count;

    finished := blocks_purged < p_max_events
        and not exists (select from leasehold.room_generations
                         where closed_at < v_now - p_older_than);
end
$$;

comment on function leasehold.purge(interval, integer, timestamptz) is
    'One batch of forgetting: removes lifetimes that closed longer ago than p_older_than, with their events, whole ones and so many that about p_max_events go; and blocks that have ended. Call it again until finished; ran is false where another purge is under way. Locks what it removes.';
