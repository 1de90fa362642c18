-- The history as an ordered feed, for readers that come back with a position.
--
-- Transactions commit in another order than they write. A position is therefore
-- the writing transaction's id first, and a read stops before the oldest
-- transaction that still runs: before it nothing can be added any more.

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
          order by running
          limit 1),
        pg_snapshot_xmax(pg_current_snapshot()))
$$;

comment on function leasehold.settled_xact_id() is
    'Internal. Every transaction of this database below it has ended, and this snapshot sees it: the oldest that still runs here, or the next to begin.';

create function leasehold.changes(
    p_xact_id xid8,
    p_event_id bigint,
    p_part integer,
    p_limit integer default 100,
    p_settled_xact_id xid8 default null
)
    returns table (
        xact_id xid8,
        event_id bigint,
        part integer,
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
        at timestamptz
    )
    language sql stable
as $$
    -- One event is up to two items: part 0 opens the room, 1 is the event itself, 2 closes the room.
    select e.xact_id, e.event_id, item.part, item.kind, e.room_id, e.generation, e.version,
           item.user_id, item.device_id, item.epoch, item.reason, item.member_count, item.ended_by, item.note, item.at
      from (select h.*
              from leasehold.membership_events h
             where (h.xact_id, h.event_id) >= (p_xact_id, p_event_id)
               and h.xact_id < (select coalesce(p_settled_xact_id, leasehold.settled_xact_id()))
             order by h.xact_id, h.event_id
             limit p_limit + 1) e
      left join lateral (
           -- Per event, by key: the number of events is unknown to the planner, that of lifetimes large.
           select c.close_reason, c.closed_at
             from leasehold.room_generations c
            where c.room_id = e.room_id and c.generation = e.generation and c.closed_version = e.version
            limit 1) g on true
     cross join lateral (values
           (0, 'room_opened', null, null, null::bigint, null, 0, null, null, e.occurred_at),
           (1, e.kind, e.user_id, e.device_id, e.epoch, e.reason, e.member_count, e.ended_by, e.note, e.occurred_at),
           (2, 'room_closed', null, null, null, g.close_reason, e.member_count, e.ended_by, e.note, g.closed_at)
           ) as item (part, kind, user_id, device_id, epoch, reason, member_count, ended_by, note, at)
     where (item.part <> 0 or (e.kind = 'joined' and e.version = 1))
       and (item.part <> 2 or g.closed_at is not null)
       and (e.xact_id, e.event_id, item.part) > (p_xact_id, p_event_id, p_part)
     order by e.xact_id, e.event_id, item.part
     limit p_limit
$$;

comment on function leasehold.changes(xid8, bigint, integer, integer, xid8) is
    'Up to p_limit items of the feed after a position: room_opened, joined, ended, room_closed. Ordered, without gaps and repetitions whatever commits meanwhile. From the start: (''0'', 0, 0). The last argument is for a reader that knows where the feed is settled.';

create function leasehold.changes_state(
    p_xact_id xid8,
    p_event_id bigint,
    p_part integer,
    out settled_xact_id xid8,
    out position_expired boolean,
    out more_is_coming boolean
)
    language sql stable
as $$
    -- A position behind what this cluster has reached was given out by another one.
    select settled.xact_id,
           coalesce(p_xact_id > '0'
                    and (p_xact_id, p_event_id, p_part) < (p.purged_xact_id, p.purged_event_id, p.purged_part), false)
           or p_xact_id > pg_snapshot_xmax(pg_current_snapshot()),
           exists (select from leasehold.membership_events e
                    where e.xact_id >= settled.xact_id)
      from leasehold.purges p
     cross join (select leasehold.settled_xact_id() as xact_id offset 0) settled
$$;

comment on function leasehold.changes_state(xid8, bigint, integer) is
    'Internal. For a reader at a position: the transaction before which the feed is settled, whether the position is older than the purge or from another cluster, and whether committed changes wait for an older transaction to end.';

create function leasehold.changes_page(
    p_xact_id xid8,
    p_event_id bigint,
    p_part integer,
    p_limit integer default 100
)
    returns table (
        settled_xact_id xid8,
        position_expired boolean,
        more_is_coming boolean,
        xact_id xid8,
        event_id bigint,
        part integer,
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
        at timestamptz
    )
    language sql stable
as $$
    -- One judgement of what is settled, for the page and for where it ends.
    select s.settled_xact_id, s.position_expired, s.more_is_coming,
           c.xact_id, c.event_id, c.part, c.kind, c.room_id, c.generation, c.version,
           c.user_id, c.device_id, c.epoch, c.reason, c.member_count, c.ended_by, c.note, c.at
      from leasehold.changes_state(p_xact_id, p_event_id, p_part) s
      left join lateral leasehold.changes(p_xact_id, p_event_id, p_part, p_limit, s.settled_xact_id) c
        on not s.position_expired
     order by c.xact_id, c.event_id, c.part
$$;

comment on function leasehold.changes_page(xid8, bigint, integer, integer) is
    'Internal. The state of the feed for a reader at a position, with up to p_limit items after it: at least one row. Locks nothing.';

create function leasehold.changes_lag_seconds()
    returns double precision
    language sql stable
as $$
    select coalesce(
        (select greatest(extract(epoch from clock_timestamp() - e.recorded_at), 0)
           from leasehold.membership_events e
          where e.xact_id >= (select leasehold.settled_xact_id())
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
    returns bigint
    language plpgsql
as $$
declare
    v_events bigint;
begin
    update leasehold.membership_events set xact_id = '3';
    get diagnostics v_events = row_count;
    update leasehold.purges set purged_xact_id = null, purged_event_id = null, purged_part = null;
    return v_events;
end
$$;

comment on function leasehold.renumber_changes() is
    'Run once after a logical restore into another cluster, whose transaction ids start elsewhere: puts all restored history before whatever is written from now on, in its order. Positions that were given out before are void. Locks every event.';

-- TEMPORARY, until the feed's own function has this form.
create function leasehold.changes(p_after text default null, p_limit integer default 100, p_room_id text default null,
    p_prefix text default null, p_kinds text[] default null)
    returns table (next text, "position" text, kind text, room_id text, generation bigint, version bigint,
        user_id text, device_id text, epoch bigint, reason text, member_count integer, ended_by text, note text,
        info jsonb, last_seen_at timestamptz, at timestamptz)
    language plpgsql stable
as $$
declare
    v_settled xid8 := leasehold.settled_xact_id();
    v_after text[] := case when p_after = 'latest' then array[v_settled::text, '0', '0']
                           else string_to_array(coalesce(p_after, '0.0.0'), '.') end;
    v_next text := v_settled::text || '.0.0';
begin
    if cardinality(v_after) <> 3 or p_after !~ '^([0-9]+\.[0-9]+\.[0-9]+|latest)$' then
        raise exception 'not a position' using errcode = '22023';
    end if;
    if (select s.position_expired from leasehold.changes_state(v_after[1]::xid8, v_after[2]::bigint, v_after[3]::integer) s) then
        raise exception 'expired' using errcode = 'LH410';
    end if;
    return query
    with page as (
        select c.* from leasehold.changes(v_after[1]::xid8, v_after[2]::bigint, v_after[3]::integer, p_limit, v_settled) c
    ), ends as (
        select case when count(*) >= p_limit
               then (select p.xact_id::text || '.' || p.event_id || '.' || p.part from page p order by p.xact_id desc, p.event_id desc, p.part desc limit 1)
               else v_next end as next from page
    )
    select e.next, p.xact_id::text || '.' || p.event_id || '.' || p.part, p.kind, p.room_id, p.generation, p.version,
        p.user_id, p.device_id, p.epoch, p.reason, p.member_count, p.ended_by, p.note, null::jsonb, null::timestamptz, p.at
      from ends e left join page p on (p_room_id is null or p.room_id = p_room_id)
        and (p_prefix is null or p.room_id like p_prefix || '%') and (p_kinds is null or p.kind = any (p_kinds))
     order by p.xact_id, p.event_id, p.part;
end
$$;
comment on function leasehold.changes(text, integer, text, text, text[]) is 'Internal. Temporary.';
