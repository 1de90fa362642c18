-- Forgetting: closed generations go with their events, and leave behind what
-- keeps epochs and generations from ever going back.
--
-- No room is locked: a join reads the history and the floors in one statement,
-- so in one snapshot, and sees a generation either there or purged.

create table leasehold.purges (
    only_row        boolean not null default true,
    purged_xact_id  xid8,
    purged_event_id bigint,
    purged_part     integer,

    constraint purges_pkey primary key (only_row),
    constraint purges_one_row check (only_row),
    constraint purges_position_whole check (num_nulls(purged_xact_id, purged_event_id, purged_part) in (0, 3))
);
insert into leasehold.purges default values;

comment on table leasehold.purges is
    'One row: the highest position in the feed that was ever purged; null while none was. A reader of the feed that stands before it has missed something.';

create index blocks_by_end on leasehold.blocks (blocked_until);

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
    'One batch of forgetting: removes generations that closed longer ago than p_older_than, with their events, whole ones and so many that about p_max_events go; and blocks that have ended. Call it again until finished; ran is false where another purge is under way.';

-- Epochs and generations are numbered without a gap, so what is missing below
-- the oldest that is kept was purged, and must have left a floor.
alter function leasehold.verify() rename to verify_membership;
comment on function leasehold.verify_membership() is
    'Internal. The part of verify that looks at rooms, members and the history that is kept.';

create function leasehold.verify()
    returns table (invariant integer, room_id text, user_id text, detail text)
    language sql stable
as $$
    select v.invariant, v.room_id, v.user_id, v.detail from leasehold.verify_membership() v
    union all
    select 2, e.room_id, e.user_id,
           format('the epochs before %s are purged, but the floor is %s', e.epoch, coalesce(f.epoch, 0))
      from (select e.room_id, e.user_id, min(e.epoch) as epoch
              from leasehold.membership_events e
             group by e.room_id, e.user_id) e
      left join leasehold.epoch_floors f on f.room_id = e.room_id and f.user_id = e.user_id
     where coalesce(f.epoch, 0) < e.epoch - 1
    union all
    select 6, g.room_id, null,
           format('the generations before %s are purged, but the floor is %s', g.generation, coalesce(f.generation, 0))
      from (select g.room_id, min(g.generation) as generation
              from leasehold.room_generations g
             group by g.room_id) g
      left join leasehold.generation_floors f on f.room_id = g.room_id
     where coalesce(f.generation, 0) < g.generation - 1
$$;

comment on function leasehold.verify() is
    'Violations of the invariants 1, 2, 5, 6 and 7 of the design; none where all is well.';
