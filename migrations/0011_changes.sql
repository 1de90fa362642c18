-- The history as an ordered feed, for readers that come back with a position.
--
-- Transactions commit in another order than they write. A place in the feed is
-- therefore a transaction's id first, and a read stops before the oldest
-- transaction that still runs: before it nothing can be added any more. A
-- transaction takes its id before it is granted a room's lock, so the id is that
-- of the room's change before it where that is higher: never below the writer's,
-- so nothing is added behind a reader, and in each room in the order of its life.
--
-- Two things can befall a history: to be rolled back (a backup, a standby that
-- lagged), and to go on in a cluster whose transaction ids are elsewhere. So a
-- position names its database, its era, and a mark of the event that it stands at.
--
-- Era 0 is before the feed: the history that came with a room from another database,
-- which has told it. So the feeds of all databases together tell each change once.

create function leasehold.settled_xact_id()
    returns xid8
    language sql stable
as $$
    -- Only what is seen to run in another database is left out; what cannot be
    -- placed, or has ended since the snapshot, may have written here.
    select coalesce(
        (select running
           from pg_snapshot_xip(pg_current_snapshot()) as running
          where not exists (select from pg_stat_activity a
                             where a.backend_xid = running::xid
                               and a.datid <> (select oid from pg_database where datname = current_database()))
            and not exists (select from pg_prepared_xacts p
                             where p.transaction = running::xid and p.database <> current_database())
          order by running
          limit 1),
        pg_snapshot_xmax(pg_current_snapshot()))
$$;

comment on function leasehold.settled_xact_id() is
    'Internal. Every transaction of this database below it has ended, and this snapshot sees it: the oldest that still runs here, or the next to begin.';

create function leasehold.feed_mark(p_recorded_at timestamptz)
    returns text
    language sql immutable parallel safe
    return lpad(to_hex(leasehold.micros(p_recorded_at) & 4294967295), 8, '0');

comment on function leasehold.feed_mark(timestamptz) is
    'Internal. What only the same history has at the same place: when the event there was recorded, to 71 minutes.';

create function leasehold.position_text(
    p_name text,
    p_era integer,
    p_xact_id xid8,
    p_event_id bigint,
    p_part integer,
    p_mark text
)
    returns text
    language sql immutable parallel safe
    return concat_ws('.', p_name, p_era, p_xact_id, p_event_id, p_part, p_mark);

comment on function leasehold.position_text(text, integer, xid8, bigint, integer, text) is
    'Internal. How a position is written. Part 0 opens the room, 1 is the event itself, 2 closes the room or is behind all of it.';

create function leasehold.position_key(p_position text)
    returns leasehold.feed_key
    language sql immutable parallel safe
    return (split_part(p_position, '.', 2)::integer, split_part(p_position, '.', 3)::xid8,
            split_part(p_position, '.', 4)::bigint)::leasehold.feed_key;

comment on function leasehold.position_key(text) is
    'Internal. The place of the event that a position stands at.';

create function leasehold.feed_place(
    p_position text,
    out era integer,
    out xact_id xid8,
    out event_id bigint,
    out part integer
)
    language plpgsql stable
as $$
declare
    -- Bounded so that every number fits its type.
    v_words text[] := regexp_match(
        p_position, '^([0-9a-f]{8})\.([0-9]{1,9})\.([0-9]{1,19})\.([0-9]{1,18})\.([012])\.([0-9a-f]{8})$');
    v_feed leasehold.feed;
    v_purges leasehold.purges;
    v_stands boolean;
begin
    if p_position is null then
        era := 1; xact_id := '0'; event_id := 0; part := 0;
        return;
    end if;
    if v_words is null then
        raise exception '% is not a position in the feed', p_position
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the next or a position of an earlier answer, latest, or null for the oldest that is kept.';
    end if;
    select k.era, k.xact_id, k.event_id into era, xact_id, event_id from leasehold.position_key(p_position) k;
    part := v_words[5];
    select * into v_feed from leasehold.feed;
    select * into v_purges from leasehold.purges;
    v_stands := v_words[1] = v_feed.name
        and case when v_purges.purged_era is null and event_id = 0 then true
                 when (era, xact_id, event_id) = (v_purges.purged_era, v_purges.purged_xact_id, v_purges.purged_event_id)
                      -- What the purged event said last: nothing of it is missed.
                      then part >= v_purges.purged_part and v_words[6] = v_purges.purged_mark
                 when (era, xact_id, event_id) < (v_purges.purged_era, v_purges.purged_xact_id, v_purges.purged_event_id)
                      then false
                 else exists (select from leasehold.membership_events e
                               where e.era = feed_place.era and e.xact_id = feed_place.xact_id
                                 and e.event_id = feed_place.event_id
                                 and leasehold.feed_mark(e.recorded_at) = v_words[6]) end;
    if v_stands then
        return;
    end if;
    raise exception 'the position % is not of what this history keeps', p_position
        using errcode = 'LH410',
              hint = 'What follows it is purged in part, or it is of another database or of a history that was rolled back. Take stock anew, and go on from latest or from null.';
end
$$;

comment on function leasehold.feed_place(text) is
    'Internal. Where in the feed a position stands; null is before all that is kept. Errors: 22023 for a text that is no position, LH410 where what follows it cannot be told without a gap.';

create function leasehold.feed_end(
    out name text,
    out settled_era integer,
    out settled_xact_id xid8,
    out era integer,
    out xact_id xid8,
    out event_id bigint,
    out mark text,
    out more_is_coming boolean
)
    language sql stable
as $$
    select f.name, f.era, s.xact_id,
           coalesce(l.era, p.purged_era, 1), coalesce(l.xact_id, p.purged_xact_id, '0'),
           coalesce(l.event_id, p.purged_event_id, 0), coalesce(l.mark, p.purged_mark, '00000000'),
           -- In order, or the planner expects to meet one soon and reads the whole history.
           (select e.event_id
              from leasehold.membership_events e
             where e.era = f.era and e.xact_id >= s.xact_id
             order by e.era, e.xact_id, e.event_id
             limit 1) is not null
      from leasehold.feed f
     cross join leasehold.purges p
     cross join (select leasehold.settled_xact_id() as xact_id offset 0) s
      left join lateral (
           select e.era, e.xact_id, e.event_id, leasehold.feed_mark(e.recorded_at) as mark
             from leasehold.membership_events e
            where (e.era, e.xact_id, e.event_id) < (f.era, s.xact_id, 0)
              and e.era > 0
            order by e.era desc, e.xact_id desc, e.event_id desc
            limit 1) l
        -- A purge leaves what was joined long ago and goes on; its place may be the last.
        on p.purged_era is null
           or (l.era, l.xact_id, l.event_id) > (p.purged_era, p.purged_xact_id, p.purged_event_id)
$$;

comment on function leasehold.feed_end() is
    'Internal. Up to where the feed is settled, the last event before that (or what was purged last), and whether committed changes wait for an older transaction to end.';

create function leasehold.changes(
    p_after text default null,
    p_limit integer default 100,
    p_room_id text default null,
    p_prefix text default null,
    p_kinds text[] default null
)
    returns table (
        next text,
        "position" text,
        kind text,
        room_id text,
        generation bigint,
        version bigint,
        user_id text,
        device_id text,
        epoch bigint,
        reason text,
        member_count integer,
        ended_by text,
        note text,
        info jsonb,
        last_seen_at timestamptz,
        at timestamptz,
        more_is_coming boolean
    )
    language plpgsql stable
    -- Whether there is a filter decides the plan. Compiling it would take a hundred times as long as a page.
    set plan_cache_mode = force_custom_plan
    set jit = off
as $$
#variable_conflict use_column
declare
    v_end record;
    v_after record;
    v_filtered boolean := num_nonnulls(p_room_id, p_prefix, p_kinds) > 0;
    -- A filter must not look through the whole history in one call.
    v_window integer := case when v_filtered then greatest(p_limit + 1, 10000) else p_limit + 1 end;
begin
    if p_limit < 1 is not false then
        raise exception 'the limit is less than 1'
            using errcode = 'invalid_parameter_value', hint = 'Pass how many items there may be, for instance 100.';
    end if;
    if not (p_kinds <@ array['room_opened', 'joined', 'ended', 'room_closed']) then
        raise exception 'there is a kind that is none'
            using errcode = 'invalid_parameter_value', hint = 'room_opened, joined, ended and room_closed are.';
    end if;
    -- All of this function sees the snapshot of its caller's statement.
    select * into v_end from leasehold.feed_end();
    if p_after = 'latest' then
        return query
            select leasehold.position_text(v_end.name, v_end.era, v_end.xact_id, v_end.event_id, 2, v_end.mark),
                   null, null, null, null::bigint, null::bigint, null, null, null::bigint, null, null::integer, null, null,
                   null::jsonb, null::timestamptz, null::timestamptz, v_end.more_is_coming;
        return;
    end if;
    select * into v_after from leasehold.feed_place(p_after);

    return query
    with looked as materialized (
        select h.*
          from leasehold.membership_events h
         where (h.era, h.xact_id, h.event_id) >= (v_after.era, v_after.xact_id, v_after.event_id)
           and (h.era, h.xact_id, h.event_id) < (v_end.settled_era, v_end.settled_xact_id, 0)
         order by h.era, h.xact_id, h.event_id
         limit v_window
    ), item as materialized (
        -- One event is up to two items: part 0 opens the room, 1 is the event itself, 2 closes the room.
        select e.era, e.xact_id, e.event_id, item.part, item.kind, e.room_id, e.generation, e.version,
               item.user_id, item.device_id, item.epoch, item.reason, item.member_count, item.ended_by, item.note,
               item.last_seen_at, item.at, leasehold.feed_mark(e.recorded_at) as mark
          from looked e
          left join lateral (
               -- Per event, by key: the number of events is unknown to the planner, that of lifetimes large.
               select c.close_reason, c.closed_at
                 from leasehold.closed_generations c
                where c.room_id = e.room_id and c.generation = e.generation and c.closed_version = e.version
                limit 1) g on e.kind = 'ended' and e.member_count = 0
         cross join lateral (values
               (0, 'room_opened', null, null, null::bigint, null, 0, null, null, null::timestamptz, e.occurred_at),
               (1, e.kind, e.user_id, e.device_id, e.epoch, e.reason, e.member_count, e.ended_by, e.note, e.last_seen_at, e.occurred_at),
               (2, 'room_closed', null, null, null, g.close_reason, e.member_count, e.ended_by, e.note, null, g.closed_at)
               ) as item (part, kind, user_id, device_id, epoch, reason, member_count, ended_by, note, last_seen_at, at)
         where (item.part <> 0 or (e.kind = 'joined' and e.version = 1))
           and (item.part <> 2 or g.closed_at is not null)
           and (e.era, e.xact_id, e.event_id, item.part) > (v_after.era, v_after.xact_id, v_after.event_id, v_after.part)
           and (p_room_id is null or e.room_id = p_room_id)
           and (p_prefix is null or starts_with(e.room_id, p_prefix))
           and (p_kinds is null or item.kind = any (p_kinds))
         order by e.era, e.xact_id, e.event_id, item.part
         limit p_limit
    ), reached as (
        select case when (select count(*) from item) = p_limit then
                         (select leasehold.position_text(v_end.name, i.era, i.xact_id, i.event_id, i.part, i.mark)
                            from item i order by i.era desc, i.xact_id desc, i.event_id desc, i.part desc limit 1)
                    when (select count(*) from looked) = v_window then
                         (select leasehold.position_text(v_end.name, l.era, l.xact_id, l.event_id, 2, leasehold.feed_mark(l.recorded_at))
                            from looked l order by l.era desc, l.xact_id desc, l.event_id desc limit 1)
                    -- Who asks a standby that lags, or the same snapshot again, may stand behind its end.
                    when (v_after.era, v_after.xact_id, v_after.event_id) > (v_end.era, v_end.xact_id, v_end.event_id) then p_after
                    else leasehold.position_text(v_end.name, v_end.era, v_end.xact_id, v_end.event_id, 2, v_end.mark)
               end as next,
               (select count(*) from looked) = v_window or v_end.more_is_coming as more_is_coming
    )
    select r.next, leasehold.position_text(v_end.name, i.era, i.xact_id, i.event_id, i.part, i.mark),
           i.kind, i.room_id, i.generation, i.version, i.user_id, i.device_id, i.epoch, i.reason, i.member_count,
           i.ended_by, i.note,
           (select j.info from leasehold.membership_events j
             where j.user_id = i.user_id and j.room_id = i.room_id and j.epoch = i.epoch and j.kind = 'joined'),
           i.last_seen_at, i.at, r.more_is_coming
      from reached r
      left join item i on true
     order by i.era, i.xact_id, i.event_id, i.part;
end
$$;

comment on function leasehold.changes(text, integer, text, text, text[]) is
    'Up to p_limit items of the feed after a position (null: the oldest kept): room_opened, joined, ended, room_closed, only those of a room, of rooms that start alike, or of some kinds, where asked for. Each row says where to go on (next), and so does the one row of a page without items, whose kind is null; latest is such a page. Ordered, each room in the order of its life, without gaps and repetitions whatever commits meanwhile. more_is_coming says that there is more at once or in a moment, be the page empty or not. Locks nothing. Errors: 22023, LH410 where what follows the position cannot be told without a gap.';

create function leasehold.changes_lag_seconds()
    returns double precision
    language sql stable
as $$
    select coalesce(
        (select greatest(extract(epoch from clock_timestamp() - e.recorded_at), 0)
           from leasehold.membership_events e
          where e.era = (select f.era from leasehold.feed f) and e.xact_id >= (select leasehold.settled_xact_id())
          order by e.xact_id, e.event_id
          limit 1), 0)::double precision
$$;

comment on function leasehold.changes_lag_seconds() is
    'Internal. For how long the oldest committed change has waited for an older transaction to end before readers of the feed are shown it; 0 where none waits.';

create function leasehold.open_transactions()
    returns table (
        holder text,
        oldest_seconds double precision,
        oldest_transactions bigint,
        unseen bigint
    )
    language sql stable
as $$
    -- Ids and snapshots of others are shown to every role, when they began only to theirs and to
    -- pg_read_all_stats. What belongs to no database is a standby, which has no beginning.
    with sessions as (
        select a.xact_start as began_at, greatest(age(a.backend_xid), age(a.backend_xmin)) as transactions,
               a.datid is null as is_standby
          from pg_stat_activity a
         where a.pid <> pg_backend_pid()
           and num_nonnulls(a.backend_xid, a.backend_xmin) > 0
           and (a.datid is null or a.datid = (select oid from pg_database where datname = current_database()))
           -- A vacuum holds nothing back.
           and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
    ), held as (
        select 'session' as holder, began_at, transactions from sessions where not is_standby
        union all
        select 'standby', clock_timestamp(), transactions from sessions where is_standby
        union all
        select 'prepared', prepared, age(transaction) from pg_prepared_xacts where database = current_database()
        union all
        select 'slot', clock_timestamp(), age(xmin) from pg_replication_slots where xmin is not null
    )
    select k.holder,
           coalesce(max(greatest(extract(epoch from clock_timestamp() - held.began_at), 0)), 0)::double precision,
           coalesce(max(held.transactions), 0)::bigint,
           count(*) filter (where held.holder is not null and held.began_at is null)
      from unnest(array['session', 'prepared', 'standby', 'slot']) as k (holder)
      left join held on held.holder = k.holder
     group by k.holder
$$;

comment on function leasehold.open_transactions() is
    'Internal. What keeps dead rows or holds back the feed of this database: for each kind of holder since when its oldest transaction is open, how many have begun since its oldest, and of how many this role may not see when they began. A row each for session, prepared, standby and slot.';

create function leasehold.renumber_changes()
    returns integer
    language plpgsql
as $$
declare
    v_era integer;
begin
    -- Every change locks its room first, and reads the era after that.
    lock table leasehold.rooms in exclusive mode;
    update leasehold.feed
       set era = era + 1, system_identifier = (pg_control_system()).system_identifier
    returning era into v_era;
    update leasehold.rooms set last_xact_id = '0';
    return v_era;
end
$$;

comment on function leasehold.renumber_changes() is
    'Run once after a logical restore into another cluster, whose transaction ids start elsewhere: begins an era, and all of the restored history stands before what it writes. Answers the era. Positions from before hold as far as the history was restored. Waits for changes that are under way and holds up all others to the end of the transaction. Errors: 55P03, 40P01.';
