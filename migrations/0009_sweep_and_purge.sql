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

create type leasehold.feed_key as (era integer, xact_id xid8, event_id bigint);

comment on type leasehold.feed_key is
    'Internal. Where an event stands in the feed.';

-- A purge goes through the feed from where it was last: events stand there about
-- in the order in which they were recorded, and each room's in the order of its
-- life, so what closed a lifetime is the last of it to go. A session goes with its
-- end; the joins of who is still here are passed over.
--
-- No room is locked by a purge: a join reads the history and the floors in one
-- statement, so in one snapshot, and sees a session either there or purged.
create function leasehold.purge(
    p_older_than interval,
    p_max_events integer default 10000,
    p_webhooks_wait interval default '7 days',
    p_now timestamptz default null,
    out ran boolean,
    out generations_purged integer,
    out events_purged integer,
    out blocks_purged integer,
    out finished boolean
)
    language plpgsql
    -- Compiling the look at the feed would take longer than a batch.
    set jit = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_from leasehold.purges;
    v_end record;
    v_hold leasehold.feed_key;
    v_due record;
    v_imported tid[];
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
    select * into v_from from leasehold.purges;
    select * into v_end from leasehold.feed_end();
    v_hold := leasehold.webhooks_hold();

    -- Up to the first that is not due: what comes later in the feed is due later. What a clock that
    -- ran ahead has recorded is as old as what follows it.
    with looked as (
        select h.ctid as place, h.era, h.xact_id, h.event_id, h.kind,
               row_number() over in_order as step,
               h.recorded_at < v_now - p_older_than as is_old,
               bool_and((h.recorded_at < v_now - p_older_than or h.recorded_at > v_now)
                        and (v_hold is null or (h.era, h.xact_id, h.event_id)::leasehold.feed_key < v_hold
                             or h.recorded_at < v_now - p_older_than - p_webhooks_wait)) over in_order as may_go
          from leasehold.membership_events h
         where (h.era, h.xact_id, h.event_id) > (v_from.looked_era, v_from.looked_xact_id, v_from.looked_event_id)
           and (h.era, h.xact_id, h.event_id) < (v_end.settled_era, v_end.settled_xact_id, 0)
        window in_order as (order by h.era, h.xact_id, h.event_id rows unbounded preceding)
         order by h.era, h.xact_id, h.event_id
         limit p_max_events
    )
    select count(*) as events,
           array_agg(l.place) filter (where l.kind = 'ended') as ended,
           (array_agg((l.era, l.xact_id, l.event_id)::leasehold.feed_key order by l.step desc))[1] as last
      into v_due
      from looked l
     where l.step <= (select max(step) from looked where is_old and may_go);

    if v_due.events > 0 then
        update leasehold.purges
           set looked_era = (v_due.last).era, looked_xact_id = (v_due.last).xact_id, looked_event_id = (v_due.last).event_id;
    end if;
    -- What came from another database stands in no feed, in order of when it was recorded; all of
    -- its lifetimes are over, so nothing is passed over but joins whose ends were recorded later.
    v_imported := array(select h.ctid
                          from leasehold.membership_events h
                         where h.era = 0 and h.kind = 'ended'
                           and h.xact_id < leasehold.micros(v_now - p_older_than)::text::xid8
                         order by h.era, h.xact_id, h.event_id
                         limit p_max_events);
    if v_due.ended is not null or v_imported <> '{}' then
        with ended as (
            delete from leasehold.membership_events e
             where e.ctid = any (v_due.ended || v_imported)
            returning e.*
        ), joined as (
            delete from leasehold.membership_events j
             using ended e
             where j.user_id = e.user_id and j.room_id = e.room_id and j.epoch = e.epoch and j.kind = 'joined'
            returning j.room_id, j.generation
        ), epochs as (
            insert into leasehold.epoch_floors as f (room_id, user_id, epoch)
            select e.room_id, e.user_id, max(e.epoch)
              from ended e
             group by e.room_id, e.user_id
                on conflict (room_id, user_id) do update set epoch = greatest(f.epoch, excluded.epoch)
        ), closed as (
            delete from leasehold.closed_generations g
             using ended e
             where g.room_id = e.room_id and g.generation = e.generation and g.closed_version = e.version
            returning g.room_id, g.generation, g.closed_version
        ), generations as (
            insert into leasehold.generation_floors as f (room_id, generation)
            select c.room_id, max(c.generation)
              from closed c
             group by c.room_id
                on conflict (room_id) do update set generation = greatest(f.generation, excluded.generation)
        ), whole as (
            delete from leasehold.generation_purges p
             using closed c
             where p.room_id = c.room_id and p.generation = c.generation
        ), parts as (
            insert into leasehold.generation_purges as p (room_id, generation, events_purged, purged_until)
            select a.room_id, a.generation, count(*), max(a.ended_at)
              from (select e.room_id, e.generation, e.occurred_at as ended_at from ended e
                    union all
                    select j.room_id, j.generation, null from joined j) a
             where not exists (select from closed c where c.room_id = a.room_id and c.generation = a.generation)
             group by a.room_id, a.generation
                on conflict (room_id, generation) do update
               set events_purged = p.events_purged + excluded.events_purged,
                   purged_until = greatest(p.purged_until, excluded.purged_until)
        ), mark as (
            update leasehold.purges
               set purged_era = h.era, purged_xact_id = h.xact_id, purged_event_id = h.event_id,
                   -- What closed its room is one item more in the feed.
                   purged_part = case when exists (select from closed c
                                                    where c.room_id = h.room_id and c.generation = h.generation
                                                      and c.closed_version = h.version) then 2 else 1 end,
                   purged_mark = leasehold.feed_mark(h.recorded_at)
              from (select * from ended e where e.era > 0 order by e.era desc, e.xact_id desc, e.event_id desc limit 1) h
        )
        select (select count(*) from ended) + (select count(*) from joined), (select count(*) from closed)
          into events_purged, generations_purged;
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

    finished := blocks_purged < p_max_events and v_due.events < p_max_events
                and cardinality(v_imported) < p_max_events;
end
$$;

comment on function leasehold.purge(interval, integer, interval, timestamptz) is
    'One batch of forgetting: looks at up to p_max_events events and removes the sessions whose end was recorded longer ago than p_older_than, with a lifetime once its last is among them; and blocks that have ended. What a running transaction may still add to is left for the next time, and what a webhook has yet to deliver for p_webhooks_wait longer. Call it again until finished; ran is false where another purge is under way. Locks what it removes.';

create function leasehold.erase_user(
    p_user_id text,
    p_now timestamptz default null,
    out room_ids text[],
    out sessions_erased integer,
    out members_expired integer
)
    language plpgsql
as $$
declare
    v_pseudonym text := 'erased-' || gen_random_uuid();
begin
    -- A purge finds events by their places, which an update moves.
    perform pg_advisory_xact_lock(hashtext('leasehold'), hashtext('purge'));
    -- From here to the end of the transaction nobody joins as this user.
    select r.room_ids, r.members_expired
      into room_ids, members_expired
      from leasehold.remove_user(p_user_id, p_now => p_now) r;

    insert into leasehold.erased_floors as f (person, epoch)
    select leasehold.erased_person(k.room_id, p_user_id), max(k.epoch)
      from (select e.room_id, e.epoch from leasehold.membership_events e where e.user_id = p_user_id
            union all
            select e.room_id, e.epoch from leasehold.epoch_floors e where e.user_id = p_user_id) k
     group by k.room_id
        on conflict (person) do update set epoch = greatest(f.epoch, excluded.epoch);
    update leasehold.epoch_floors set user_id = v_pseudonym where user_id = p_user_id;
    -- Of who was erased before and came back.
    insert into leasehold.epoch_floors (room_id, user_id, epoch)
    select e.room_id, v_pseudonym, min(e.epoch) - 1
      from leasehold.membership_events e
     where e.user_id = p_user_id
     group by e.room_id
    having min(e.epoch) > 1
        on conflict (room_id, user_id) do nothing;

    update leasehold.membership_events
       set user_id = v_pseudonym, device_id = '', join_id = null, info = null, note = null
     where user_id = p_user_id;
    get diagnostics sessions_erased = row_count;
    -- Nobody is there any more, so each has its join and its end.
    sessions_erased := sessions_erased / 2;
    update leasehold.membership_events set ended_by = v_pseudonym where ended_by = p_user_id;
    update leasehold.blocks set blocked_by = v_pseudonym where blocked_by = p_user_id;
    insert into leasehold.erasures (erased_at, sessions_erased)
    values (coalesce(p_now, clock_timestamp()), erase_user.sessions_erased);
end
$$;

comment on function leasehold.erase_user(text, timestamptz) is
    'Ends a user''s sessions in all rooms and makes their history nobody''s: a pseudonym that is written down nowhere else takes the place of their id, and their devices, join ids, info and the notes on their ends go. Their epochs still rise should they come back. The same pseudonym stands for them where they decided about others. Blocks of them hold until they end, under their id. Answers the room of each session that it ended, and how many sessions there were in all. Waits for a purge under way, then the locks of remove_user, to the end of the transaction. Run it at read committed. Errors: 40001, 40P01, 55P03.';
