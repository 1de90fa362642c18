-- The schema leasehold as the migrations leave it; written by `make schema`,
-- compared by a test, and not to be run.

create table leasehold.blocks (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    blocked_until timestamp with time zone not null,
    constraint blocks_pkey PRIMARY KEY (room_id, user_id),
    constraint blocks_room_id_form CHECK (leasehold.is_id(room_id)),
    constraint blocks_user_id_form CHECK (leasehold.is_id(user_id))
);
CREATE INDEX blocks_by_end ON leasehold.blocks USING btree (blocked_until);
comment on table leasehold.blocks is
    'Who may not join a room, and until when: a removal that holds for a time.';

create table leasehold.epoch_floors (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    epoch bigint not null,
    constraint epoch_floors_pkey PRIMARY KEY (room_id, user_id)
);
comment on table leasehold.epoch_floors is
    'The highest epoch of a room and user among purged history.';

create table leasehold.generation_floors (
    room_id text collate "C" not null,
    generation bigint not null,
    constraint generation_floors_pkey PRIMARY KEY (room_id)
);
comment on table leasehold.generation_floors is
    'The highest generation of a room among purged history.';

create table leasehold.members (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    device_id text collate "C" not null,
    epoch bigint not null,
    arrival bigint not null,
    joined_at timestamp with time zone not null,
    last_seen_at timestamp with time zone not null,
    lease_expires_at timestamp with time zone not null,
    disconnected_at timestamp with time zone,
    lease_ms integer not null,
    cursor jsonb,
    metadata jsonb,
    constraint members_pkey PRIMARY KEY (room_id, user_id, device_id),
    constraint members_lease_ms_positive CHECK ((lease_ms >= 1)),
    constraint members_room_fkey FOREIGN KEY (room_id) REFERENCES leasehold.rooms(room_id)
) with (fillfactor=60, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=1);
CREATE INDEX members_by_user ON leasehold.members USING btree (user_id, room_id);
comment on table leasehold.members is
    'The sessions that hold a lease: one row per room, user and device. A person with several devices has several.';
comment on column leasehold.members.device_id is
    'Empty for the one unnamed device.';
comment on column leasehold.members.arrival is
    'The room''s version at which this person arrived, kept over reconnects and devices: the order of the list.';
comment on column leasehold.members.lease_expires_at is
    'The last instant at which the member lives; see leasehold.lease_expired.';
comment on column leasehold.members.disconnected_at is
    'When the transport was reported lost; a heartbeat clears it.';

create table leasehold.membership_events (
    event_id bigint not null generated always as identity,
    xact_id xid8 not null default pg_current_xact_id(),
    room_id text collate "C" not null,
    generation bigint not null,
    version bigint not null,
    user_id text collate "C" not null,
    device_id text collate "C" not null,
    epoch bigint not null,
    kind text not null,
    reason text,
    occurred_at timestamp with time zone not null,
    recorded_at timestamp with time zone not null,
    last_seen_at timestamp with time zone,
    constraint membership_events_pkey PRIMARY KEY (room_id, generation, version),
    constraint membership_events_once UNIQUE (user_id, room_id, epoch, kind),
    constraint membership_events_epoch_positive CHECK ((epoch >= 1)),
    constraint membership_events_ids_well_formed CHECK (((kind <> 'joined'::text) OR (leasehold.is_id(room_id) AND leasehold.is_id(user_id) AND ((device_id = ''::text) OR leasehold.is_id(device_id))))),
    constraint membership_events_kind_known CHECK ((((kind = 'joined'::text) AND (reason IS NULL) AND (last_seen_at IS NULL)) OR ((kind = 'ended'::text) AND (reason IS NOT NULL) AND (last_seen_at IS NOT NULL)))),
    constraint membership_events_reason_known CHECK ((reason = ANY (ARRAY['left'::text, 'expired'::text, 'superseded'::text, 'removed'::text, 'room_closed'::text])))
) with (autovacuum_vacuum_insert_scale_factor=0.1);
CREATE INDEX membership_events_in_commit_order ON leasehold.membership_events USING btree (xact_id, event_id);
comment on table leasehold.membership_events is
    'Append-only: every join and every end of a session, once, in the transaction that made it so.';
comment on column leasehold.membership_events.xact_id is
    'The transaction that wrote it: lets a reader of the feed stop before the oldest one still running.';
comment on column leasehold.membership_events.occurred_at is
    'When it became true; for an expiry the end of the lease, however late it was recorded.';
comment on column leasehold.membership_events.recorded_at is
    'When it was written.';
comment on column leasehold.membership_events.last_seen_at is
    'On an end: the session''s last heartbeat.';

create table leasehold.purges (
    only_row boolean not null default true,
    purged_xact_id xid8,
    purged_event_id bigint,
    purged_part integer,
    constraint purges_pkey PRIMARY KEY (only_row),
    constraint purges_one_row CHECK (only_row),
    constraint purges_position_whole CHECK ((num_nulls(purged_xact_id, purged_event_id, purged_part) = ANY (ARRAY[0, 3])))
);
comment on table leasehold.purges is
    'One row: the highest position in the feed that was ever purged; null while none was. A reader of the feed that stands before it has missed something.';

create table leasehold.room_generations (
    room_id text collate "C" not null,
    generation bigint not null,
    opened_at timestamp with time zone not null,
    closed_at timestamp with time zone,
    close_reason text,
    closed_version bigint,
    peak_members integer,
    constraint room_generations_pkey PRIMARY KEY (room_id, generation),
    constraint room_generations_close_reason_known CHECK ((close_reason = ANY (ARRAY['left'::text, 'expired'::text, 'removed'::text, 'room_closed'::text]))),
    constraint room_generations_closed_whole CHECK ((num_nulls(closed_at, close_reason, closed_version, peak_members) = ANY (ARRAY[0, 4])))
);
CREATE INDEX room_generations_by_closed_at ON leasehold.room_generations USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE UNIQUE INDEX room_generations_one_open ON leasehold.room_generations USING btree (room_id) WHERE (closed_at IS NULL);
comment on table leasehold.room_generations is
    'One row per lifetime of a room; the columns of its end are null while it is open.';
comment on column leasehold.room_generations.close_reason is
    'How its last member ended.';
comment on column leasehold.room_generations.closed_version is
    'The version of the event that closed it.';

create table leasehold.rooms (
    room_id text collate "C" not null,
    generation bigint not null,
    version bigint not null,
    opened_at timestamp with time zone not null,
    next_expiry_at timestamp with time zone not null,
    member_count integer not null,
    peak_members integer not null,
    constraint rooms_pkey PRIMARY KEY (room_id),
    constraint rooms_generation_positive CHECK ((generation >= 1)),
    constraint rooms_member_count_within_peak CHECK (((member_count >= 0) AND (member_count <= peak_members))),
    constraint rooms_version_not_negative CHECK ((version >= 0))
) with (fillfactor=70);
comment on table leasehold.rooms is
    'The rooms that exist: one row each, present exactly as long as the room has a member.';
comment on column leasehold.rooms.generation is
    'Which lifetime of the room this is; strictly increasing, also over purges.';
comment on column leasehold.rooms.version is
    'How many joins and ends this generation has seen; 0 only inside the transaction that opens it.';
comment on column leasehold.rooms.next_expiry_at is
    'A lower bound: no lease of the room ends before it. Lets a join skip looking for expired members.';
comment on column leasehold.rooms.member_count is
    'Persons with a row in members, whether or not their lease has ended since.';

create table leasehold.schema_compatibility (
    migration bigint not null,
    serves_from bigint not null,
    constraint schema_compatibility_pkey PRIMARY KEY (migration),
    constraint schema_compatibility_not_newer CHECK (((serves_from >= 1) AND (serves_from <= migration)))
);
comment on table leasehold.schema_compatibility is
    'Which older programs a migration works with: those that know the migration serves_from. Without a row: none.';

create table leasehold.sweeps (
    only_row boolean not null default true,
    last_swept_at timestamp with time zone,
    constraint sweeps_pkey PRIMARY KEY (only_row),
    constraint sweeps_one_row CHECK (only_row)
);
comment on table leasehold.sweeps is
    'One row: when a sweep last found nothing more to do. Its age is how late the history may be.';

create view leasehold.live_members as
 SELECT r.room_id,
    r.generation,
    m.user_id,
    m.device_id,
    m.epoch,
    m.joined_at,
    m.last_seen_at,
    m.lease_ms,
    m.lease_expires_at,
    m.disconnected_at,
    m.cursor,
    m.metadata
   FROM leasehold.rooms r
     JOIN leasehold.members m ON m.room_id = r.room_id
  WHERE NOT leasehold.lease_expired(m.lease_expires_at, clock_timestamp());
comment on view leasehold.live_members is
    'Who is here now: one row per session whose lease lives.';

create view leasehold.room_lifetimes as
 SELECT g.room_id,
    g.generation,
    g.opened_at,
    COALESCE(g.closed_at, lapsed.closed_at) AS closed_at,
    COALESCE(g.close_reason,
        CASE
            WHEN lapsed.closed_at IS NOT NULL THEN 'expired'::text
            ELSE NULL::text
        END) AS close_reason,
    COALESCE(g.peak_members, r.peak_members) AS peak_members
   FROM leasehold.room_generations g
     LEFT JOIN leasehold.rooms r ON r.room_id = g.room_id AND r.generation = g.generation
     LEFT JOIN LATERAL ( SELECT max(m.lease_expires_at) AS closed_at
           FROM leasehold.members m
          WHERE m.room_id = r.room_id
         HAVING leasehold.lease_expired(max(m.lease_expires_at), clock_timestamp())) lapsed ON true;
comment on view leasehold.room_lifetimes is
    'One row per lifetime of a room; closed_at is null while a member lives.';

create view leasehold.sessions as
 SELECT j.room_id,
    j.generation,
    j.user_id,
    j.device_id,
    j.epoch,
    j.occurred_at AS joined_at,
    COALESCE(e.occurred_at, lapsed.lease_expires_at) AS ended_at,
    COALESCE(e.reason,
        CASE
            WHEN lapsed.lease_expires_at IS NOT NULL THEN 'expired'::text
            ELSE NULL::text
        END) AS end_reason,
    COALESCE(e.last_seen_at, m.last_seen_at) AS last_seen_at,
    e.recorded_at AS end_recorded_at,
    j.version AS joined_version,
    j.event_id AS joined_event_id
   FROM leasehold.membership_events j
     LEFT JOIN leasehold.membership_events e ON e.room_id = j.room_id AND e.user_id = j.user_id AND e.epoch = j.epoch AND e.kind = 'ended'::text
     LEFT JOIN leasehold.members m ON m.room_id = j.room_id AND m.user_id = j.user_id AND m.device_id = j.device_id AND m.epoch = j.epoch
     LEFT JOIN LATERAL ( SELECT m.lease_expires_at
          WHERE leasehold.lease_expired(m.lease_expires_at, clock_timestamp())) lapsed ON true
  WHERE j.kind = 'joined'::text;
comment on view leasehold.sessions is
    'One row per epoch that was ever joined. A lease that has run out counts as ended, whether or not the sweep has recorded it (end_recorded_at).';

CREATE OR REPLACE FUNCTION leasehold.census(p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT active_rooms bigint, OUT active_members bigint, OUT oldest_lease_age_seconds double precision)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.census(p_now timestamp with time zone, OUT active_rooms bigint, OUT active_members bigint, OUT oldest_lease_age_seconds double precision) is
    'Live rooms and persons, and how long ago the longest unseen row was seen. Scans the members.';

CREATE OR REPLACE FUNCTION leasehold.changes(p_xact_id xid8, p_event_id bigint, p_part integer, p_limit integer DEFAULT 100, p_settled_xact_id xid8 DEFAULT NULL::xid8)
 RETURNS TABLE(xact_id xid8, event_id bigint, part integer, kind text, room_id text, generation bigint, version bigint, user_id text, device_id text, epoch bigint, reason text, at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    -- One event is up to two items: part 0 opens the room, 1 is the event itself, 2 closes the room.
    select e.xact_id, e.event_id, item.part, item.kind, e.room_id, e.generation, e.version,
           item.user_id, item.device_id, item.epoch, item.reason, item.at
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
           (0, 'room_opened', null, null, null::bigint, null, e.occurred_at),
           (1, e.kind, e.user_id, e.device_id, e.epoch, e.reason, e.occurred_at),
           (2, 'room_closed', null, null, null, g.close_reason, g.closed_at)
           ) as item (part, kind, user_id, device_id, epoch, reason, at)
     where (item.part <> 0 or (e.kind = 'joined' and e.version = 1))
       and (item.part <> 2 or g.closed_at is not null)
       and (e.xact_id, e.event_id, item.part) > (p_xact_id, p_event_id, p_part)
     order by e.xact_id, e.event_id, item.part
     limit p_limit
$function$;
comment on function leasehold.changes(p_xact_id xid8, p_event_id bigint, p_part integer, p_limit integer, p_settled_xact_id xid8) is
    'Up to p_limit items of the feed after a position: room_opened, joined, ended, room_closed. Ordered, without gaps and repetitions whatever commits meanwhile. From the start: (''0'', 0, 0). The last argument is for a reader that knows where the feed is settled.';

CREATE OR REPLACE FUNCTION leasehold.changes_state(p_xact_id xid8, p_event_id bigint, p_part integer, OUT settled_xact_id xid8, OUT cursor_expired boolean, OUT more_is_coming boolean)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
    -- A position behind what this cluster has reached was given out by another one.
    select settled.xact_id,
           coalesce(p_xact_id > '0'
                    and (p_xact_id, p_event_id, p_part) < (p.purged_xact_id, p.purged_event_id, p.purged_part), false)
           or p_xact_id > pg_snapshot_xmax(pg_current_snapshot()),
           exists (select from leasehold.membership_events e
                    where e.xact_id >= settled.xact_id)
      from leasehold.purges p
     cross join (select leasehold.settled_xact_id() as xact_id offset 0) settled
$function$;
comment on function leasehold.changes_state(p_xact_id xid8, p_event_id bigint, p_part integer, OUT settled_xact_id xid8, OUT cursor_expired boolean, OUT more_is_coming boolean) is
    'Internal. For a reader at a position: the transaction before which the feed is settled, whether the position is older than the purge or from another cluster, and whether committed changes wait for an older transaction to end.';

CREATE OR REPLACE FUNCTION leasehold.close_room(p_room_id text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT sessions_ended integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_held record;
begin
    v_held := leasehold.lock_rooms(array[p_room_id], p_now);
    -- All sessions in one pass, in the order in which heartbeats lock them.
    perform leasehold.lock_members(
                array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id), v_held.instant)
       from leasehold.members m
      where m.room_id = any (v_held.locked);
    perform leasehold.prune_due(v_held.locked, v_held.instant);
    sessions_ended := leasehold.end_sessions(p_room_id, null, null, 'room_closed', v_held.instant);
    outcome := case when sessions_ended > 0 then 'closed' else 'absent' end;
    if sessions_ended > 0 then
        perform leasehold.prune_locked(v_held.locked, v_held.instant);
    end if;
end
$function$;
comment on function leasehold.close_room(p_room_id text, p_now timestamp with time zone, OUT outcome text, OUT sessions_ended integer) is
    'Ends every session of a room and with them its generation. Outcomes: closed, or absent where nobody was in it. A join that comes later opens the next generation.';

CREATE OR REPLACE FUNCTION leasehold.departures(p_room_ids text[], p_generations bigint[], p_user_ids text[], p_arrivals bigint[])
 RETURNS TABLE(ord integer, epoch bigint, version bigint, reason text)
 LANGUAGE sql
 STABLE
AS $function$
    -- A stay is over at its first end that leaves no session of the person; the end of a
    -- superseded one is followed at once by the join that replaced it.
    select distinct on (q.ord) q.ord::integer, e.epoch, e.version, e.reason
      from unnest(p_room_ids, p_generations, p_user_ids, p_arrivals)
           with ordinality as q (room_id, generation, user_id, arrival, ord)
     cross join lateral (
           select h.epoch, h.version, h.reason,
                  sum(case h.kind when 'joined' then 1 else -1 end) over (order by h.version) as sessions
             from leasehold.membership_events h
            where h.user_id = q.user_id and h.room_id = q.room_id
              and h.generation = q.generation and h.version >= q.arrival) e
     where e.sessions = 0 and e.reason <> 'superseded'
     order by q.ord, e.version
$function$;
comment on function leasehold.departures(p_room_ids text[], p_generations bigint[], p_user_ids text[], p_arrivals bigint[]) is
    'Internal. How stays ended that began at these arrivals (members.arrival): the last session''s epoch and reason, and the version of its end. No row for a stay that goes on, or whose history is purged.';

CREATE OR REPLACE FUNCTION leasehold.disconnect_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE sql
AS $function$
    select (leasehold.disconnect_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], p_now))[1]
$function$;
comment on function leasehold.disconnect_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_now timestamp with time zone) is
    'Marks one member''s session, in the caller''s transaction. Outcomes as of disconnect_members.';

CREATE OR REPLACE FUNCTION leasehold.disconnect_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_rows tid[];
    v_lost integer[];
begin
    -- In the order of the heartbeats, so that the two cannot wait for each other.
    -- A locked row does not move, so the update below finds it by its place.
    select array_agg(l.ctid)
      into v_rows
      from (select m.ctid
              from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
                   as q (room_id, user_id, device_id, epoch)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
               and m.epoch = q.epoch
             order by m.room_id, m.user_id, m.device_id
               for no key update of m) l;
    v_now := coalesce(p_now, clock_timestamp());

    with lost as (
        -- The first report counts: since when the transport is lost.
        update leasehold.members m
           set disconnected_at = coalesce(m.disconnected_at, v_now)
         where m.ctid = any (v_rows)
           and not leasehold.lease_expired(m.lease_expires_at, v_now)
        returning m.room_id, m.user_id, m.device_id, m.epoch
    )
    select coalesce(array_agg(q.ord::integer), '{}')
      into v_lost
      from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
           with ordinality as q (room_id, user_id, device_id, epoch, ord)
      join lost using (room_id, user_id, device_id, epoch);

    return array(
        select case when q.ord = any (v_lost) then 'disconnected'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.device_id, q.epoch) end
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
               with ordinality as q (room_id, user_id, device_id, epoch, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.disconnect_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_now timestamp with time zone) is
    'Marks sessions whose transport was lost, one request per position of the arrays; no lease changes. Answers one outcome per request: disconnected, or as of stale_reason.';

CREATE OR REPLACE FUNCTION leasehold.end_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_reason text, p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_rows tid[];
begin
    -- In the order in which heartbeats lock them, so that neither waits for the other for ever.
    select array_agg(l.ctid)
      into v_rows
      from (select m.ctid
              from unnest(p_room_ids, p_user_ids, p_device_ids) as k (room_id, user_id, device_id)
              join leasehold.members m
                on m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
             order by m.room_id, m.user_id, m.device_id
               for update of m) l;

    with gone as (
        delete from leasehold.members m
         where m.ctid = any (v_rows)
        returning m.room_id, m.user_id, m.device_id, m.epoch, m.last_seen_at,
                  case when p_reason = 'expired' then m.lease_expires_at else p_now end as occurred_at
    ), numbered as (
        select gone.*,
               row_number() over (partition by room_id order by occurred_at, user_id, device_id) as step
          from gone
    ), person as (
        -- A person is gone with the last device; this snapshot still shows what was deleted above.
        select room_id,
               count(*) as sessions,
               count(*) = (select count(*)
                             from leasehold.members m
                            where m.room_id = gone.room_id and m.user_id = gone.user_id) as is_gone
          from gone
         group by room_id, user_id
    ), room as (
        update leasehold.rooms r
           set version = r.version + t.sessions,
               member_count = r.member_count - t.persons
          from (select room_id, sum(sessions) as sessions, count(*) filter (where is_gone) as persons
                  from person
                 group by room_id) t
         where r.room_id = t.room_id
    )
    -- By key, and not from the update above: this snapshot still shows the version before it.
    insert into leasehold.membership_events
           (room_id, generation, version, user_id, device_id, epoch,
            kind, reason, occurred_at, recorded_at, last_seen_at)
    select n.room_id, r.generation, r.version + n.step, n.user_id, n.device_id, n.epoch,
           'ended', p_reason, n.occurred_at, p_now, n.last_seen_at
      from numbered n
      join leasehold.rooms r on r.room_id = n.room_id
     order by n.room_id, n.step;
end
$function$;
comment on function leasehold.end_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_reason text, p_now timestamp with time zone) is
    'Internal. Removes sessions and records their end. The caller holds their rooms'' locks and prunes afterwards.';

CREATE OR REPLACE FUNCTION leasehold.end_sessions(p_room_id text, p_user_id text, p_epoch bigint, p_reason text, p_now timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[];
    v_users text[];
    v_devices text[];
begin
    select array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id)
      into v_rooms, v_users, v_devices
      from leasehold.members m
     where m.room_id = p_room_id
       and (p_user_id is null or m.user_id = p_user_id)
       and (p_epoch is null or m.epoch = p_epoch);
    if v_rooms is null then
        return 0;
    end if;
    perform leasehold.end_members(v_rooms, v_users, v_devices, p_reason, p_now);
    return cardinality(v_rooms);
end
$function$;
comment on function leasehold.end_sessions(p_room_id text, p_user_id text, p_epoch bigint, p_reason text, p_now timestamp with time zone) is
    'Internal. Ends the sessions of a room, or of one user in it, or the one with this epoch; says how many. The caller holds the room''s lock and prunes afterwards.';

CREATE OR REPLACE FUNCTION leasehold.heartbeat_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_lease_ms integer DEFAULT NULL::integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE sql
AS $function$
    select (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], array[p_lease_ms],
                p_now => p_now))[1]
$function$;
comment on function leasehold.heartbeat_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_lease_ms integer, p_now timestamp with time zone) is
    'Renews one member''s lease, in the caller''s transaction. Outcomes as of heartbeat_members.';

CREATE OR REPLACE FUNCTION leasehold.heartbeat_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_lease_ms integer[] DEFAULT '{}'::integer[], p_set_cursor boolean[] DEFAULT '{}'::boolean[], p_cursors jsonb[] DEFAULT '{}'::jsonb[], p_set_metadata boolean[] DEFAULT '{}'::boolean[], p_metadata jsonb[] DEFAULT '{}'::jsonb[], p_wait boolean DEFAULT true, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_asks_for_lease boolean := array_remove(p_lease_ms, null) <> '{}';
    v_rooms text[];
    v_held integer[];
    v_renewed integer[];
    v_rows tid[];
    v_first_expiry timestamptz;
begin
    -- A shorter lease lowers the room's next_expiry_at, which needs the room's lock, and rooms come first.
    if v_asks_for_lease then
        select h.locked
          into v_rooms
          from leasehold.lock_rooms(array(
                   select q.room_id from unnest(p_room_ids, p_lease_ms) as q (room_id, lease_ms)
                    where q.lease_ms is not null)) h;
    end if;

    -- In one order, so that two batches cannot wait for each other. Nothing below waits.
    if p_wait then
        perform
           from unnest(p_room_ids) with ordinality as q (room_id, ord)
           join leasehold.members m
             on m.room_id = q.room_id and m.user_id = p_user_ids[q.ord]
            and m.device_id = p_device_ids[q.ord] and m.epoch = p_epochs[q.ord]
          order by m.room_id, m.user_id, m.device_id
            for no key update of m;
    end if;

    -- A locked row does not move, so the updates below find it by its place. A room that was
    -- opened anew during the wait for rooms is not locked, and ended the sessions meant here.
    select array_agg(l.ctid), array_agg(l.ord::integer), min(l.lease_expires_at)
      into v_rows, v_held, v_first_expiry
      from (select m.ctid, q.ord, m.lease_expires_at
              from unnest(p_room_ids) with ordinality as q (room_id, ord)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = p_user_ids[q.ord]
               and m.device_id = p_device_ids[q.ord] and m.epoch = p_epochs[q.ord]
             where v_rooms is null or p_lease_ms[q.ord] is null or q.room_id = any (v_rooms)
               for no key update of m skip locked) l;
    v_now := coalesce(p_now, clock_timestamp());
    v_renewed := v_held;
    if leasehold.lease_expired(v_first_expiry, v_now) then
        select array_agg(l.ctid), array_agg(l.ord)
          into v_rows, v_renewed
          from unnest(v_rows, v_held) as l (ctid, ord)
          join leasehold.members m on m.ctid = l.ctid
         where not leasehold.lease_expired(m.lease_expires_at, v_now);
    end if;

    if v_asks_for_lease or true = any (p_set_cursor) or true = any (p_set_metadata) then
        -- An UPDATE changes a row once: of each thing, what the session asked for last.
        update leasehold.members m
           set last_seen_at = v_now,
               lease_ms = coalesce(p_lease_ms[l.lease], m.lease_ms),
               lease_expires_at = v_now + coalesce(p_lease_ms[l.lease], m.lease_ms) * interval '1 millisecond',
               disconnected_at = null,
               cursor = case when l.cursor is null then m.cursor else p_cursors[l.cursor] end,
               metadata = case when l.metadata is null then m.metadata else p_metadata[l.metadata] end
          from (select r.ctid,
                       max(r.ord) filter (where p_lease_ms[r.ord] is not null) as lease,
                       max(r.ord) filter (where p_set_cursor[r.ord]) as cursor,
                       max(r.ord) filter (where p_set_metadata[r.ord]) as metadata
                  from unnest(v_rows, v_renewed) as r (ctid, ord)
                 group by r.ctid) l
         where m.ctid = l.ctid;
    else
        -- What nearly all heartbeats are: nothing to look up for each row.
        update leasehold.members
           set last_seen_at = v_now,
               lease_expires_at = v_now + lease_ms * interval '1 millisecond',
               disconnected_at = null
         where ctid = any (v_rows);
    end if;

    if v_asks_for_lease then
        update leasehold.rooms r
           set next_expiry_at = q.first_expiry_at
          from (select q.room_id, v_now + min(q.lease_ms) * interval '1 millisecond' as first_expiry_at
                  from unnest(p_room_ids, p_lease_ms) with ordinality as q (room_id, lease_ms, ord)
                 where q.lease_ms is not null and q.ord = any (v_renewed)
                 group by q.room_id) q
         where r.room_id = q.room_id and r.next_expiry_at > q.first_expiry_at;
    end if;

    if cardinality(v_renewed) = cardinality(p_room_ids) then
        return array_fill('renewed'::text, array[cardinality(p_room_ids)]);
    end if;
    return array(
        select case when q.ord = any (v_renewed) then 'renewed'
                    when not p_wait and not coalesce(q.ord = any (v_held), false)
                         and exists (select from leasehold.members m
                                      where m.room_id = q.room_id and m.user_id = q.user_id
                                        and m.device_id = q.device_id and m.epoch = q.epoch) then 'busy'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.device_id, q.epoch) end
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
               with ordinality as q (room_id, user_id, device_id, epoch, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.heartbeat_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_lease_ms integer[], p_set_cursor boolean[], p_cursors jsonb[], p_set_metadata boolean[], p_metadata jsonb[], p_wait boolean, p_now timestamp with time zone) is
    'Renews leases, one request per position of the arrays and in that order; a cursor or metadata changes where its flag is set. Answers one outcome per request: renewed, or as of stale_reason; without p_wait also busy, where another transaction holds the session.';

CREATE OR REPLACE FUNCTION leasehold.held_rooms(p_room_ids text[])
 RETURNS boolean[]
 LANGUAGE plpgsql
AS $function$
declare
    v_free text[];
begin
    select coalesce(array_agg(r.room_id), '{}')
      into v_free
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
               for no key update skip locked) r;
    return array(
        select q.room_id <> all (v_free)
               and exists (select from leasehold.rooms r where r.room_id = q.room_id)
          from unnest(p_room_ids) with ordinality as q (room_id, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.held_rooms(p_room_ids text[]) is
    'Internal. For each of these rooms whether another transaction holds it at this moment; locks the others until the end of the transaction.';

CREATE OR REPLACE FUNCTION leasehold.is_id(p_id text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((char_length(p_id) >= 1) AND (char_length(p_id) <= 256)) AND (p_id !~ '[\u0001-\u001f\u007f-\u009f]'::text));
comment on function leasehold.is_id(p_id text) is
    'Whether a text can be a room, user or device id: 1 to 256 characters, no control characters.';

CREATE OR REPLACE FUNCTION leasehold.join_member(p_room_id text, p_user_id text, p_device_id text DEFAULT ''::text, p_lease_ms integer DEFAULT 15000, p_metadata jsonb DEFAULT NULL::jsonb, p_cursor jsonb DEFAULT NULL::jsonb, p_if_present text DEFAULT 'replace'::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(outcome text, epoch bigint, generation bigint, lease_expires_at timestamp with time zone, as_of timestamp with time zone)
 LANGUAGE sql
AS $function$
    select j.outcome, j.epoch, j.generation, j.lease_expires_at, j.as_of
      from leasehold.join_members(
               array[p_room_id], array[p_user_id], array[p_device_id], array[p_lease_ms],
               array[p_metadata], array[p_cursor], array[p_if_present], p_now => p_now) j
$function$;
comment on function leasehold.join_member(p_room_id text, p_user_id text, p_device_id text, p_lease_ms integer, p_metadata jsonb, p_cursor jsonb, p_if_present text, p_now timestamp with time zone) is
    'Joins one member, in the caller''s transaction. Outcomes as of join_members.';

CREATE OR REPLACE FUNCTION leasehold.join_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_ms integer[], p_metadata jsonb[], p_cursors jsonb[], p_if_present text[], p_max_members integer DEFAULT NULL::integer, p_max_devices integer DEFAULT NULL::integer, p_max_rooms integer DEFAULT NULL::integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(ord integer, outcome text, epoch bigint, generation bigint, lease_expires_at timestamp with time zone, as_of timestamp with time zone)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_start integer := 1;
    v_end integer := cardinality(p_room_ids);
    v_again record;
    v_no_room text[] := '{}';
    v_unopened text[];
begin
    v_now := leasehold.open_rooms(p_room_ids, p_user_ids, p_device_ids, p_now);

    for v_again in
        select a.ord, a.previous
          from (select q.ord::integer as ord,
                       lag(q.ord::integer) over (partition by q.room_id, q.user_id order by q.ord) as previous
                  from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                 union all
                select v_end + 1, v_end) a
         where a.previous is not null
         order by a.ord
    loop
        continue when v_again.previous < v_start;
        exit when v_start = 1 and v_again.ord > v_end;
        return query
        select v_start - 1 + j.ord, j.outcome, j.epoch, j.generation, j.lease_expires_at, j.as_of
          from leasehold.join_members(
                   p_room_ids[v_start:v_again.ord - 1], p_user_ids[v_start:v_again.ord - 1],
                   p_device_ids[v_start:v_again.ord - 1], p_lease_ms[v_start:v_again.ord - 1],
                   p_metadata[v_start:v_again.ord - 1], p_cursors[v_start:v_again.ord - 1],
                   p_if_present[v_start:v_again.ord - 1],
                   p_max_members, p_max_devices, p_max_rooms, v_now) j;
        v_start := v_again.ord;
    end loop;
    if v_start > 1 then
        return;
    end if;

    if p_max_rooms is not null then
        select coalesce(array_agg(n.room_id), '{}')
          into v_no_room
          from (select q.room_id, row_number() over (order by min(q.ord)) as rank
                  from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                  join leasehold.rooms r on r.room_id = q.room_id and r.version = 0
                 where not exists (select from leasehold.blocks b
                                    where b.room_id = q.room_id and b.user_id = q.user_id
                                      and b.blocked_until > v_now)
                 group by q.room_id) n
         where n.rank > p_max_rooms - (select count(*) from leasehold.rooms where version > 0);
    end if;

    return query
    with known as (
        -- Every look-up is by key, so a batch costs what its requests cost.
        select q.ord::integer as ord, q.room_id, q.user_id, q.device_id, q.if_present,
               r.version, r.member_count,
               case when r.version > 0 then r.generation
                    else 1 + greatest(
                        (select max(g.generation) from leasehold.room_generations g where g.room_id = q.room_id),
                        (select f.generation from leasehold.generation_floors f where f.room_id = q.room_id),
                        0)
               end as generation,
               1 + greatest(
                   (select max(e.epoch) from leasehold.membership_events e
                     where e.room_id = q.room_id and e.user_id = q.user_id),
                   (select f.epoch from leasehold.epoch_floors f
                     where f.room_id = q.room_id and f.user_id = q.user_id),
                   0) as epoch,
               s.sessions, s.arrival, s.held_epoch, s.held_last_seen_at,
               case when exists (select from leasehold.blocks b
                                  where b.room_id = q.room_id and b.user_id = q.user_id
                                    and b.blocked_until > v_now) then 'blocked'
                    when q.room_id = any (v_no_room) then 'too_many_rooms'
                    when q.if_present = 'reject' and s.sessions > 0 then 'already_present'
                    when s.held_epoch is null and s.sessions >= p_max_devices then 'too_many_devices'
               end as refusal
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_if_present)
               with ordinality as q (room_id, user_id, device_id, if_present, ord)
          join leasehold.rooms r on r.room_id = q.room_id
         cross join lateral (
               select count(*) as sessions,
                      min(m.arrival) as arrival,
                      min(m.epoch) filter (where m.device_id = q.device_id) as held_epoch,
                      min(m.last_seen_at) filter (where m.device_id = q.device_id) as held_last_seen_at
                 from leasehold.members m
                where m.room_id = q.room_id and m.user_id = q.user_id) s
    ), decided as (
        -- New persons take the free seats in the order in which they ask.
        select k.*,
               coalesce(k.refusal,
                        case when k.sessions = 0
                                  and k.member_count
                                      + count(*) filter (where k.sessions = 0 and k.refusal is null)
                                            over (partition by k.room_id order by k.ord)
                                      > p_max_members then 'room_full' end,
                        'joined') as decision
          from known k
    ), placed as (
        -- The end of the replaced session comes right before the join that replaces it.
        select d.*,
               v_now + p_lease_ms[d.ord] * interval '1 millisecond' as lease_expires_at,
               d.version + count(*) over in_order + count(d.held_epoch) over in_order as joined_version
          from decided d
         where d.decision = 'joined'
        window in_order as (partition by d.room_id order by d.ord)
    ), events as (
        insert into leasehold.membership_events
               (room_id, generation, version, user_id, device_id, epoch,
                kind, reason, occurred_at, recorded_at, last_seen_at)
        select p.room_id, p.generation, p.joined_version - 1, p.user_id, p.device_id, p.held_epoch,
               'ended', 'superseded', v_now, v_now, p.held_last_seen_at
          from placed p
         where p.held_epoch is not null
        union all
        select p.room_id, p.generation, p.joined_version, p.user_id, p.device_id, p.epoch,
               'joined', null, v_now, v_now, null
          from placed p
         order by 1, 3
    ), arrivals as (
        insert into leasehold.members
               (room_id, user_id, device_id, epoch, arrival,
                joined_at, last_seen_at, lease_expires_at, lease_ms, cursor, metadata)
        select p.room_id, p.user_id, p.device_id, p.epoch, coalesce(p.arrival, p.joined_version),
               v_now, v_now, p.lease_expires_at, p_lease_ms[p.ord], p_cursors[p.ord], p_metadata[p.ord]
          from placed p
         where p.held_epoch is null
    ), returns as (
        update leasehold.members m
           set epoch = p.epoch,
               joined_at = v_now,
               last_seen_at = v_now,
               lease_expires_at = p.lease_expires_at,
               disconnected_at = null,
               lease_ms = p_lease_ms[p.ord],
               cursor = p_cursors[p.ord],
               metadata = p_metadata[p.ord]
          from placed p
         where p.held_epoch is not null
           and m.room_id = p.room_id and m.user_id = p.user_id and m.device_id = p.device_id
    ), change as (
        select p.room_id, p.generation, p.version = 0 as opens,
               max(p.joined_version) as version,
               (count(*) filter (where p.sessions = 0))::integer as arrived,
               min(p.lease_expires_at) as first_expiry_at
          from placed p
         group by p.room_id, p.generation, p.version
    ), rooms as (
        update leasehold.rooms r
           set generation = c.generation,
               version = c.version,
               opened_at = case when c.opens then v_now else r.opened_at end,
               next_expiry_at = least(r.next_expiry_at, c.first_expiry_at),
               member_count = r.member_count + c.arrived,
               peak_members = greatest(r.peak_members, r.member_count + c.arrived)
          from change c
         where r.room_id = c.room_id
    ), generations as (
        insert into leasehold.room_generations (room_id, generation, opened_at)
        select c.room_id, c.generation, v_now from change c where c.opens
    )
    select p.ord, p.decision, p.epoch, p.generation, p.lease_expires_at, v_now
      from placed p
    union all
    select d.ord, d.decision, null, null, null, v_now
      from decided d
     where d.decision <> 'joined';

    -- A room in which every request was refused was never opened.
    select array_agg(room_id)
      into v_unopened
      from leasehold.rooms
     where room_id = any (p_room_ids) and version = 0;
    if v_unopened is not null then
        perform leasehold.prune_locked(v_unopened, v_now);
    end if;
end
$function$;
comment on function leasehold.join_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_ms integer[], p_metadata jsonb[], p_cursors jsonb[], p_if_present text[], p_max_members integer, p_max_devices integer, p_max_rooms integer, p_now timestamp with time zone) is
    'Joins members, one per position of the arrays and in that order. Outcomes: joined, already_present, blocked, room_full, too_many_devices, too_many_rooms; only joined has an epoch.';

CREATE OR REPLACE FUNCTION leasehold.lease_expired(p_lease_expires_at timestamp with time zone, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (p_at > p_lease_expires_at);
comment on function leasehold.lease_expired(p_lease_expires_at timestamp with time zone, p_at timestamp with time zone) is
    'The one lease predicate: at its end the member still lives, strictly past it it is gone.';

CREATE OR REPLACE FUNCTION leasehold.leave_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE sql
AS $function$
    select (leasehold.leave_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], p_now))[1]
$function$;
comment on function leasehold.leave_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_now timestamp with time zone) is
    'Ends one member''s session, in the caller''s transaction. Outcomes as of leave_members.';

CREATE OR REPLACE FUNCTION leasehold.leave_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_held record;
    v_left integer[];
    v_rooms text[];
    v_users text[];
    v_devices text[];
begin
    v_held := leasehold.lock_rooms(p_room_ids, p_now);
    perform leasehold.lock_members(p_room_ids, p_user_ids, p_device_ids, v_held.instant);
    perform leasehold.prune_due(v_held.locked, v_held.instant);

    select array_agg(l.ord), array_agg(l.room_id), array_agg(l.user_id), array_agg(l.device_id)
      into v_left, v_rooms, v_users, v_devices
      from (select min(q.ord)::integer as ord, q.room_id, q.user_id, q.device_id
              from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
                   with ordinality as q (room_id, user_id, device_id, epoch, ord)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
               and m.epoch = q.epoch
             where q.room_id = any (v_held.locked)
             group by q.room_id, q.user_id, q.device_id) l;
    if v_left is not null then
        perform leasehold.end_members(v_rooms, v_users, v_devices, 'left', v_held.instant);
        perform leasehold.prune_due(v_held.locked, v_held.instant);
    end if;

    return array(
        select case when q.ord = any (v_left) then 'left'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.device_id, q.epoch) end
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
               with ordinality as q (room_id, user_id, device_id, epoch, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.leave_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_epochs bigint[], p_now timestamp with time zone) is
    'Ends sessions whose epoch is current, one request per position of the arrays. Answers one outcome per request: left, or as of stale_reason.';

CREATE OR REPLACE FUNCTION leasehold.list_rooms(p_prefix text DEFAULT ''::text, p_after text DEFAULT ''::text, p_limit integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, generation bigint, version bigint, opened_at timestamp with time zone, member_count integer, as_of timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.list_rooms(p_prefix text, p_after text, p_limit integer, p_now timestamp with time zone) is
    'The rooms with a live member whose id starts with p_prefix, in order of id, those after p_after.';

CREATE OR REPLACE FUNCTION leasehold.lock_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_due text[];
begin
    select array_agg(room_id)
      into v_due
      from leasehold.rooms
     where room_id = any (p_room_ids)
       and leasehold.lease_expired(next_expiry_at, p_now);
    -- All at once: two passes, each in order, could still meet a heartbeat that waits in between.
    perform
       from (select q.room_id, q.user_id, q.device_id
               from unnest(p_room_ids, p_user_ids, p_device_ids) as q (room_id, user_id, device_id)
              union
             select e.room_id, e.user_id, e.device_id
               from leasehold.members e
              where e.room_id = any (v_due)
                and leasehold.lease_expired(e.lease_expires_at, p_now)) k
       join leasehold.members m
         on m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
      order by m.room_id, m.user_id, m.device_id
        for update of m;
end
$function$;
comment on function leasehold.lock_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone) is
    'Internal. Locks these sessions and the expired ones of their rooms, in the order in which heartbeats lock them. The caller holds the rooms'' locks.';

CREATE OR REPLACE FUNCTION leasehold.lock_rooms(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT locked text[], OUT instant timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
begin
    select array_agg(r.room_id)
      into locked
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
             order by room_id
               for no key update) r;
    locked := coalesce(locked, '{}');
    instant := coalesce(p_now, clock_timestamp());
end
$function$;
comment on function leasehold.lock_rooms(p_room_ids text[], p_now timestamp with time zone, OUT locked text[], OUT instant timestamp with time zone) is
    'Internal. Locks the rooms that exist, in order of id, then reads the clock. Only what it returns is locked.';

CREATE OR REPLACE FUNCTION leasehold.open_rooms(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
begin
    loop
        -- A conflict locks the existing row, although the update never happens.
        insert into leasehold.rooms as r
               (room_id, generation, version, opened_at, next_expiry_at, member_count, peak_members)
        select distinct id collate "C" as id, 1, 0, '-infinity'::timestamptz, 'infinity'::timestamptz, 0, 0
          from unnest(p_room_ids) as id
         order by id
            on conflict (room_id) do update set version = r.version where false;
        exit when v_now is not null;

        v_now := coalesce(p_now, clock_timestamp());
        perform leasehold.lock_members(p_room_ids, p_user_ids, p_device_ids, v_now);
        -- Pruning may have deleted a room: it is opened again, under the lock that is still held.
        exit when not leasehold.prune_due(p_room_ids, v_now);
    end loop;
    return v_now;
end
$function$;
comment on function leasehold.open_rooms(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone) is
    'Internal. Locks the rooms in order of id, those that do not exist as well (version 0), reads the clock, locks the sessions to be replaced and prunes what is due.';

CREATE OR REPLACE FUNCTION leasehold.prune_due(p_locked text[], p_now timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_due text[];
begin
    select array_agg(room_id)
      into v_due
      from leasehold.rooms
     where room_id = any (p_locked)
       and version > 0
       and (member_count = 0 or leasehold.lease_expired(next_expiry_at, p_now));
    if v_due is null then
        return false;
    end if;
    perform leasehold.prune_locked(v_due, p_now);
    return true;
end
$function$;
comment on function leasehold.prune_due(p_locked text[], p_now timestamp with time zone) is
    'Internal. Prunes those of the locked rooms that are empty or may hold an expired member; says whether there were any.';

CREATE OR REPLACE FUNCTION leasehold.prune_locked(p_room_ids text[], p_now timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[];
    v_users text[];
    v_devices text[];
begin
    -- A heartbeat under way holds its row: wait for it, then judge the lease that it left.
    select array_agg(e.room_id), array_agg(e.user_id), array_agg(e.device_id)
      into v_rooms, v_users, v_devices
      from (select room_id, user_id, device_id
              from leasehold.members
             where room_id = any (p_room_ids)
               and leasehold.lease_expired(lease_expires_at, p_now)
             order by room_id, user_id, device_id
               for update) e;
    members_expired := coalesce(cardinality(v_rooms), 0);
    if members_expired > 0 then
        perform leasehold.end_members(v_rooms, v_users, v_devices, 'expired', p_now);
    end if;

    -- Starts after the room's lock was granted, so it sees every member who joined before.
    with closed as (
        delete from leasehold.rooms r
         where r.room_id = any (p_room_ids)
           and not exists (select from leasehold.members m where m.room_id = r.room_id)
        returning r.room_id, r.generation, r.version, r.peak_members
    )
    update leasehold.room_generations g
       set closed_at = e.occurred_at,
           close_reason = e.reason,
           closed_version = e.version,
           peak_members = c.peak_members
      from closed c
      join leasehold.membership_events e
        on e.room_id = c.room_id and e.generation = c.generation and e.version = c.version
     where g.room_id = c.room_id and g.generation = c.generation;
    get diagnostics rooms_closed = row_count;

    update leasehold.rooms r
       set next_expiry_at = (select min(m.lease_expires_at)
                               from leasehold.members m
                              where m.room_id = r.room_id)
     where r.room_id = any (p_room_ids);
end
$function$;
comment on function leasehold.prune_locked(p_room_ids text[], p_now timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer) is
    'Internal. The only place that removes for expiry and the only one that deletes a room. The caller holds the rooms'' locks.';

CREATE OR REPLACE FUNCTION leasehold.prune_rooms(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_held record;
begin
    v_held := leasehold.lock_rooms(p_room_ids, p_now);
    select p.members_expired, p.rooms_closed
      into members_expired, rooms_closed
      from leasehold.prune_locked(v_held.locked, v_held.instant) p;
end
$function$;
comment on function leasehold.prune_rooms(p_room_ids text[], p_now timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer) is
    'Removes the expired members of these rooms, and the rooms that this leaves empty.';

CREATE OR REPLACE FUNCTION leasehold.purge(p_older_than interval, p_max_events integer DEFAULT 10000, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT ran boolean, OUT generations_purged integer, OUT events_purged integer, OUT blocks_purged integer, OUT finished boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.purge(p_older_than interval, p_max_events integer, p_now timestamp with time zone, OUT ran boolean, OUT generations_purged integer, OUT events_purged integer, OUT blocks_purged integer, OUT finished boolean) is
    'One batch of forgetting: removes generations that closed longer ago than p_older_than, with their events, whole ones and so many that about p_max_events go; and blocks that have ended. Call it again until finished; ran is false where another purge is under way.';

CREATE OR REPLACE FUNCTION leasehold.remove_member(p_room_id text, p_user_id text, p_epoch bigint DEFAULT NULL::bigint, p_block_ms bigint DEFAULT NULL::bigint, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT sessions_ended integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_device text;
    v_devices text[];
begin
    v_devices := array(select m.device_id
                         from leasehold.members m
                        where m.room_id = p_room_id and m.user_id = p_user_id) || ''::text;
    -- Locks a room that does not exist as well: a join in flight is waited for,
    -- and one that comes later finds the block.
    v_now := leasehold.open_rooms(
        array_fill(p_room_id, array[cardinality(v_devices)]),
        array_fill(p_user_id, array[cardinality(v_devices)]),
        v_devices, p_now);
    sessions_ended := leasehold.end_sessions(p_room_id, p_user_id, p_epoch, 'removed', v_now);

    if p_epoch is not null and sessions_ended = 0 then
        -- An epoch has one device; which one does not matter to who removes.
        select e.device_id
          into v_device
          from leasehold.membership_events e
         where e.room_id = p_room_id and e.user_id = p_user_id and e.epoch = p_epoch
         limit 1;
        outcome := leasehold.stale_reason(p_room_id, p_user_id, coalesce(v_device, ''), p_epoch);
    else
        outcome := case when sessions_ended > 0 then 'removed' else 'absent' end;
        if p_block_ms > 0 then
            insert into leasehold.blocks as b (room_id, user_id, blocked_until)
            values (p_room_id, p_user_id, v_now + p_block_ms * interval '1 millisecond')
                on conflict (room_id, user_id) do update set blocked_until = excluded.blocked_until;
        elsif p_block_ms = 0 then
            delete from leasehold.blocks b where b.room_id = p_room_id and b.user_id = p_user_id;
        end if;
    end if;

    -- The room may be empty now, or may never have been opened.
    perform leasehold.prune_locked(array[p_room_id], v_now);
end
$function$;
comment on function leasehold.remove_member(p_room_id text, p_user_id text, p_epoch bigint, p_block_ms bigint, p_now timestamp with time zone, OUT outcome text, OUT sessions_ended integer) is
    'Ends a person''s sessions in a room, or only the one with p_epoch. With p_block_ms, joins are refused for so long; 0 lifts an earlier block, null leaves it. Outcomes: removed, absent, or for an epoch that is not current, which changes nothing, as of stale_reason.';

CREATE OR REPLACE FUNCTION leasehold.renumber_changes()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
    v_events bigint;
begin
    update leasehold.membership_events set xact_id = '3';
    get diagnostics v_events = row_count;
    update leasehold.purges set purged_xact_id = null, purged_event_id = null, purged_part = null;
    return v_events;
end
$function$;
comment on function leasehold.renumber_changes() is
    'Run once after a logical restore into another cluster, whose transaction ids start elsewhere: puts all restored history before whatever is written from now on, in its order. Cursors that were given out before are void.';

CREATE OR REPLACE FUNCTION leasehold.room_members(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, as_of timestamp with time zone, generation bigint, version bigint, opened_at timestamp with time zone, user_id text, device_id text, epoch bigint, arrival bigint, joined_at timestamp with time zone, last_seen_at timestamp with time zone, lease_ms integer, lease_expires_at timestamp with time zone, disconnected_at timestamp with time zone, cursor jsonb, metadata jsonb, expired boolean)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.room_members(p_room_ids text[], p_now timestamp with time zone) is
    'The rows of these rooms, expired ones marked: where there is one, prune_rooms and read again before answering. A room that does not exist is one row with a null generation.';

CREATE OR REPLACE FUNCTION leasehold.settled_xact_id()
 RETURNS xid8
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.settled_xact_id() is
    'Internal. Every transaction of this database below it has ended, and this snapshot sees it: the oldest that still runs here, or the next to begin.';

CREATE OR REPLACE FUNCTION leasehold.stale_reason(p_room_id text, p_user_id text, p_device_id text, p_epoch bigint)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    -- 'ended' sorts before 'joined': the end if there is one. A session that
    -- has none and could not be renewed has outlived its lease.
    select coalesce((
        select case when e.device_id <> p_device_id then 'unknown_session'
                    when e.kind = 'ended' then e.reason
                    else 'expired' end
          from leasehold.membership_events e
         where e.room_id = p_room_id and e.user_id = p_user_id and e.epoch = p_epoch
         order by e.kind
         limit 1), 'unknown_session')
$function$;
comment on function leasehold.stale_reason(p_room_id text, p_user_id text, p_device_id text, p_epoch bigint) is
    'Why a session is not current: how it ended (superseded, expired, left, removed, room_closed), or unknown_session.';

CREATE OR REPLACE FUNCTION leasehold.sweep(p_max_members integer DEFAULT 1000, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT ran boolean, OUT members_expired integer, OUT rooms_closed integer, OUT finished boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
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

    -- A room that somebody is changing is pruned by them, or by the next sweep: it does not hold up the others.
    select array_agg(distinct due.room_id), count(*)
      into v_rooms, v_seen
      from (select r.room_id
              from leasehold.members m
              join leasehold.rooms r on r.room_id = m.room_id
             where leasehold.lease_expired(m.lease_expires_at, v_now)
             limit p_max_members
               for no key update of r skip locked) due;
    if v_rooms is not null then
        select p.members_expired, p.rooms_closed
          into members_expired, rooms_closed
          from leasehold.prune_locked(v_rooms, coalesce(p_now, clock_timestamp())) p;
    end if;

    finished := v_seen < p_max_members;
    if finished then
        update leasehold.sweeps set last_swept_at = v_now;
    end if;
end
$function$;
comment on function leasehold.sweep(p_max_members integer, p_now timestamp with time zone, OUT ran boolean, OUT members_expired integer, OUT rooms_closed integer, OUT finished boolean) is
    'One batch of the expiry job: finds up to p_max_members expired members and prunes their rooms. Call it again until finished; ran is false where another sweep is under way.';

CREATE OR REPLACE FUNCTION leasehold.update_member(p_room_id text, p_user_id text, p_epoch bigint, p_cursor jsonb, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE sql
AS $function$
    select (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch],
                p_set_cursor => array[true], p_cursors => array[p_cursor], p_now => p_now))[1]
$function$;
comment on function leasehold.update_member(p_room_id text, p_user_id text, p_epoch bigint, p_cursor jsonb, p_device_id text, p_now timestamp with time zone) is
    'Sets one member''s cursor, which counts as a heartbeat. Outcomes as of heartbeat_members.';

CREATE OR REPLACE FUNCTION leasehold.user_rooms(p_user_id text, p_after text DEFAULT ''::text, p_limit integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, generation bigint, epoch bigint, joined_at timestamp with time zone, last_seen_at timestamp with time zone, lease_ms integer, lease_expires_at timestamp with time zone, disconnected_at timestamp with time zone, as_of timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.user_rooms(p_user_id text, p_after text, p_limit integer, p_now timestamp with time zone) is
    'Where a person is: each room with a live session of theirs, with the newest, in order of id, those after p_after.';

CREATE OR REPLACE FUNCTION leasehold.verify()
 RETURNS TABLE(invariant integer, room_id text, user_id text, detail text)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.verify() is
    'Violations of the invariants 1, 2, 5, 6 and 7 of the design; none where all is well.';

CREATE OR REPLACE FUNCTION leasehold.verify_membership()
 RETURNS TABLE(invariant integer, room_id text, user_id text, detail text)
 LANGUAGE sql
 STABLE
AS $function$
    -- 1. One logical member per room and user; each device's row is its newest session.
    select 1, m.room_id, m.user_id,
           format('device %L holds epoch %s, but epoch %s was joined later on it', m.device_id, m.epoch, max(e.epoch))
      from leasehold.members m
      join leasehold.membership_events e
        on e.room_id = m.room_id and e.user_id = m.user_id and e.device_id = m.device_id
       and e.kind = 'joined' and e.epoch > m.epoch
     group by m.room_id, m.user_id, m.device_id, m.epoch
    union all
    select 1, m.room_id, m.user_id, format('epoch %s is held by %s devices', m.epoch, count(*))
      from leasehold.members m
     group by m.room_id, m.user_id, m.epoch
    having count(*) > 1
    union all
    select 1, m.room_id, m.user_id, format('the devices of one person have %s places in the list', count(distinct m.arrival))
      from leasehold.members m
     group by m.room_id, m.user_id
    having count(distinct m.arrival) > 1

    -- 2. Epochs strictly increase in the order of the room's life, and stay above what was purged.
    union all
    select 2, e.room_id, e.user_id, format('epoch %s was joined after epoch %s', e.epoch, e.before)
      from (select e.room_id, e.user_id, e.epoch,
                   lag(e.epoch) over (partition by e.room_id, e.user_id order by e.generation, e.version) as before
              from leasehold.membership_events e
             where e.kind = 'joined') e
     where e.epoch <= e.before
    union all
    select 2, m.room_id, m.user_id, format('epoch %s is not above the purged epoch %s', m.epoch, f.epoch)
      from leasehold.members m
      join leasehold.epoch_floors f on f.room_id = m.room_id and f.user_id = m.user_id
     where m.epoch <= f.epoch

    -- 5. A room's row exists only with members, and its figures are theirs.
    union all
    select 5, r.room_id, null,
           format('member_count is %s, but %s persons have a row', r.member_count, count(distinct m.user_id))
      from leasehold.rooms r
      left join leasehold.members m on m.room_id = r.room_id
     group by r.room_id
    having count(distinct m.user_id) <> r.member_count or r.member_count = 0
    union all
    select 5, r.room_id, null,
           format('next_expiry_at is %s, but a lease ends at %s', r.next_expiry_at, min(m.lease_expires_at))
      from leasehold.rooms r
      join leasehold.members m on m.room_id = r.room_id
     group by r.room_id
    having min(m.lease_expires_at) < r.next_expiry_at

    -- 6. Generations strictly increase; a room is its newest generation, open; any other is closed.
    union all
    select 6, r.room_id, null, format('generation %s of the room is not its open lifetime', r.generation)
      from leasehold.rooms r
     where not exists (select from leasehold.room_generations g
                        where g.room_id = r.room_id and g.generation = r.generation
                          and g.closed_at is null and g.opened_at = r.opened_at)
        or exists (select from leasehold.room_generations g
                    where g.room_id = r.room_id and g.generation > r.generation)
        or r.generation <= (select f.generation from leasehold.generation_floors f where f.room_id = r.room_id)
    union all
    select 6, g.room_id, null, format('generation %s is open, but the room is not there', g.generation)
      from leasehold.room_generations g
     where g.closed_at is null
       and not exists (select from leasehold.rooms r
                        where r.room_id = g.room_id and r.generation = g.generation)
    union all
    select 6, e.room_id, e.user_id, format('epoch %s ended in generation %s, not in the %s it joined', e.epoch, e.generation, j.generation)
      from leasehold.membership_events e
      join leasehold.membership_events j
        on j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch and j.kind = 'joined'
     where e.kind = 'ended' and e.generation <> j.generation
    union all
    select 6, m.room_id, m.user_id, format('epoch %s joined generation %s, but the room is generation %s', m.epoch, j.generation, r.generation)
      from leasehold.members m
      join leasehold.rooms r on r.room_id = m.room_id
      join leasehold.membership_events j
        on j.room_id = m.room_id and j.user_id = m.user_id and j.epoch = m.epoch and j.kind = 'joined'
     where j.generation <> r.generation

    -- 7. The history is complete: every version of a generation once, and members are its joins without an end.
    union all
    select 7, coalesce(e.room_id, g.room_id), null,
           format('generation %s should have events 1 to %s, but has %s up to %s',
                  coalesce(e.generation, g.generation), g.version, coalesce(e.events, 0), e.version)
      from (select e.room_id, e.generation, count(*) as events, max(e.version) as version
              from leasehold.membership_events e
             group by e.room_id, e.generation) e
      full join (select g.room_id, g.generation, coalesce(g.closed_version, r.version) as version
                   from leasehold.room_generations g
                   left join leasehold.rooms r on r.room_id = g.room_id and r.generation = g.generation) g
        on g.room_id = e.room_id and g.generation = e.generation
     where e.events is distinct from g.version or e.version is distinct from g.version
    union all
    select 7, coalesce(j.room_id, m.room_id), coalesce(j.user_id, m.user_id),
           format('epoch %s is %s', coalesce(j.epoch, m.epoch),
                  case when j.room_id is null then 'a member without a join in the history'
                       else 'joined and not ended in the history, but no member' end)
      from (select e.room_id, e.user_id, e.device_id, e.epoch
              from leasehold.membership_events e
             group by e.room_id, e.user_id, e.device_id, e.epoch
            having count(*) filter (where e.kind = 'ended') = 0) j
      full join leasehold.members m
        on m.room_id = j.room_id and m.user_id = j.user_id
       and m.device_id = j.device_id and m.epoch = j.epoch
     where j.room_id is null or m.room_id is null
    union all
    select 7, e.room_id, e.user_id, format('epoch %s ended on device %L without having joined on it', e.epoch, e.device_id)
      from leasehold.membership_events e
     where e.kind = 'ended'
       and not exists (select from leasehold.membership_events j
                        where j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch
                          and j.kind = 'joined' and j.device_id = e.device_id)
    union all
    select 7, e.room_id, e.user_id, format('epoch %s ended at version %s, before it joined at version %s', e.epoch, e.version, j.version)
      from leasehold.membership_events e
      join leasehold.membership_events j
        on j.room_id = e.room_id and j.user_id = e.user_id and j.epoch = e.epoch and j.kind = 'joined'
     where e.kind = 'ended' and e.generation = j.generation and e.version < j.version
$function$;
comment on function leasehold.verify_membership() is
    'Internal. The part of verify that looks at rooms, members and the history that is kept.';
