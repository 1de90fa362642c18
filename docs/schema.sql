-- The schema leasehold as the migrations leave it; written by `make schema`,
-- compared by a test, and not to be run.

create table leasehold.blocks (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    blocked_until timestamp with time zone not null,
    blocked_at timestamp with time zone not null,
    blocked_by text,
    note text,
    constraint blocks_pkey PRIMARY KEY (room_id, user_id),
    constraint blocks_by_form CHECK (leasehold.is_id(blocked_by)),
    constraint blocks_note_form CHECK (leasehold.is_note(note)),
    constraint blocks_of_somebody CHECK (((room_id <> ''::text) OR (user_id <> ''::text))),
    constraint blocks_room_id_form CHECK (((room_id = ''::text) OR leasehold.is_id(room_id))),
    constraint blocks_user_id_form CHECK (((user_id = ''::text) OR leasehold.is_id(user_id)))
);
CREATE INDEX blocks_by_end ON leasehold.blocks USING btree (blocked_until);
comment on table leasehold.blocks is
    'Who may not join which room, and until when: a removal or a closing that holds for a time.';
comment on column leasehold.blocks.room_id is
    'Empty for all rooms.';
comment on column leasehold.blocks.user_id is
    'Empty for everybody who is not in the room.';
comment on column leasehold.blocks.note is
    'Why, in the words of whoever decided it.';

create table leasehold.cell (
    only_row boolean not null default true,
    owns_all boolean not null default true,
    fences bigint not null default 0,
    constraint cell_pkey PRIMARY KEY (only_row),
    constraint cell_one_row CHECK (only_row)
);
comment on table leasehold.cell is
    'One row: whether this database has every room, as it has unless rooms are spread over several.';
comment on column leasehold.cell.owns_all is
    'Where false it has the rooms of the slots that leasehold.slots says are owned, and no others.';
comment on column leasehold.cell.fences is
    'Raised whenever slots are taken away, so that a transaction whose snapshot is older is refused.';

create table leasehold.closed_generations (
    room_id text collate "C" not null,
    generation bigint not null,
    lifetime_id bigint not null,
    opened_at timestamp with time zone not null,
    closed_at timestamp with time zone not null,
    close_reason text not null,
    closed_version bigint not null,
    peak_members integer not null,
    era integer not null,
    last_xact_id xid8 not null,
    constraint closed_generations_pkey PRIMARY KEY (room_id, generation) INCLUDE (era, last_xact_id),
    constraint closed_generations_close_reason_known CHECK ((close_reason = ANY (ARRAY['left'::text, 'expired'::text, 'removed'::text, 'room_closed'::text, 'moved'::text])))
) with (autovacuum_vacuum_insert_scale_factor=0.1);
CREATE INDEX closed_generations_by_closed_at ON leasehold.closed_generations USING brin (closed_at);
comment on table leasehold.closed_generations is
    'One row per lifetime of a room that has ended; the one that goes on is the room''s own row. leasehold.room_lifetimes shows both.';
comment on column leasehold.closed_generations.lifetime_id is
    'What stands for this lifetime in membership_events.';
comment on column leasehold.closed_generations.close_reason is
    'How its last session ended.';
comment on column leasehold.closed_generations.closed_version is
    'The version of the event that closed it.';
comment on column leasehold.closed_generations.last_xact_id is
    'Where in the feed, in this era, that event stands: the next lifetime stands behind it.';

create table leasehold.epoch_floors (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    epoch bigint not null,
    constraint epoch_floors_pkey PRIMARY KEY (room_id, user_id)
);
comment on table leasehold.epoch_floors is
    'The highest epoch of a room and user among purged history, so that epochs never go back.';

create table leasehold.erased_floors (
    person bytea not null,
    epoch bigint not null,
    constraint erased_floors_pkey PRIMARY KEY (person)
);
comment on table leasehold.erased_floors is
    'The highest epoch of an erased person in a room, so that epochs never go back should they return. Who it is shows only to who asks for them; see leasehold.erased_person.';

create table leasehold.erasure_keys (
    key bytea not null default (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
    is_ours boolean not null default true,
    constraint erasure_keys_pkey PRIMARY KEY (key)
);
CREATE UNIQUE INDEX erasure_keys_one_of_ours ON leasehold.erasure_keys USING btree (is_ours) WHERE is_ours;
comment on table leasehold.erasure_keys is
    'What leasehold.erased_person is keyed with, so that a copy of erased_floors alone confirms no guess: one key of this database''s own, and those of databases from which rooms came.';

create table leasehold.erasures (
    erasure_id bigint not null generated always as identity,
    erased_at timestamp with time zone not null,
    sessions_erased bigint not null,
    constraint erasures_pkey PRIMARY KEY (erasure_id)
);
comment on table leasehold.erasures is
    'One row per person whose history was erased: when, and how many sessions. Neither who, nor their pseudonym.';

create table leasehold.feed (
    only_row boolean not null default true,
    name text not null default "left"((gen_random_uuid())::text, 8),
    era integer not null default 1,
    system_identifier bigint not null default (pg_control_system()).system_identifier,
    constraint feed_pkey PRIMARY KEY (only_row),
    constraint feed_one_row CHECK (only_row)
);
comment on table leasehold.feed is
    'One row: what a position in the feed names beside its place, so that one of another database is told apart; and the cluster whose transaction ids this era counts.';
comment on column leasehold.feed.era is
    'Raised by leasehold.renumber_changes: what an earlier era wrote stands before all of this one, whatever its transaction ids.';

create table leasehold.generation_floors (
    room_id text collate "C" not null,
    generation bigint not null,
    constraint generation_floors_pkey PRIMARY KEY (room_id)
);
comment on table leasehold.generation_floors is
    'The highest generation of a room among purged history, so that generations never go back.';

create table leasehold.generation_purges (
    room_id text collate "C" not null,
    generation bigint not null,
    events_purged bigint not null,
    purged_until timestamp with time zone not null,
    constraint generation_purges_pkey PRIMARY KEY (room_id, generation)
);
comment on table leasehold.generation_purges is
    'The lifetimes whose history is purged in part, as they last longer than it is kept. Of their own, so that a purge meets nobody who changes the room.';
comment on column leasehold.generation_purges.purged_until is
    'When the last of the purged sessions ended.';

create table leasehold.members (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    device_id text collate "C" not null,
    epoch bigint not null,
    arrival bigint not null,
    arrived_at timestamp with time zone not null,
    joined_at timestamp with time zone not null,
    last_seen_at timestamp with time zone not null,
    lease_end bigint not null,
    disconnected_at timestamp with time zone,
    lease_ms integer not null,
    heartbeat_ms integer not null,
    cursor jsonb,
    metadata jsonb,
    info jsonb,
    constraint members_pkey PRIMARY KEY (room_id, user_id, device_id),
    constraint members_lengths_positive CHECK ((LEAST(lease_ms, heartbeat_ms) >= 1)),
    constraint members_room_fkey FOREIGN KEY (room_id) REFERENCES leasehold.rooms(room_id) ON DELETE RESTRICT
) with (fillfactor=60, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=1);
CREATE INDEX members_by_user ON leasehold.members USING btree (user_id, room_id);
comment on table leasehold.members is
    'The sessions that hold a lease: one row per room, user and device. A member with several devices has several.';
comment on column leasehold.members.device_id is
    'Empty for the one unnamed device.';
comment on column leasehold.members.arrival is
    'The room''s version at which this member arrived, kept over reconnects and devices: the order of the list.';
comment on column leasehold.members.arrived_at is
    'When this member arrived, kept over reconnects and devices.';
comment on column leasehold.members.lease_end is
    'The last moment at which the session lives, in microseconds of the lease clock; see leasehold.lease_expired. Not to be compared with now().';
comment on column leasehold.members.disconnected_at is
    'When the transport was reported lost; a heartbeat clears it.';
comment on column leasehold.members.lease_ms is
    'How long a lease of this session lasts.';
comment on column leasehold.members.heartbeat_ms is
    'How often this session means to renew its lease; see leasehold.session_status.';
comment on column leasehold.members.info is
    'What the caller vouches for, beside the metadata that members write themselves.';

create table leasehold.membership_events (
    event_id bigint not null generated always as identity,
    xact_id xid8 not null,
    lifetime_id bigint not null,
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
    member_count integer not null,
    era integer not null,
    join_id text collate "C",
    info jsonb,
    ended_by text,
    note text,
    constraint membership_events_pkey PRIMARY KEY (lifetime_id, version),
    constraint membership_events_once UNIQUE (user_id, room_id, epoch, kind),
    constraint membership_events_ended_by_form CHECK (leasehold.is_id(ended_by)),
    constraint membership_events_epoch_positive CHECK ((epoch >= 1)),
    constraint membership_events_ids_well_formed CHECK (((kind <> 'joined'::text) OR (leasehold.is_id(room_id) AND leasehold.is_id(user_id) AND ((device_id = ''::text) OR leasehold.is_id(device_id)) AND (leasehold.is_id(join_id) IS NOT FALSE)))),
    constraint membership_events_kind_known CHECK ((((kind = 'joined'::text) AND (num_nonnulls(reason, last_seen_at, ended_by, note) = 0)) OR ((kind = 'ended'::text) AND (num_nulls(reason, last_seen_at) = 0) AND (num_nonnulls(join_id, info) = 0)))),
    constraint membership_events_member_count_not_negative CHECK ((member_count >= 0)),
    constraint membership_events_note_form CHECK (leasehold.is_note(note)),
    constraint membership_events_reason_known CHECK ((reason = ANY (ARRAY['left'::text, 'expired'::text, 'superseded'::text, 'removed'::text, 'room_closed'::text, 'moved'::text])))
) with (autovacuum_vacuum_insert_scale_factor=0.1);
CREATE INDEX membership_events_by_decider ON leasehold.membership_events USING btree (ended_by) WHERE (ended_by IS NOT NULL);
CREATE INDEX membership_events_by_recorded_at ON leasehold.membership_events USING brin (recorded_at);
CREATE INDEX membership_events_in_feed_order ON leasehold.membership_events USING btree (era, xact_id, event_id);
comment on table leasehold.membership_events is
    'Append-only: every join and every end of a session, once, in the transaction that made it so.';
comment on column leasehold.membership_events.xact_id is
    'The transaction that wrote it, or that of the room''s change before it where that is higher: a reader of the feed stops before the oldest one still running, and sees each room''s changes in their order.';
comment on column leasehold.membership_events.lifetime_id is
    'The room and generation as one number, see leasehold.rooms and leasehold.closed_generations: by it a lifetime''s events are found.';
comment on column leasehold.membership_events.occurred_at is
    'When it became true; for an expiry the end of the lease, however late it was recorded.';
comment on column leasehold.membership_events.recorded_at is
    'When it was written.';
comment on column leasehold.membership_events.last_seen_at is
    'On an end: the session''s last heartbeat.';
comment on column leasehold.membership_events.member_count is
    'How many members the room has after it.';
comment on column leasehold.membership_events.era is
    'The era of leasehold.feed in which it was written; 0 for what came with its room from another database, whose feed has told it.';
comment on column leasehold.membership_events.join_id is
    'On a join: what its caller called it, so that asking again does not join again.';
comment on column leasehold.membership_events.info is
    'On a join: what its caller vouched for.';
comment on column leasehold.membership_events.ended_by is
    'On a removal or a closing: who decided it, if that was said.';
comment on column leasehold.membership_events.note is
    'On a removal or a closing: why, in the words of whoever decided it.';

create table leasehold.outages (
    outage_id bigint not null generated always as identity,
    began_at timestamp with time zone not null,
    ended_at timestamp with time zone not null,
    lease_at bigint not null,
    paused_before bigint not null,
    paused_after bigint not null,
    constraint outages_pkey PRIMARY KEY (outage_id)
);
CREATE INDEX outages_by_lease_at ON leasehold.outages USING btree (lease_at, outage_id);
comment on table leasehold.outages is
    'The times in which nobody served, or the database''s clock jumped: from the last beat before to the first one after.';
comment on column leasehold.outages.lease_at is
    'Where the lease clock stood meanwhile.';
comment on column leasehold.outages.paused_after is
    'By how much the lease clock is behind the database''s from then on.';

create table leasehold.pulse (
    only_row boolean not null default true,
    last_at timestamp with time zone,
    last_by bigint,
    paused bigint not null default 0,
    floor bigint not null default 0,
    spread_until bigint not null default 0,
    reach bigint not null default 1500000,
    gap bigint not null default 3000000,
    max_pause bigint not null default 600000000,
    constraint pulse_pkey PRIMARY KEY (only_row),
    constraint pulse_lengths CHECK ((((reach >= 1) AND (reach <= gap)) AND (max_pause >= 0))),
    constraint pulse_one_row CHECK (only_row)
) with (fillfactor=10);
comment on table leasehold.pulse is
    'One row: when an instance last served, and for how long the lease clock has stood still. All lengths in microseconds.';
comment on column leasehold.pulse.last_at is
    'The last beat; null where no instance has served yet: then the lease clock is the database''s.';
comment on column leasehold.pulse.last_by is
    'Whose it was, if it said so.';
comment on column leasehold.pulse.paused is
    'By how much the lease clock is behind the database''s.';
comment on column leasehold.pulse.floor is
    'The lease clock at the last beat: it never shows less.';
comment on column leasehold.pulse.spread_until is
    'On the lease clock: no other outage before it makes the clock stand still longer than it lasted.';
comment on column leasehold.pulse.reach is
    'For how long after a beat the lease clock runs without another.';
comment on column leasehold.pulse.gap is
    'Beats that are further apart than this are an outage.';
comment on column leasehold.pulse.max_pause is
    'The longest that one outage stops the clock; 0 switches it off.';

create table leasehold.purges (
    only_row boolean not null default true,
    purged_era integer,
    purged_xact_id xid8,
    purged_event_id bigint,
    purged_part integer,
    purged_mark text,
    looked_era integer not null default 1,
    looked_xact_id xid8 not null default '0'::xid8,
    looked_event_id bigint not null default 0,
    constraint purges_pkey PRIMARY KEY (only_row),
    constraint purges_one_row CHECK (only_row),
    constraint purges_position_whole CHECK ((num_nulls(purged_era, purged_xact_id, purged_event_id, purged_part, purged_mark) = ANY (ARRAY[0, 5])))
);
comment on table leasehold.purges is
    'One row: the highest place in the feed that was ever purged; null while none was. A reader of the feed that stands before it has missed something.';
comment on column leasehold.purges.looked_xact_id is
    'With its era and event: up to where the purge has gone, passing over the joins of who was still there.';

create table leasehold.rooms (
    room_id text collate "C" not null,
    lifetime_id bigint not null generated always as identity,
    generation bigint not null,
    version bigint not null,
    opened_at timestamp with time zone not null,
    next_end bigint not null,
    member_count integer not null,
    peak_members integer not null,
    locked boolean not null default false,
    last_xact_id xid8 not null default '0'::xid8,
    constraint rooms_pkey PRIMARY KEY (room_id),
    constraint rooms_generation_positive CHECK ((generation >= 1)),
    constraint rooms_member_count_within_peak CHECK (((member_count >= 0) AND (member_count <= peak_members))),
    constraint rooms_version_not_negative CHECK ((version >= 0))
) with (fillfactor=70);
comment on table leasehold.rooms is
    'The rooms that exist: one row each, present exactly as long as the room has a member.';
comment on column leasehold.rooms.lifetime_id is
    'Stands for the room and its generation in the history, whose entries of the living then lie together however large it is.';
comment on column leasehold.rooms.generation is
    'Which lifetime of the room this is; strictly increasing, also over purges.';
comment on column leasehold.rooms.version is
    'How many joins and ends this generation has seen; 0 only inside the transaction that opens it.';
comment on column leasehold.rooms.next_end is
    'A lower bound on the lease clock: no lease of the room ends before it. Lets a join skip looking for expired sessions.';
comment on column leasehold.rooms.member_count is
    'Members with a session in the table, whether or not its lease has ended since.';
comment on column leasehold.rooms.locked is
    'Whether only those may join who are there already; see leasehold.lock_door.';
comment on column leasehold.rooms.last_xact_id is
    'Where in the feed the last change of this lifetime stands, so that the next one stands behind it; 0 while there was none in this era.';

create table leasehold.schema_compatibility (
    migration bigint not null,
    serves_from bigint not null,
    constraint schema_compatibility_pkey PRIMARY KEY (migration),
    constraint schema_compatibility_not_newer CHECK (((serves_from >= 1) AND (serves_from <= migration)))
);
comment on table leasehold.schema_compatibility is
    'Which older programs a migration works with: those that know the migration serves_from. Without a row: none.';

create table leasehold.slots (
    slot integer not null,
    state text not null,
    peer text,
    constraint slots_pkey PRIMARY KEY (slot),
    constraint slots_peer_of_a_move CHECK (((state = 'owned'::text) = (peer IS NULL))),
    constraint slots_slot_known CHECK (((slot >= 0) AND (slot <= 4095))),
    constraint slots_state_known CHECK ((state = ANY (ARRAY['owned'::text, 'leaving'::text, 'arriving'::text])))
);
comment on table leasehold.slots is
    'Of a database that is one of several: which of the 4,096 slots of rooms it owns, and which are on their way. No row: it does not own the slot. Empty where it owns all.';
comment on column leasehold.slots.state is
    'owned: its rooms are here. leaving: they were, and nobody joins them here any more. arriving: they are not here yet.';
comment on column leasehold.slots.peer is
    'Of a slot on its way: leasehold.feed.name of the other database.';

create table leasehold.sweeps (
    only_row boolean not null default true,
    last_swept_at timestamp with time zone,
    unfinished_at timestamp with time zone,
    constraint sweeps_pkey PRIMARY KEY (only_row),
    constraint sweeps_one_row CHECK (only_row)
);
comment on table leasehold.sweeps is
    'One row: when a sweep last found nothing more to do, whose age is how late the history may be; and when a batch last left something to do, null after one that did not.';

create table leasehold.webhook_deliveries (
    name text not null,
    seq bigint not null generated always as identity,
    delivery_id text not null default ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)),
    room_id text not null,
    items text not null,
    changes integer not null,
    attempts integer not null default 0,
    taken_at timestamp with time zone not null,
    due_at timestamp with time zone not null,
    first_failed_at timestamp with time zone,
    constraint webhook_deliveries_pkey PRIMARY KEY (name, seq),
    constraint webhook_deliveries_of_a_room UNIQUE (name, room_id, seq),
    constraint webhook_deliveries_not_empty CHECK ((changes > 0)),
    constraint webhook_deliveries_webhook FOREIGN KEY (name) REFERENCES leasehold.webhooks(name) ON DELETE CASCADE
);
comment on table leasehold.webhook_deliveries is
    'What endpoints are still to be sent: up to 100 changes of one room each, in order of seq within the room. What was once tried stays as it is, with its delivery_id.';
comment on column leasehold.webhook_deliveries.items is
    'The changes as JSON, separated by commas.';

create table leasehold.webhooks (
    name text not null,
    url text not null,
    secret text not null,
    previous_secret text,
    previous_secret_until timestamp with time zone,
    room_id text,
    prefix text,
    kinds text[],
    status text not null default 'active'::text,
    "position" text,
    revision bigint not null default 1,
    owner text,
    epoch bigint not null default 0,
    lease_until timestamp with time zone,
    held_until timestamp with time zone,
    failures bigint not null default 0,
    last_failure text,
    last_failure_at timestamp with time zone,
    last_success_at timestamp with time zone,
    constraint webhooks_pkey PRIMARY KEY (name),
    constraint webhooks_known_kinds CHECK (((cardinality(kinds) > 0) AND (kinds <@ ARRAY['room_opened'::text, 'joined'::text, 'ended'::text, 'room_closed'::text]))),
    constraint webhooks_known_status CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text, 'failed'::text, 'gone'::text, 'expired'::text]))),
    constraint webhooks_name_is_an_id CHECK (leasehold.is_id(name)),
    constraint webhooks_one_filter_of_rooms CHECK (((room_id IS NULL) OR (prefix IS NULL))),
    constraint webhooks_url_is_http CHECK (((url ~ '^https?://'::text) AND (octet_length(url) <= 2048)))
);
comment on table leasehold.webhooks is
    'Addresses that the feed is delivered to, each with its position in it. Secrets are here and nowhere else; webhook_states is the same without them.';
comment on column leasehold.webhooks.status is
    'active; disabled by somebody; failed: it answered nothing good for too long; gone: it answered 410; expired: its position was purged or is of another history.';
comment on column leasehold.webhooks.position is
    'Everything up to here is delivered or in webhook_deliveries; null is before the oldest kept.';
comment on column leasehold.webhooks.revision is
    'Raised by whoever changes the endpoint: its owner then reads it again before its next step.';
comment on column leasehold.webhooks.epoch is
    'Numbers the owners; a step that names an older one changes nothing.';
comment on column leasehold.webhooks.held_until is
    'The receiver asked for no request before.';

create view leasehold.live_members as
 SELECT r.room_id,
    r.generation,
    m.user_id,
    m.device_id,
    m.epoch,
    leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, c.now) AS status,
    m.arrived_at,
    m.joined_at,
    m.last_seen_at,
    m.lease_ms,
    m.heartbeat_ms,
    c.now + (m.lease_end - c.lease_now)::double precision * '00:00:00.000001'::interval AS lease_expires_at,
    m.disconnected_at,
    m.cursor,
    m.metadata,
    m.info
   FROM leasehold.clocks() c(now, lease_now, lease_from)
     JOIN leasehold.members m ON NOT leasehold.lease_expired(m.lease_end, c.lease_now)
     JOIN leasehold.rooms r ON r.room_id = m.room_id;
comment on view leasehold.live_members is
    'Who is here now: one row per session whose lease lives.';

create view leasehold.room_lifetimes as
 SELECT l.room_id,
    l.generation,
    l.opened_at,
    l.closed_at,
    l.close_reason,
    l.peak_members,
    p.purged_until,
    l.lifetime_id
   FROM ( SELECT c.room_id,
            c.generation,
            c.opened_at,
            c.closed_at,
            c.close_reason,
            c.peak_members,
            c.lifetime_id
           FROM leasehold.closed_generations c
        UNION ALL
         SELECT r.room_id,
            r.generation,
            r.opened_at,
            lapsed.closed_at,
                CASE
                    WHEN lapsed.closed_at IS NOT NULL THEN 'expired'::text
                    ELSE NULL::text
                END AS "case",
            r.peak_members,
            r.lifetime_id
           FROM leasehold.rooms r
             LEFT JOIN LATERAL ( SELECT leasehold.lease_instant(max(m.lease_end)) AS closed_at
                   FROM leasehold.members m
                  WHERE m.room_id = r.room_id
                 HAVING leasehold.lease_expired(max(m.lease_end), ( SELECT leasehold.lease_clock() AS lease_clock))) lapsed ON true) l
     LEFT JOIN leasehold.generation_purges p ON p.room_id = l.room_id AND p.generation = l.generation;
comment on view leasehold.room_lifetimes is
    'One row per lifetime of a room; closed_at is null while a member lives; its events are those with its lifetime_id. Sessions that ended until purged_until may be purged; null where all are kept.';

create view leasehold.sessions as
 SELECT l.room_id,
    j.generation,
    j.user_id,
    j.device_id,
    j.epoch,
    j.occurred_at AS joined_at,
    COALESCE(e.occurred_at, lapsed.ended_at) AS ended_at,
    COALESCE(e.reason,
        CASE
            WHEN lapsed.ended_at IS NOT NULL THEN 'expired'::text
            ELSE NULL::text
        END) AS end_reason,
    COALESCE(e.last_seen_at, m.last_seen_at) AS last_seen_at,
    e.recorded_at AS end_recorded_at,
    e.ended_by,
    e.note,
    j.info,
    j.version AS joined_version,
    j.event_id AS joined_event_id
   FROM ( SELECT r.room_id,
            r.generation,
            r.lifetime_id
           FROM leasehold.rooms r
        UNION ALL
         SELECT c.room_id,
            c.generation,
            c.lifetime_id
           FROM leasehold.closed_generations c) l
     JOIN leasehold.membership_events j ON j.lifetime_id = l.lifetime_id AND l.room_id = (j.room_id || ''::text) AND l.generation = j.generation
     LEFT JOIN LATERAL ( SELECT e_1.event_id,
            e_1.xact_id,
            e_1.lifetime_id,
            e_1.room_id,
            e_1.generation,
            e_1.version,
            e_1.user_id,
            e_1.device_id,
            e_1.epoch,
            e_1.kind,
            e_1.reason,
            e_1.occurred_at,
            e_1.recorded_at,
            e_1.last_seen_at,
            e_1.member_count,
            e_1.era,
            e_1.join_id,
            e_1.info,
            e_1.ended_by,
            e_1.note
           FROM leasehold.membership_events e_1
          WHERE e_1.user_id = j.user_id AND e_1.room_id = j.room_id AND e_1.epoch = j.epoch AND e_1.kind = 'ended'::text
         LIMIT 1) e ON true
     LEFT JOIN LATERAL ( SELECT m_1.room_id,
            m_1.user_id,
            m_1.device_id,
            m_1.epoch,
            m_1.arrival,
            m_1.arrived_at,
            m_1.joined_at,
            m_1.last_seen_at,
            m_1.lease_end,
            m_1.disconnected_at,
            m_1.lease_ms,
            m_1.heartbeat_ms,
            m_1.cursor,
            m_1.metadata,
            m_1.info
           FROM leasehold.members m_1
          WHERE m_1.room_id = j.room_id AND m_1.user_id = j.user_id AND m_1.device_id = j.device_id AND m_1.epoch = j.epoch
         LIMIT 1) m ON true
     LEFT JOIN LATERAL ( SELECT leasehold.lease_instant(m.lease_end) AS ended_at
          WHERE leasehold.lease_expired(m.lease_end, ( SELECT leasehold.lease_clock() AS lease_clock))) lapsed ON true
  WHERE j.kind = 'joined'::text;
comment on view leasehold.sessions is
    'One row per epoch that was ever joined. A lease that has run out counts as ended, whether or not the sweep has recorded it (end_recorded_at).';

create view leasehold.webhook_states as
 SELECT w.name,
    w.url,
    w.room_id,
    w.prefix,
    w.kinds,
    w.status,
    w."position",
    w.failures,
    w.last_success_at,
    w.last_failure_at,
    w.last_failure,
    w.held_until,
    w.previous_secret_until,
    w.lease_until,
    waiting.deliveries AS pending_deliveries,
    waiting.changes AS pending_changes,
    waiting.oldest_at AS oldest_pending_at
   FROM leasehold.webhooks w
     CROSS JOIN LATERAL ( SELECT count(*) AS deliveries,
            COALESCE(sum(d.changes), 0::bigint) AS changes,
            min(d.taken_at) AS oldest_at
           FROM leasehold.webhook_deliveries d
          WHERE d.name = w.name) waiting;
comment on view leasehold.webhook_states is
    'Every endpoint without its secrets: where it is in the feed, what waits for it, and how it answered last.';

CREATE OR REPLACE FUNCTION leasehold.await_opening(p_room_id text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into leasehold.rooms
           (room_id, generation, version, opened_at, next_end, member_count, peak_members)
    values (p_room_id, 1, 0, '-infinity', 9223372036854775807, 0, 0);
    raise sqlstate 'LH000';
exception
    -- It was only tried: what was inserted is gone again.
    when unique_violation or sqlstate 'LH000' then
        null;
end
$function$;
comment on function leasehold.await_opening(p_room_id text) is
    'Internal. Returns when no other transaction is about to open this room, which does not exist; leaves nothing behind. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.await_room(p_room_id text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if leasehold.lock_rooms(array[p_room_id]) = '{}' then
        perform leasehold.await_opening(p_room_id);
    end if;
    perform leasehold.lock_sessions(
                array[p_room_id], array[null::text], array[null::text], leasehold.lease_clock(p_now));
end
$function$;
comment on function leasehold.await_room(p_room_id text, p_now timestamp with time zone) is
    'Internal. Returns when no other transaction holds the room, or a session in it that has expired; changes nothing. Locks both to the end of the transaction. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.await_session(p_room_id text, p_user_id text, p_device_id text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform leasehold.lock_sessions(array[p_room_id], array[p_user_id], array[p_device_id]);
end
$function$;
comment on function leasehold.await_session(p_room_id text, p_user_id text, p_device_id text) is
    'Internal. Returns when no other transaction holds the session; changes nothing. Locks it to the end of the transaction. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.beat(p_heartbeat_ms integer DEFAULT 5000, p_longest_lease_ms integer DEFAULT 300000, p_max_pause_ms bigint DEFAULT 600000, p_instance bigint DEFAULT NULL::bigint, p_since_ms bigint DEFAULT NULL::bigint, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT paused_ms bigint, OUT was_outage boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_pulse leasehold.pulse;
    v_now timestamptz;
    v_age bigint;
    v_jump bigint := 0;
    v_outage bigint;
    v_silent bigint;
    v_stood bigint;
    v_lease_now bigint;
    v_extra bigint := 0;
    v_before bigint;
begin
    select * into v_pulse from leasehold.pulse for update;
    v_before := v_pulse.paused;
    v_now := coalesce(p_now, clock_timestamp());
    v_age := leasehold.micros(v_now) - leasehold.micros(v_pulse.last_at);
    v_pulse.max_pause := p_max_pause_ms * 1000;
    was_outage := coalesce(v_age not between 0 and v_pulse.gap, false);

    if was_outage then
        v_stood := greatest(v_pulse.floor,
                            leasehold.micros(v_pulse.last_at) - v_pulse.paused
                            + case when v_age > 0 then v_pulse.reach else 0 end);
        -- Whoever beat a moment ago knows that the rest is the database's clock, which jumped. How
        -- long the last beat is ago knows only whose it was: of another it may be no time at all.
        if v_age < 0 or p_since_ms * 1000 < v_age then
            v_jump := v_age - case when p_instance = v_pulse.last_by
                                   then greatest(coalesce(p_since_ms * 1000, 0), 0) else 0 end;
        end if;
        v_outage := greatest(v_age - v_jump, 0);
        v_silent := case when v_outage > v_pulse.gap then v_outage - v_pulse.reach else 0 end;
        v_lease_now := greatest(v_stood,
                                leasehold.micros(v_pulse.last_at) - v_pulse.paused
                                + v_outage - least(v_silent, v_pulse.max_pause));
        -- Clients need a moment to find the service again: the clock stands still one heartbeat longer.
        if v_outage > v_pulse.gap and v_pulse.max_pause > 0 and v_stood >= v_pulse.spread_until then
            v_extra := p_heartbeat_ms * 1000::bigint;
            v_pulse.spread_until := v_lease_now + p_longest_lease_ms * 1000::bigint;
        end if;
        v_pulse.paused := leasehold.micros(v_now) - v_lease_now + v_extra;
        v_pulse.floor := v_lease_now;
        insert into leasehold.outages (began_at, ended_at, lease_at, paused_before, paused_after)
        values (v_pulse.last_at, v_now, v_stood, v_before, v_pulse.paused);
    else
        v_pulse.floor := greatest(v_pulse.floor, leasehold.micros(v_now) - v_pulse.paused);
    end if;

    update leasehold.pulse
       set last_at = v_now, last_by = p_instance, paused = v_pulse.paused, floor = v_pulse.floor,
           spread_until = v_pulse.spread_until, max_pause = v_pulse.max_pause;
    paused_ms := (v_pulse.paused - v_before) / 1000;
end
$function$;
comment on function leasehold.beat(p_heartbeat_ms integer, p_longest_lease_ms integer, p_max_pause_ms bigint, p_instance bigint, p_since_ms bigint, p_now timestamp with time zone, OUT paused_ms bigint, OUT was_outage boolean) is
    'A sign that somebody serves, once a second from each instance. A beat that comes after a gap stops the lease clock for as long as the gap was (p_max_pause_ms at the longest, 0 for not at all) and one heartbeat longer, though not again within p_longest_lease_ms, and records the outage. p_instance is any number that is the caller''s own, and p_since_ms how long ago the caller''s own last beat was by a clock that cannot jump. Locks the pulse. Answers by how much the clock was stopped.';

CREATE OR REPLACE FUNCTION leasehold.blocks_of(p_room_id text, p_user_id text, p_at timestamp with time zone)
 RETURNS SETOF leasehold.blocks
 LANGUAGE sql
 STABLE
AS $function$
    select *
      from leasehold.blocks b
     where b.room_id in (p_room_id, '') and b.user_id in (p_user_id, '') and b.blocked_until > p_at
$function$;
comment on function leasehold.blocks_of(p_room_id text, p_user_id text, p_at timestamp with time zone) is
    'Internal. What keeps a user out of a room at this instant: a block there, one everywhere, and one of the room, which is for those only who are not in it.';

CREATE OR REPLACE FUNCTION leasehold.census(p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT active_rooms bigint, OUT active_members bigint, OUT oldest_lease_age_seconds double precision, OUT paused_seconds double precision, OUT pulse_age_seconds double precision, OUT outages bigint)
 RETURNS record
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'on'
AS $function$
    with clock as (select c.now, c.lease_now from leasehold.clocks(p_now) c),
         live as (
        -- The rooms know their members; only where a lease may have ended these are counted anew.
        select case when leasehold.lease_expired(r.next_end, clock.lease_now)
                    then (select count(distinct m.user_id)
                            from leasehold.members m
                           where m.room_id = r.room_id and not leasehold.lease_expired(m.lease_end, clock.lease_now))
                    else r.member_count end as members
          from leasehold.rooms r
         cross join clock
    ), counted as (
        select count(*) filter (where live.members > 0) as rooms, coalesce(sum(live.members), 0)::bigint as members from live
    )
    select counted.rooms, counted.members,
           coalesce(extract(epoch from clock.now - (select min(m.last_seen_at) from leasehold.members m)), 0)::double precision,
           ((leasehold.micros(clock.now) - clock.lease_now) / 1000000.0)::double precision,
           extract(epoch from clock.now - p.last_at)::double precision,
           (select count(*) from leasehold.outages)
      from counted, clock, leasehold.pulse p
$function$;
comment on function leasehold.census(p_now timestamp with time zone, OUT active_rooms bigint, OUT active_members bigint, OUT oldest_lease_age_seconds double precision, OUT paused_seconds double precision, OUT pulse_age_seconds double precision, OUT outages bigint) is
    'Live rooms and members, how long ago the longest unseen session was seen, by how much the lease clock is behind, how old the pulse is (null where nobody has served), and how many outages there were. Scans the rooms and once the members; locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.change_slots(p_slots integer[], p_from text, p_to text, p_peer text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_odd record;
    v_slots integer[];
begin
    perform from leasehold.cell for update;
    -- A step that was taken already is no error; of a slot that is on its way only its own move is.
    select s.* into v_odd
      from leasehold.slot_states(p_slots) s
     where not (s.state = p_to and (s.peer = p_peer or s.peer is null and p_to in ('owned', 'absent')))
       and not (s.state = p_from and (s.peer is null or s.peer = p_peer))
     limit 1;
    if found then
        raise exception 'slot % is % here%', v_odd.slot, v_odd.state,
                coalesce(', in a move with the database ' || v_odd.peer, '')
            using errcode = 'LH421',
                  hint = format('This step takes it from %s to %s in a move with the database %s; leasehold cell show says what is where.', p_from, p_to, p_peer);
    end if;
    v_slots := array(select s.slot from leasehold.slot_states(p_slots) s where s.state <> p_to);
    if v_slots = '{}' then
        return;
    end if;
    if (select c.owns_all from leasehold.cell c) then
        insert into leasehold.slots (slot, state) select n, 'owned' from generate_series(0, 4095) as n;
        update leasehold.cell set owns_all = false;
    end if;
    if p_to = 'absent' then
        delete from leasehold.slots s where s.slot = any (v_slots);
    else
        insert into leasehold.slots as s (slot, state, peer)
        select distinct n, p_to, case when p_to <> 'owned' then p_peer end from unnest(v_slots) as n
            on conflict (slot) do update set state = excluded.state, peer = excluded.peer;
    end if;
    update leasehold.cell set fences = fences + 1;
end
$function$;
comment on function leasehold.change_slots(p_slots integer[], p_from text, p_to text, p_peer text) is
    'Internal. One step of a move with the database p_peer: takes these slots from one state to another, where absent is none. Errors: LH421 where one of them is in neither, or in a move with another database.';

CREATE OR REPLACE FUNCTION leasehold.changed_rooms(p_slots integer[], p_since_era integer, p_since_xact_id xid8)
 RETURNS TABLE(slot integer, room_id text)
 LANGUAGE sql
 STABLE
AS $function$
    select leasehold.slot_of(e.room_id), e.room_id
      from (select distinct h.room_id
              from leasehold.membership_events h
             where (h.era, h.xact_id, h.event_id) >= (p_since_era, p_since_xact_id, 0)) e
     where leasehold.slot_of(e.room_id) = any (p_slots)
$function$;
comment on function leasehold.changed_rooms(p_slots integer[], p_since_era integer, p_since_xact_id xid8) is
    'Internal. Those rooms of these slots in which something happened since the feed was settled up to there. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.changes(p_after text DEFAULT NULL::text, p_limit integer DEFAULT 100, p_room_id text DEFAULT NULL::text, p_prefix text DEFAULT NULL::text, p_kinds text[] DEFAULT NULL::text[])
 RETURNS TABLE(next text, "position" text, kind text, room_id text, generation bigint, version bigint, user_id text, device_id text, epoch bigint, reason text, member_count integer, ended_by text, note text, info jsonb, last_seen_at timestamp with time zone, at timestamp with time zone, more_is_coming boolean)
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_custom_plan'
 SET jit TO 'off'
AS $function$
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
$function$;
comment on function leasehold.changes(p_after text, p_limit integer, p_room_id text, p_prefix text, p_kinds text[]) is
    'Up to p_limit items of the feed after a position (null: the oldest kept): room_opened, joined, ended, room_closed, only those of a room, of rooms that start alike, or of some kinds, where asked for. Each row says where to go on (next), and so does the one row of a page without items, whose kind is null; latest is such a page. Ordered, each room in the order of its life, without gaps and repetitions whatever commits meanwhile. more_is_coming says that there is more at once or in a moment, be the page empty or not. Locks nothing. Errors: 22023, LH410 where what follows the position cannot be told without a gap.';

CREATE OR REPLACE FUNCTION leasehold.changes_lag_seconds()
 RETURNS double precision
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(
        (select greatest(extract(epoch from clock_timestamp() - e.recorded_at), 0)
           from leasehold.membership_events e
          where e.era = (select f.era from leasehold.feed f) and e.xact_id >= (select leasehold.settled_xact_id())
          order by e.xact_id, e.event_id
          limit 1), 0)::double precision
$function$;
comment on function leasehold.changes_lag_seconds() is
    'Internal. For how long the oldest committed change has waited for an older transaction to end before readers of the feed are shown it; 0 where none waits.';

CREATE OR REPLACE FUNCTION leasehold.check_lengths(p_requests integer, p_lease_ms integer[], p_heartbeat_ms integer[])
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
    if (cardinality(p_lease_ms) = p_requests and 1 <= all (p_lease_ms)) is not true then
        raise exception 'there is not one lease of at least 1 ms per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the length in milliseconds, for instance 15000.';
    end if;
    if (cardinality(p_heartbeat_ms) in (0, p_requests) and 1 <= all (array_remove(p_heartbeat_ms, null))) is not true then
        raise exception 'a heartbeat interval is less than 1 ms, or there is not one per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the interval in milliseconds, or null for a third of the lease.';
    end if;
end
$function$;
comment on function leasehold.check_lengths(p_requests integer, p_lease_ms integer[], p_heartbeat_ms integer[]) is
    'Internal. Errors: 22023 where a lease is null or shorter than a millisecond, an interval is, or there is not one per request.';

CREATE OR REPLACE FUNCTION leasehold.check_options(p_requests integer, p_if_present text[], p_metadata jsonb[], p_cursors jsonb[], p_info jsonb[], p_join_ids text[], p_capacities integer[])
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
    if not (array_remove(p_if_present, null) <@ array['replace', 'reject']) then
        raise exception 'if_present is neither replace nor reject'
            using errcode = 'invalid_parameter_value',
                  hint = 'replace takes the place of the session on the same device; reject changes nothing where the user is there.';
    end if;
    if not (1 <= all (array_remove(p_capacities, null))) then
        raise exception 'a capacity is less than 1'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass how many members the room may have, or null for no limit.';
    end if;
    if (cardinality(p_if_present) in (0, p_requests) and cardinality(p_metadata) in (0, p_requests)
        and cardinality(p_cursors) in (0, p_requests) and cardinality(p_info) in (0, p_requests)
        and cardinality(p_join_ids) in (0, p_requests) and cardinality(p_capacities) in (0, p_requests)) is not true then
        raise exception 'the arrays of options have different lengths'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass one of each per request, or an empty array for the default.';
    end if;
end
$function$;
comment on function leasehold.check_options(p_requests integer, p_if_present text[], p_metadata jsonb[], p_cursors jsonb[], p_info jsonb[], p_join_ids text[], p_capacities integer[]) is
    'Internal. Errors: 22023 for a word that is not one, a capacity that is none, or arrays that do not fit together.';

CREATE OR REPLACE FUNCTION leasehold.check_requests(p_room_ids text[], p_user_ids text[], p_device_ids text[])
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
    v_requests integer := cardinality(p_room_ids);
begin
    if (cardinality(p_user_ids) = v_requests and cardinality(p_device_ids) = v_requests) is not true then
        raise exception 'the arrays of rooms, users and devices have different lengths'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass one of each per request.';
    end if;
    if coalesce(array_position(p_room_ids, null), array_position(p_user_ids, null),
                array_position(p_device_ids, null)) is not null then
        raise exception 'a room, user or device is null'
            using errcode = 'invalid_parameter_value',
                  hint = 'The one unnamed device is the empty string.';
    end if;
    return v_requests;
end
$function$;
comment on function leasehold.check_requests(p_room_ids text[], p_user_ids text[], p_device_ids text[]) is
    'Internal. How many requests these arrays make. Errors: 22023 where they do not fit together.';

CREATE OR REPLACE FUNCTION leasehold.check_sessions(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[])
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
    v_requests integer := leasehold.check_requests(p_room_ids, p_user_ids, p_device_ids);
begin
    if (cardinality(p_epochs) = v_requests and array_position(p_epochs, null) is null) is not true then
        raise exception 'there is not one epoch per request'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass the epoch that the session''s join answered.';
    end if;
    return v_requests;
end
$function$;
comment on function leasehold.check_sessions(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[]) is
    'Internal. How many requests these arrays make. Errors: 22023 where they do not fit together.';

CREATE OR REPLACE FUNCTION leasehold.claim_webhooks(p_owner text, p_lease interval)
 RETURNS TABLE(name text, epoch bigint)
 LANGUAGE sql
AS $function$
    update leasehold.webhooks w
       set owner = p_owner, epoch = w.epoch + 1, lease_until = clock_timestamp() + p_lease
      from (select k.name
              from leasehold.webhooks k
             where k.status = 'active' and coalesce(k.lease_until <= clock_timestamp(), true)
             order by k.name
               for update skip locked) free
     where w.name = free.name
    returning w.name, w.epoch
$function$;
comment on function leasehold.claim_webhooks(p_owner text, p_lease interval) is
    'Internal. Makes p_owner the owner of every active endpoint that has none. Passes over what another transaction holds.';

CREATE OR REPLACE FUNCTION leasehold.clocks(p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(now timestamp with time zone, lease_now bigint, lease_from bigint)
 LANGUAGE sql
 STABLE
AS $function$
    -- Materialized, so that whoever joins it judges all rows by one reading. In this form it
    -- becomes part of its caller's plan: every call of the schema comes by here.
    with reading as materialized (
        select coalesce(p_now, clock_timestamp()) as now
    ), clock as materialized (
        select r.now,
               greatest(p.floor,
                   case
                       when p.last_at is null or p.max_pause = 0 then leasehold.micros(r.now)
                       -- The database's clock stepped back.
                       when r.now < p.last_at then leasehold.micros(p.last_at)
                       when leasehold.micros(r.now) <= leasehold.micros(p.last_at) + p.reach
                           then leasehold.micros(r.now)
                       -- Nobody serves: it stands still, but not for ever, unless this is an instance
                       -- that serves, whose beat is about to say how long.
                       when leasehold.micros(r.now) > leasehold.micros(p.last_at) + p.reach + p.max_pause
                            and current_setting('leasehold.serves', true) is distinct from 'on'
                           then leasehold.micros(r.now) - p.max_pause
                       else leasehold.micros(p.last_at) + p.reach
                   end - p.paused) as lease_now,
               -- Where a beat that is merely late brings the clock.
               least(leasehold.micros(r.now), leasehold.micros(p.last_at) + p.gap) - p.paused as caught_up
          from reading r
         cross join leasehold.pulse p
         where p.only_row
    )
    select clock.now, clock.lease_now, greatest(clock.lease_now, clock.caught_up) from clock
$function$;
comment on function leasehold.clocks(p_now timestamp with time zone) is
    'Internal. Both clocks by one reading: what is recorded as having happened is on the first, leases are judged by the second, and begin at the third, which is where a late beat would let the second catch up to. The only place that reads either. p_now is null but in tests. Call it after the locks. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.close_room(p_room_id text, p_block_ms bigint DEFAULT NULL::bigint, p_by text DEFAULT NULL::text, p_note text DEFAULT NULL::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT sessions_ended integer, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_users text[];
    v_devices text[];
begin
    -- All sessions in one pass.
    select array_agg(m.user_id), array_agg(m.device_id)
      into v_users, v_devices
      from leasehold.members m
     where m.room_id = p_room_id;
    v_users := v_users || ''::text;
    v_devices := v_devices || ''::text;
    select o.now, o.lease_now, o.members_expired
      into v_now, v_lease_now, members_expired
      from leasehold.open_and_prune(
               array_fill(p_room_id, array[cardinality(v_users)]), v_users, v_devices, p_now) o;
    if leasehold.misdirected_rooms(array[p_room_id]) <> '{}' then
        outcome := 'misdirected';
        sessions_ended := 0;
        perform leasehold.prune_locked(array[p_room_id], v_now, v_lease_now);
        return;
    end if;
    select array_agg(m.user_id), array_agg(m.device_id)
      into v_users, v_devices
      from leasehold.members m
     where m.room_id = p_room_id;
    sessions_ended := coalesce(cardinality(v_users), 0);
    outcome := case when sessions_ended > 0 then 'closed' else 'absent' end;
    if sessions_ended > 0 then
        -- Those who came while the room was waited for are not locked yet.
        perform leasehold.lock_sessions(array_fill(p_room_id, array[sessions_ended]), v_users, v_devices);
        perform leasehold.end_sessions(
                    array(select m.ctid from leasehold.members m where m.room_id = p_room_id),
                    'room_closed', v_now, p_by, p_note);
    end if;
    perform leasehold.set_block(p_room_id, '', p_block_ms, p_by, p_note, v_now);
    perform leasehold.prune_locked(array[p_room_id], v_now, v_lease_now);
end
$function$;
comment on function leasehold.close_room(p_room_id text, p_block_ms bigint, p_by text, p_note text, p_now timestamp with time zone, OUT outcome text, OUT sessions_ended integer, OUT members_expired integer) is
    'Ends every session of a room and with them its lifetime; the history keeps who decided it (p_by) and why (p_note). With p_block_ms nobody opens it again for so long; 0 lifts that, null leaves it. Outcomes: closed, absent where nobody was in it, or misdirected where another database has the room. A join that comes later opens the next generation. Locks the room, then its sessions; waits for whoever holds one. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.closed_lifetimes(p_room_ids text[], OUT room_ids text[], OUT generations bigint[], OUT events bigint[])
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(array_agg(c.room_id order by c.room_id, c.generation), '{}'),
           coalesce(array_agg(c.generation order by c.room_id, c.generation), '{}'),
           coalesce(array_agg(c.closed_version order by c.room_id, c.generation), '{}')
      from leasehold.closed_generations c
     where c.room_id = any (p_room_ids)
$function$;
comment on function leasehold.closed_lifetimes(p_room_ids text[], OUT room_ids text[], OUT generations bigint[], OUT events bigint[]) is
    'Internal. The lifetimes of these rooms that are over, with how many events each had. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.departures(p_room_ids text[], p_generations bigint[], p_user_ids text[], p_arrivals bigint[])
 RETURNS TABLE(ord integer, epoch bigint, version bigint, reason text)
 LANGUAGE sql
 STABLE
AS $function$
    -- A stay is over at its first end that leaves no session of the member; the end of a
    -- superseded one is followed at once by the join that replaced it.
    (select distinct on (q.ord) q.ord::integer, e.epoch, e.version, e.reason
      from unnest(p_room_ids, p_generations, p_user_ids, p_arrivals)
           with ordinality as q (room_id, generation, user_id, arrival, ord)
     cross join lateral (
           select h.epoch, h.version, h.reason,
                  sum(case h.kind when 'joined' then 1 else -1 end) over (order by h.version) as sessions
             from leasehold.membership_events h
            where h.user_id = q.user_id and h.room_id = q.room_id
              and h.generation = q.generation and h.version >= q.arrival) e
     where e.sessions = 0 and e.reason <> 'superseded'
     order by q.ord, e.version)
    union all
    select q.ord::integer, null, g.closed_version, g.close_reason
      from unnest(p_room_ids, p_generations, p_user_ids)
           with ordinality as q (room_id, generation, user_id, ord)
      join leasehold.closed_generations g on g.room_id = q.room_id and g.generation = q.generation
     where q.user_id is null
$function$;
comment on function leasehold.departures(p_room_ids text[], p_generations bigint[], p_user_ids text[], p_arrivals bigint[]) is
    'Internal. How stays ended that began at these arrivals (members.arrival): the last session''s epoch and reason, and the version of its end; where the user is null, how the lifetime ended. No row for what goes on, or whose history is purged. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.disable_webhook(p_name text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    update leasehold.webhooks w
       set status = 'disabled', revision = w.revision + 1
     where w.name = p_name;
    return found;
end
$function$;
comment on function leasehold.disable_webhook(p_name text) is
    'Sends an endpoint nothing more; its position and what waits for it stay as they are. False where there is none. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.disconnect_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
    perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
    return (leasehold.disconnect_members(
                array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id], p_now))[1];
end
$function$;
comment on function leasehold.disconnect_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_now timestamp with time zone) is
    'Marks one session, in the caller''s transaction. Outcomes: disconnected, or the same as stale_reason. Locks the session; waits for whoever holds it. Errors: 22023, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.disconnect_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
    v_held record;
begin
    perform leasehold.check_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids);
    v_held := leasehold.lock_live_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids, p_now);
    -- The first report counts: since when the transport is lost.
    update leasehold.members
       set disconnected_at = coalesce(disconnected_at, v_held.now)
     where ctid = any (v_held.places);
    return leasehold.outcomes_of(
                    p_room_ids, p_user_ids, p_epochs, p_device_ids, v_held.live, 'disconnected', v_held.locked);
end
$function$;
comment on function leasehold.disconnect_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone) is
    'Marks sessions whose transport was lost, one request per position of the arrays; no lease changes. Outcomes: disconnected, busy where another transaction holds the session, or the same as stale_reason. Locks the sessions; waits for nobody. Errors: 22023.';

CREATE OR REPLACE FUNCTION leasehold.due_deliveries(p_name text, p_epoch bigint, p_revision bigint, p_busy_room_ids text[], p_limit integer)
 RETURNS TABLE(pending bigint, as_of timestamp with time zone, seq bigint, delivery_id text, room_id text, items text)
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return;
    end if;
    v_now := clock_timestamp();
    return query
    with waiting as (
        select count(*) as deliveries from leasehold.webhook_deliveries d where d.name = p_name
    ), chosen as (
        -- Of each room the oldest, if it is due; walked in order, so that no room is forgotten.
        select d.seq
          from leasehold.webhook_deliveries d
         where d.name = p_name and d.due_at <= v_now and d.room_id <> all (p_busy_room_ids)
           and not exists (select from leasehold.webhook_deliveries e
                            where e.name = d.name and e.room_id = d.room_id and e.seq < d.seq)
           and not exists (select from leasehold.webhooks w where w.name = p_name and w.held_until > v_now)
         order by d.seq
         limit p_limit
    ), begun as (
        update leasehold.webhook_deliveries d
           set attempts = d.attempts + 1
          from chosen c
         where d.name = p_name and d.seq = c.seq
        returning d.*
    )
    select w.deliveries, v_now, b.seq, b.delivery_id, b.room_id, b.items
      from waiting w
      left join begun b on true
     order by b.seq;
end
$function$;
comment on function leasehold.due_deliveries(p_name text, p_epoch bigint, p_revision bigint, p_busy_room_ids text[], p_limit integer) is
    'Internal. What an owner is to send now: the oldest delivery of each room that is due, but for rooms with one under way. One row at least, with how many deliveries wait; none where the owner no longer has the endpoint as it was. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.end_moved(p_slots integer[], p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT room_ids text[])
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_places tid[];
begin
    room_ids := leasehold.lock_rooms(array(
        select r from unnest(p_room_ids) as r where leasehold.slot_of(r) = any (p_slots)));
    if exists (select from leasehold.slot_states(p_slots) s where s.state <> 'leaving') then
        raise exception 'a slot is not leaving'
            using errcode = 'LH421', hint = 'Rooms are ended behind the fence; run the move again.';
    end if;
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id))
       from leasehold.members m
      where m.room_id = any (room_ids);
    perform leasehold.prune_due(room_ids, v_now, v_lease_now);
    v_places := array(select m.ctid from leasehold.members m where m.room_id = any (room_ids));
    if v_places <> '{}' then
        perform leasehold.end_sessions(v_places, 'moved', v_now);
        perform leasehold.prune_locked(room_ids, v_now, v_lease_now);
    end if;
end
$function$;
comment on function leasehold.end_moved(p_slots integer[], p_room_ids text[], p_now timestamp with time zone, OUT room_ids text[]) is
    'Internal. Ends what is left in those of these rooms whose slots are leaving, and answers those that were there. Locks the rooms in order of id, then their sessions; waits for whoever holds one. Errors: LH421, 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.end_sessions(p_places tid[], p_reason text, p_now timestamp with time zone, p_by text DEFAULT NULL::text, p_note text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.end_sessions(p_places tid[], p_reason text, p_now timestamp with time zone, p_by text, p_note text) is
    'Internal. Removes the sessions in these places (ctid), and records their end. The caller holds their locks, so that they stay in their places, and those of their rooms, and prunes afterwards.';

CREATE OR REPLACE FUNCTION leasehold.erase_user(p_user_id text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT room_ids text[], OUT sessions_erased integer, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.erase_user(p_user_id text, p_now timestamp with time zone, OUT room_ids text[], OUT sessions_erased integer, OUT members_expired integer) is
    'Ends a user''s sessions in all rooms and makes their history nobody''s: a pseudonym that is written down nowhere else takes the place of their id, and their devices, join ids, info and the notes on their ends go. Their epochs still rise should they come back. The same pseudonym stands for them where they decided about others. Blocks of them hold until they end, under their id. Answers the room of each session that it ended, and how many sessions there were in all. Waits for a purge under way, then the locks of remove_user, to the end of the transaction. Run it at read committed. Errors: 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.erased_person(p_room_id text, p_user_id text)
 RETURNS bytea
 LANGUAGE sql
 STABLE
AS $function$
    select p.person from leasehold.erased_persons(p_room_id, p_user_id) p where p.is_ours
$function$;
comment on function leasehold.erased_person(p_room_id text, p_user_id text) is
    'Internal. What stands for a person whom this database erases in a room, in place of the ids.';

CREATE OR REPLACE FUNCTION leasehold.erased_persons(p_room_id text, p_user_id text)
 RETURNS TABLE(person bytea, is_ours boolean)
 LANGUAGE sql
 STABLE
AS $function$
    -- Twice, as in HMAC: nobody can prolong what was hashed.
    select sha256(k.key || sha256(k.key || convert_to(p_room_id, 'UTF8') || '\x00' || convert_to(p_user_id, 'UTF8'))),
           k.is_ours
      from leasehold.erasure_keys k
$function$;
comment on function leasehold.erased_persons(p_room_id text, p_user_id text) is
    'Internal. What may stand for an erased person in a room, in place of the ids: by the key of each database that may have erased them.';

CREATE OR REPLACE FUNCTION leasehold.expire_webhook(p_name text, p_epoch bigint, p_revision bigint)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return false;
    end if;
    update leasehold.webhooks w set status = 'expired' where w.name = p_name;
    return true;
end
$function$;
comment on function leasehold.expire_webhook(p_name text, p_epoch bigint, p_revision bigint) is
    'Internal. Stops an endpoint whose position cannot be read from. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.export_floors(p_slots integer[], p_room_ids text[], OUT epochs text, OUT generations text, OUT blocks text, OUT erased text, OUT erasure_keys text)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
    select (select array_agg(f)::text from leasehold.epoch_floors f where f.room_id = any (p_room_ids)),
           (select array_agg(f)::text from leasehold.generation_floors f where f.room_id = any (p_room_ids)),
           (select array_agg(b)::text from leasehold.blocks b
             where b.room_id <> '' and leasehold.slot_of(b.room_id) = any (p_slots)),
           -- Of whom they are, and of which room, shows to nobody: so all of them.
           (select array_agg(f)::text from leasehold.erased_floors f),
           (select array_agg(k)::text from leasehold.erasure_keys k)
$function$;
comment on function leasehold.export_floors(p_slots integer[], p_room_ids text[], OUT epochs text, OUT generations text, OUT blocks text, OUT erased text, OUT erasure_keys text) is
    'Internal. What keeps epochs and generations of these rooms from going back, and who is blocked in the slots, as import_floors takes it. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.export_lifetimes(p_room_ids text[], p_generations bigint[], OUT closed text, OUT events text, OUT purges text)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
    with wanted as materialized (
        select c.*
          from unnest(p_room_ids, p_generations) as q (room_id, generation)
          join leasehold.closed_generations c on c.room_id = q.room_id and c.generation = q.generation
    )
    select (select array_agg(row(w.*)::leasehold.closed_generations)::text from wanted w),
           (select array_agg(e)::text from wanted w
              join leasehold.membership_events e on e.lifetime_id = w.lifetime_id),
           (select array_agg(p)::text from wanted w
              join leasehold.generation_purges p on p.room_id = w.room_id and p.generation = w.generation)
$function$;
comment on function leasehold.export_lifetimes(p_room_ids text[], p_generations bigint[], OUT closed text, OUT events text, OUT purges text) is
    'Internal. All that is known of these lifetimes, as import_lifetimes takes it. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.feed_end(OUT name text, OUT settled_era integer, OUT settled_xact_id xid8, OUT era integer, OUT xact_id xid8, OUT event_id bigint, OUT mark text, OUT more_is_coming boolean)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.feed_end(OUT name text, OUT settled_era integer, OUT settled_xact_id xid8, OUT era integer, OUT xact_id xid8, OUT event_id bigint, OUT mark text, OUT more_is_coming boolean) is
    'Internal. Up to where the feed is settled, the last event before that (or what was purged last), and whether committed changes wait for an older transaction to end.';

CREATE OR REPLACE FUNCTION leasehold.feed_mark(p_recorded_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN lpad(to_hex((leasehold.micros(p_recorded_at) & '4294967295'::bigint)), 8, '0'::text);
comment on function leasehold.feed_mark(p_recorded_at timestamp with time zone) is
    'Internal. What only the same history has at the same place: when the event there was recorded, to 71 minutes.';

CREATE OR REPLACE FUNCTION leasehold.feed_place(p_position text, OUT era integer, OUT xact_id xid8, OUT event_id bigint, OUT part integer)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.feed_place(p_position text, OUT era integer, OUT xact_id xid8, OUT event_id bigint, OUT part integer) is
    'Internal. Where in the feed a position stands; null is before all that is kept. Errors: 22023 for a text that is no position, LH410 where what follows it cannot be told without a gap.';

CREATE OR REPLACE FUNCTION leasehold.heartbeat_interval(p_room_id text, p_user_id text, p_device_id text, p_epoch bigint)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$
    select m.heartbeat_ms
      from leasehold.members m
     where m.room_id = p_room_id and m.user_id = p_user_id
       and m.device_id = p_device_id and m.epoch = p_epoch
$function$;
comment on function leasehold.heartbeat_interval(p_room_id text, p_user_id text, p_device_id text, p_epoch bigint) is
    'Internal. How often this session is to be heard of, in milliseconds; null where it is not the current one. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.heartbeat_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_lease_ms integer DEFAULT NULL::integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
    if p_lease_ms is not null then
        perform leasehold.lock_rooms(array[p_room_id]);
        perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
        return (leasehold.resize_leases(
                    array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id],
                    array[p_lease_ms], p_now => p_now))[1];
    end if;
    perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
    return (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id], p_now => p_now))[1];
end
$function$;
comment on function leasehold.heartbeat_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_lease_ms integer, p_now timestamp with time zone) is
    'Renews one session''s lease, in the caller''s transaction, with p_lease_ms in another length from now on. Outcomes: renewed, or the same as stale_reason. Locks the session, with p_lease_ms its room before; waits for whoever holds them. Errors: 22023, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.heartbeat_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_set_cursor boolean[] DEFAULT '{}'::boolean[], p_cursors jsonb[] DEFAULT '{}'::jsonb[], p_set_metadata boolean[] DEFAULT '{}'::boolean[], p_metadata jsonb[] DEFAULT '{}'::jsonb[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_held record;
begin
    perform leasehold.check_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids);
    v_held := leasehold.lock_live_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids, p_now);

    if true = any (p_set_cursor) or true = any (p_set_metadata) then
        -- An UPDATE changes a row once: of each thing, what the session asked for last.
        update leasehold.members m
           set last_seen_at = v_held.now,
               lease_end = greatest(m.lease_end, v_held.lease_from + m.lease_ms * 1000::bigint),
               disconnected_at = null,
               cursor = case when l.cursor is null then m.cursor else p_cursors[l.cursor] end,
               metadata = case when l.metadata is null then m.metadata else p_metadata[l.metadata] end
          from (select r.ctid,
                       max(r.ord) filter (where p_set_cursor[r.ord]) as cursor,
                       max(r.ord) filter (where p_set_metadata[r.ord]) as metadata
                  from unnest(v_held.places, v_held.live) as r (ctid, ord)
                 group by r.ctid) l
         where m.ctid = l.ctid;
    else
        -- What nearly all heartbeats are: nothing to look up for each row.
        update leasehold.members
           set last_seen_at = v_held.now,
               lease_end = greatest(lease_end, v_held.lease_from + lease_ms * 1000::bigint),
               disconnected_at = null
         where ctid = any (v_held.places);
    end if;
    return leasehold.outcomes_of(
                    p_room_ids, p_user_ids, p_epochs, p_device_ids, v_held.live, 'renewed', v_held.locked);
end
$function$;
comment on function leasehold.heartbeat_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_set_cursor boolean[], p_cursors jsonb[], p_set_metadata boolean[], p_metadata jsonb[], p_now timestamp with time zone) is
    'Renews leases, one request per position of the arrays and in that order; a cursor or metadata changes where its flag is set. Outcomes: renewed, busy where another transaction holds the session (then nothing changed), or the same as stale_reason. Locks the sessions; waits for nobody. Errors: 22023.';

CREATE OR REPLACE FUNCTION leasehold.held_rows(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_joins boolean, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_users integer[] := '{}';
    v_lease_now bigint := leasehold.lease_clock(p_now);
    v_free text[] := leasehold.lock_free_rooms(p_room_ids);
    v_held text[];
    v_room text;
    v_patience text := current_setting('lock_timeout');
    v_places tid[];
begin
    if p_joins then
        v_users := array(select l.object from leasehold.user_locks(p_user_ids) l
                          where not pg_try_advisory_xact_lock_shared(l.class, l.object));
    end if;
    select coalesce(array_agg(room_id), '{}')
      into v_held
      from leasehold.rooms
     where room_id = any (p_room_ids) and room_id <> all (v_free);

    -- What another transaction is about to insert cannot be seen, only run into.
    for v_room in
        select distinct q.room_id from unnest(p_room_ids) as q (room_id) where q.room_id <> all (v_free || v_held)
    loop
        begin
            perform set_config('lock_timeout', '1ms', true);
            perform leasehold.await_opening(v_room);
            perform set_config('lock_timeout', v_patience, true);
        exception
            when lock_not_available then
                v_held := v_held || v_room;
        end;
    end loop;

    select coalesce(array_agg(l.ctid), '{}')
      into v_places
      from (select m.ctid
              from leasehold.members m
             where m.room_id = any (v_free)
               and (leasehold.lease_expired(m.lease_end, v_lease_now)
                    or (m.room_id, m.user_id, m.device_id) in (
                        select * from unnest(p_room_ids, p_user_ids, p_device_ids)))
               for update of m skip locked) l;
    return array(
        select case when leasehold.user_lock(q.user_id) = any (v_users) then 'user'
                    when q.room_id = any (v_held)
                         or exists (select from leasehold.members m
                                     where m.room_id = q.room_id and m.ctid <> all (v_places)
                                       and leasehold.lease_expired(m.lease_end, v_lease_now)) then 'room'
                    when exists (select from leasehold.members m
                                  where m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
                                    and m.ctid <> all (v_places)) then 'session' end
          from unnest(p_room_ids, p_user_ids, p_device_ids) with ordinality as q (room_id, user_id, device_id, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.held_rows(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_joins boolean, p_now timestamp with time zone) is
    'Internal. What a join or leave would wait for at this moment, for each request: user where another transaction puts this one, or one that shares its lock, out of all rooms and joins wait for that; room where another transaction holds the room, opens it, or holds a session in it that has expired; session where one holds the request''s own; null where nothing is held. Locks the others to the end of the transaction; waits a millisecond per room that does not exist.';

CREATE OR REPLACE FUNCTION leasehold.holds_webhook(p_name text, p_epoch bigint, p_revision bigint DEFAULT NULL::bigint)
 RETURNS boolean
 LANGUAGE sql
AS $function$
    -- Whoever claims or changes the endpoint waits until this step is done.
    select exists (select from leasehold.webhooks w
                    where w.name = p_name and w.epoch = p_epoch
                      and (p_revision is null or (w.revision = p_revision and w.status = 'active'))
                      for update)
$function$;
comment on function leasehold.holds_webhook(p_name text, p_epoch bigint, p_revision bigint) is
    'Internal. Whether this owner still has the endpoint and, where it names a revision, has it as it is now. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.import_floors(p_slots integer[], p_epochs text, p_generations text, p_blocks text, p_erased text, p_erasure_keys text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    insert into leasehold.epoch_floors as f
    select * from unnest(p_epochs::leasehold.epoch_floors[])
        on conflict (room_id, user_id) do update set epoch = greatest(f.epoch, excluded.epoch);
    insert into leasehold.generation_floors as f
    select * from unnest(p_generations::leasehold.generation_floors[])
        on conflict (room_id) do update set generation = greatest(f.generation, excluded.generation);
    insert into leasehold.erasure_keys (key, is_ours)
    select k.key, false from unnest(p_erasure_keys::leasehold.erasure_keys[]) k
        on conflict (key) do nothing;
    insert into leasehold.erased_floors as f
    select * from unnest(p_erased::leasehold.erased_floors[])
        on conflict (person) do update set epoch = greatest(f.epoch, excluded.epoch);
    -- Left from an earlier time here, perhaps lifted since.
    delete from leasehold.blocks b where b.room_id <> '' and leasehold.slot_of(b.room_id) = any (p_slots);
    insert into leasehold.blocks select * from unnest(p_blocks::leasehold.blocks[]);
end
$function$;
comment on function leasehold.import_floors(p_slots integer[], p_epochs text, p_generations text, p_blocks text, p_erased text, p_erasure_keys text) is
    'Internal. Takes over what export_floors answered; floors only rise. Can be done again.';

CREATE OR REPLACE FUNCTION leasehold.import_lifetimes(p_closed text, p_events text, p_purges text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
    v_events bigint;
begin
    with lifetime as materialized (
        select c.*, nextval(pg_get_serial_sequence('leasehold.rooms', 'lifetime_id')) as new_lifetime_id
          from unnest(p_closed::leasehold.closed_generations[]) c
    ), arrived as materialized (
        select e.*, l.new_lifetime_id,
               -- In the order in which a purge forgets it, what closed the room last.
               max(leasehold.micros(e.recorded_at)) over (
                   partition by e.lifetime_id order by e.version)::text::xid8 as new_xact_id
          from unnest(p_events::leasehold.membership_events[]) e
          join lifetime l on l.lifetime_id = e.lifetime_id
    ), closed as (
        insert into leasehold.closed_generations
               (room_id, generation, lifetime_id, opened_at, closed_at, close_reason, closed_version, peak_members, era, last_xact_id)
        select l.room_id, l.generation, l.new_lifetime_id, l.opened_at, l.closed_at, l.close_reason, l.closed_version,
               l.peak_members, 0, a.new_xact_id
          from lifetime l
          join arrived a on a.lifetime_id = l.lifetime_id and a.version = l.closed_version
    )
    insert into leasehold.membership_events
           (xact_id, lifetime_id, room_id, generation, version, user_id, device_id, epoch, kind, reason, occurred_at,
            recorded_at, last_seen_at, member_count, era, join_id, info, ended_by, note)
    select a.new_xact_id, a.new_lifetime_id, a.room_id, a.generation, a.version, a.user_id, a.device_id, a.epoch, a.kind,
           a.reason, a.occurred_at, a.recorded_at, a.last_seen_at, a.member_count, 0, a.join_id, a.info, a.ended_by, a.note
      from arrived a
     order by a.room_id, a.generation, a.version;
    get diagnostics v_events = row_count;
    insert into leasehold.generation_purges
    select * from unnest(p_purges::leasehold.generation_purges[]);
    return v_events;
end
$function$;
comment on function leasehold.import_lifetimes(p_closed text, p_events text, p_purges text) is
    'Internal. Takes over what export_lifetimes answered, of lifetimes that were never here; answers how many events it was. Errors: 23505 where a person has the same epoch in a room here, as then two databases had it.';

CREATE OR REPLACE FUNCTION leasehold.instant(p_micros bigint)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (('1970-01-01 00:00:00'::timestamp without time zone + ((p_micros)::double precision * '00:00:00.000001'::interval)) AT TIME ZONE 'UTC'::text);
comment on function leasehold.instant(p_micros bigint) is
    'Internal. The opposite of micros.';

CREATE OR REPLACE FUNCTION leasehold.is_id(p_id text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((char_length(p_id) >= 1) AND (char_length(p_id) <= 256)) AND (p_id !~ '[\u0001-\u001f\u007f-\u009f]'::text));
comment on function leasehold.is_id(p_id text) is
    'Whether a text can be a room, user or device id: 1 to 256 characters, no control characters.';

CREATE OR REPLACE FUNCTION leasehold.is_misdirected(p_room_id text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select not c.owns_all
           and not exists (select from leasehold.slots s
                            where s.slot = leasehold.slot_of(p_room_id) and s.state = 'owned')
      from leasehold.cell c
$function$;
comment on function leasehold.is_misdirected(p_room_id text) is
    'Whether another database has this room, or is about to: then nothing is to be said of it here. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.is_note(p_note text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((char_length(p_note) >= 1) AND (char_length(p_note) <= 500)) AND (p_note !~ '[\u0001-\u001f\u007f-\u009f]'::text));
comment on function leasehold.is_note(p_note text) is
    'Internal. Whether a text can say why somebody was removed: 1 to 500 characters, no control characters.';

CREATE OR REPLACE FUNCTION leasehold.join_asked(p_room_id text, p_user_id text, p_device_id text, p_join_id text)
 RETURNS TABLE(epoch bigint)
 LANGUAGE sql
 STABLE
AS $function$
    select e.epoch
      from leasehold.membership_events e
     where e.user_id = p_user_id and e.room_id = p_room_id
       -- Few rows by the key, so that joins need no index more.
       and e.epoch > (select max(l.epoch) from leasehold.membership_events l
                       where l.user_id = p_user_id and l.room_id = p_room_id) - 32
       and e.kind = 'joined' and e.join_id = p_join_id and e.device_id = p_device_id
     order by e.epoch desc
     limit 1
$function$;
comment on function leasehold.join_asked(p_room_id text, p_user_id text, p_device_id text, p_join_id text) is
    'Internal. Which of the last 32 joins of a user in a room was called this on this device; no row where none was.';

CREATE OR REPLACE FUNCTION leasehold.join_member(p_room_id text, p_user_id text, p_device_id text DEFAULT ''::text, p_lease_ms integer DEFAULT 15000, p_heartbeat_ms integer DEFAULT NULL::integer, p_metadata jsonb DEFAULT NULL::jsonb, p_cursor jsonb DEFAULT NULL::jsonb, p_if_present text DEFAULT 'replace'::text, p_info jsonb DEFAULT NULL::jsonb, p_join_id text DEFAULT NULL::text, p_capacity integer DEFAULT NULL::integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT epoch bigint, OUT generation bigint, OUT arrived_at timestamp with time zone, OUT lease_expires_at timestamp with time zone, OUT device_id text, OUT blocked_until timestamp with time zone, OUT as_of timestamp with time zone)
 RETURNS record
 LANGUAGE sql
AS $function$
    select j.outcomes[1], j.epochs[1], j.generations[1], j.arrived_at[1], j.lease_expires_at[1], j.device_ids[1],
           j.blocked_until[1], j.as_of
      from leasehold.join_members(
               array[p_room_id], array[p_user_id], array[p_device_id], array[p_lease_ms],
               array[p_heartbeat_ms], array[p_metadata], array[p_cursor], array[p_if_present],
               array[p_info], array[p_join_id], array[p_capacity],
               p_now => p_now) j
$function$;
comment on function leasehold.join_member(p_room_id text, p_user_id text, p_device_id text, p_lease_ms integer, p_heartbeat_ms integer, p_metadata jsonb, p_cursor jsonb, p_if_present text, p_info jsonb, p_join_id text, p_capacity integer, p_now timestamp with time zone, OUT outcome text, OUT epoch bigint, OUT generation bigint, OUT arrived_at timestamp with time zone, OUT lease_expires_at timestamp with time zone, OUT device_id text, OUT blocked_until timestamp with time zone, OUT as_of timestamp with time zone) is
    'Joins one member, in the caller''s transaction. The same outcomes, locks and errors as join_members.';

CREATE OR REPLACE FUNCTION leasehold.join_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_ms integer[], p_heartbeat_ms integer[] DEFAULT '{}'::integer[], p_metadata jsonb[] DEFAULT '{}'::jsonb[], p_cursors jsonb[] DEFAULT '{}'::jsonb[], p_if_present text[] DEFAULT '{}'::text[], p_info jsonb[] DEFAULT '{}'::jsonb[], p_join_ids text[] DEFAULT '{}'::text[], p_capacities integer[] DEFAULT '{}'::integer[], p_max_members integer DEFAULT NULL::integer, p_max_devices integer DEFAULT NULL::integer, p_max_rooms integer DEFAULT NULL::integer, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcomes text[], OUT epochs bigint[], OUT generations bigint[], OUT arrived_at timestamp with time zone[], OUT lease_expires_at timestamp with time zone[], OUT device_ids text[], OUT blocked_until timestamp with time zone[], OUT as_of timestamp with time zone, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_requests integer := leasehold.check_requests(p_room_ids, p_user_ids, p_device_ids);
    v_lease_now bigint;
    v_lease_from bigint;
    v_again record;
    v_starts integer[] := '{1}';
    v_misdirected text[];
    v_full text[] := '{}';
    v_lost leasehold.members[];
    v_round record;
    v_unopened text[];
begin
    perform leasehold.check_lengths(v_requests, p_lease_ms, p_heartbeat_ms);
    perform leasehold.check_options(
                v_requests, p_if_present, p_metadata, p_cursors, p_info, p_join_ids, p_capacities);
    perform leasehold.share_users(p_user_ids);
    select o.now, o.lease_now, o.lease_from, o.members_expired
      into as_of, v_lease_now, v_lease_from, members_expired
      from leasehold.open_and_prune(p_room_ids, p_user_ids, p_device_ids, p_now) o;
    v_misdirected := leasehold.misdirected_rooms(p_room_ids);
    outcomes := '{}';
    epochs := '{}';
    generations := '{}';
    arrived_at := '{}';
    lease_expires_at := '{}';
    device_ids := '{}';
    blocked_until := '{}';

    -- A room whose capacity changes from one request to the next is judged anew as well.
    for v_again in
        select a.ord, a.previous
          from (select q.ord::integer as ord,
                       greatest(lag(q.ord::integer) over (partition by q.room_id, q.user_id order by q.ord),
                                case when lag(q.capacity) over in_room is distinct from q.capacity
                                     then lag(q.ord::integer) over in_room end) as previous
                  from unnest(p_room_ids, p_user_ids, p_capacities)
                       with ordinality as q (room_id, user_id, capacity, ord)
                window in_room as (partition by q.room_id order by q.ord)) a
         where a.previous is not null
         order by a.ord
    loop
        if v_again.previous >= v_starts[cardinality(v_starts)] then
            v_starts := v_starts || v_again.ord;
        end if;
    end loop;

    if p_max_rooms is not null then
        select coalesce(array_agg(n.room_id), '{}')
          into v_full
          from (select q.room_id, row_number() over (order by min(q.ord)) as rank
                  from unnest(p_room_ids, p_user_ids, p_device_ids, p_join_ids)
                       with ordinality as q (room_id, user_id, device_id, join_id, ord)
                  join leasehold.rooms r on r.room_id = q.room_id and r.version = 0
                 where q.room_id <> all (v_misdirected)
                   and not exists (select from leasehold.blocks_of(q.room_id, q.user_id, as_of))
                   and (q.join_id is null or not exists (
                           select from leasehold.join_asked(q.room_id, q.user_id, q.device_id, q.join_id)))
                 group by q.room_id) n
         where n.rank > p_max_rooms - (select count(*) from leasehold.rooms where version > 0);
    end if;

    for v_n in 1 .. cardinality(v_starts) loop
        v_lost := null;
        loop
            with known as (
                -- Every look-up is by key, so a batch costs what its requests cost.
                select q.ord::integer as ord, q.room_id, q.user_id, q.device_id, q.capacity,
                       r.lifetime_id, r.version, r.member_count,
                       case when r.version > 0 then r.generation
                            else 1 + greatest(
                                past.generation,
                                (select f.generation from leasehold.generation_floors f where f.room_id = q.room_id),
                                0)
                       end as generation,
                       greatest(r.last_xact_id, past.xact_id, pg_current_xact_id()) as xact_id,
                       1 + last.epoch as epoch,
                       s.sessions, s.arrival, s.arrived_at,
                       case when s.own_epoch is not null then q.device_id else way.device_id end as held_device_id,
                       coalesce(s.own_epoch, way.epoch) as held_epoch,
                       coalesce(s.own_last_seen_at, way.last_seen_at) as held_last_seen_at,
                       s.own_epoch, s.own_lease_ms, s.other,
                       b.blocked_until, asked.epoch as asked_epoch,
                       case when q.room_id = any (v_misdirected) then 'misdirected'
                            when b.blocked_until is not null then 'blocked'
                            when asked.epoch = s.own_epoch then 'asked_again'
                            when asked.epoch is not null
                                 then leasehold.stale_reason(q.room_id, q.user_id, asked.epoch, q.device_id)
                            when q.room_id = any (v_full) then 'too_many_rooms'
                            when r.locked and s.sessions = 0 then 'room_locked'
                            when q.if_present = 'reject' and s.other is not null then 'already_present'
                            when s.own_epoch is null and way.epoch is null
                                 and s.sessions >= p_max_devices then 'too_many_devices'
                       end as refusal
                  from unnest(p_room_ids, p_user_ids, p_device_ids, p_if_present, p_join_ids, p_capacities)
                       with ordinality as q (room_id, user_id, device_id, if_present, join_id, capacity, ord)
                 cross join lateral (select * from leasehold.rooms r where r.room_id = q.room_id offset 0) r
                  left join lateral (
                       -- The lifetime before: this one stands behind its last change in the feed.
                       select c.generation,
                              case when c.era = (select f.era from leasehold.feed f where f.only_row) then c.last_xact_id end as xact_id
                         from leasehold.closed_generations c
                        where c.room_id = q.room_id
                        order by c.generation desc
                        limit 1) past on r.version = 0
                 cross join lateral (
                       select coalesce(
                           greatest(
                               (select max(e.epoch) from leasehold.membership_events e
                                 where e.room_id = q.room_id and e.user_id = q.user_id),
                               (select f.epoch from leasehold.epoch_floors f
                                 where f.room_id = q.room_id and f.user_id = q.user_id)),
                           -- Of who is new here, or was erased; hashed only where somebody was.
                           (select max(f.epoch) from leasehold.erased_floors f
                             where (select exists (select from leasehold.erased_floors))
                               and f.person in (select p.person from leasehold.erased_persons(q.room_id, q.user_id) p)),
                           0) as epoch) last
                 cross join lateral (
                       select count(*) as sessions,
                              min(m.arrival) as arrival,
                              min(m.arrived_at) as arrived_at,
                              min(m.epoch) filter (where m.device_id = q.device_id) as own_epoch,
                              min(m.last_seen_at) filter (where m.device_id = q.device_id) as own_last_seen_at,
                              min(m.lease_ms) filter (where m.device_id = q.device_id) as own_lease_ms,
                              max(m.epoch) filter (where m.device_id <> q.device_id) as other
                         from leasehold.members m
                        where m.room_id = q.room_id and m.user_id = q.user_id) s
                  left join lateral (
                       select max(b.blocked_until) as blocked_until
                         from leasehold.blocks_of(q.room_id, q.user_id, as_of) b
                        where b.user_id <> '' or s.sessions = 0) b on true
                  left join lateral leasehold.join_asked(q.room_id, q.user_id, q.device_id, q.join_id) asked
                    on q.join_id is not null
                  left join unnest(v_lost) way
                    on way.room_id = q.room_id and way.user_id = q.user_id
                   and s.own_epoch is null and s.sessions >= p_max_devices
                 where q.ord between v_starts[v_n] and coalesce(v_starts[v_n + 1] - 1, v_requests)
            ), decided as (
                -- New members take the free seats in the order in which they ask.
                select k.*,
                       coalesce(k.refusal,
                                case when k.sessions = 0
                                          and k.member_count
                                              + count(*) filter (where k.sessions = 0 and k.refusal is null)
                                                    over (partition by k.room_id order by k.ord)
                                              > least(p_max_members, k.capacity) then 'room_full' end) as word
                  from known k
            ), numbered as (
                select d.*,
                       d.member_count + count(*) filter (where d.word is null and d.sessions = 0) over in_order as member_count_after,
                       d.version + count(*) filter (where d.word is null) over in_order
                                 + count(d.held_epoch) filter (where d.word is null) over in_order as joined_version
                  from decided d
                window in_order as (partition by d.room_id order by d.ord)
            )
            select array_agg((n.ord, n.room_id, n.user_id, n.device_id, n.lifetime_id, n.generation, n.epoch, n.joined_version, n.xact_id,
                              coalesce(n.arrival, n.joined_version), coalesce(n.arrived_at, as_of),
                              n.member_count_after, n.version = 0, n.sessions = 0,
                              n.held_device_id, n.held_epoch, n.held_last_seen_at)::leasehold.placement)
                       filter (where n.word is null) as placed,
                   array_agg(n.ord) filter (where n.word = 'asked_again') as asked_again,
                   array_agg(coalesce(nullif(n.word, 'asked_again'), 'joined')) as outcomes,
                   array_agg(case when n.word is null then n.epoch
                                  when n.word = 'asked_again' then n.own_epoch
                                  when n.word = 'already_present' then n.other end) as epochs,
                   array_agg(case when n.word is null or n.word in ('asked_again', 'already_present')
                                  then n.generation end) as generations,
                   array_agg(case when n.word is null or n.word in ('asked_again', 'already_present')
                                  then coalesce(n.arrived_at, as_of) end) as arrived_at,
                   array_agg(case when n.word is null then as_of + p_lease_ms[n.ord] * interval '1 millisecond'
                                  when n.word = 'asked_again' then as_of + n.own_lease_ms * interval '1 millisecond'
                                  when n.word = 'already_present' then (
                                       select as_of + (m.lease_end - v_lease_now) * interval '1 microsecond'
                                         from leasehold.members m
                                        where m.room_id = n.room_id and m.user_id = n.user_id and m.epoch = n.other) end) as lease_ends,
                   array_agg(case when n.word is null or n.word = 'asked_again' then n.device_id
                                  when n.word = 'already_present' then (
                                       select m.device_id from leasehold.members m
                                        where m.room_id = n.room_id and m.user_id = n.user_id and m.epoch = n.other) end) as device_ids,
                   array_agg(case when n.word = 'blocked' then n.blocked_until end) as blocked_until
              into v_round
              from (select * from numbered order by ord) n;
            exit when v_lost is not null or 'too_many_devices' <> all (v_round.outcomes);

            -- Of a member with all devices taken the one gives way that was lost first. One that
            -- is held is being renewed at this moment, so it is not lost.
            select coalesce(array_agg(l.m), '{}')
              into v_lost
              from (select distinct on (c.room_id, c.user_id) c.m
                      from (select m, m.room_id, m.user_id, m.epoch,
                                   least(m.disconnected_at, m.last_seen_at + m.heartbeat_ms * interval '1.5 milliseconds') as lost_at
                              from leasehold.members m
                             where (m.room_id, m.user_id) in (
                                       select q.room_id, q.user_id
                                         from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                                        where v_round.outcomes[q.ord::integer - v_starts[v_n] + 1] = 'too_many_devices')
                               and leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, as_of) = 'reconnecting'
                               for update skip locked) c
                     order by c.room_id, c.user_id, c.lost_at, c.epoch) l;
            exit when v_lost = '{}';
        end loop;

        if v_round.placed is not null then
            perform leasehold.write_placements(
                        v_round.placed, p_lease_ms, p_heartbeat_ms, p_metadata, p_cursors, p_info, p_join_ids,
                        as_of, v_lease_from);
        end if;
        if v_round.asked_again is not null then
            update leasehold.members m
               set last_seen_at = as_of,
                   lease_end = greatest(m.lease_end, v_lease_from + m.lease_ms * 1000::bigint),
                   disconnected_at = null
              from unnest(v_round.asked_again) as ord
             where m.room_id = p_room_ids[ord] and m.user_id = p_user_ids[ord] and m.device_id = p_device_ids[ord];
        end if;
        -- A round is a part of the arrays, so the answers follow each other as the requests do.
        outcomes := outcomes || v_round.outcomes;
        epochs := epochs || v_round.epochs;
        generations := generations || v_round.generations;
        arrived_at := arrived_at || v_round.arrived_at;
        lease_expires_at := lease_expires_at || v_round.lease_ends;
        device_ids := device_ids || v_round.device_ids;
        blocked_until := blocked_until || v_round.blocked_until;
    end loop;

    if 'joined' <> any (outcomes) then
        -- A room in which every request was refused was never opened.
        select array_agg(room_id)
          into v_unopened
          from leasehold.rooms
         where room_id = any (p_room_ids) and version = 0;
        delete from leasehold.rooms where room_id = any (v_unopened);
    end if;
end
$function$;
comment on function leasehold.join_members(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_ms integer[], p_heartbeat_ms integer[], p_metadata jsonb[], p_cursors jsonb[], p_if_present text[], p_info jsonb[], p_join_ids text[], p_capacities integer[], p_max_members integer, p_max_devices integer, p_max_rooms integer, p_now timestamp with time zone, OUT outcomes text[], OUT epochs bigint[], OUT generations bigint[], OUT arrived_at timestamp with time zone[], OUT lease_expires_at timestamp with time zone[], OUT device_ids text[], OUT blocked_until timestamp with time zone[], OUT as_of timestamp with time zone, OUT members_expired integer) is
    'Joins members, one request per position of the arrays and in that order; arrays that are left empty mean their defaults. A join id of one of the person''s last 32 joins in the room on that device renews what it joined and answers the same. Answers one row of arrays in the same order. Outcomes: joined; already_present, with the session of another device that is there; blocked, with its end; room_full, room_locked, too_many_devices, too_many_rooms; misdirected where another database has the room; and for a join id whose session is over the same as stale_reason. Locks the users against remove_user, the rooms in order of id, then the sessions that are replaced or have expired; waits for whoever holds one. Run it at read committed. Errors: 22023 for arguments that cannot be, 23514 for an id that cannot be, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.lacking_lifetimes(p_room_ids text[], p_generations bigint[])
 RETURNS boolean[]
 LANGUAGE sql
 STABLE
AS $function$
    select array(
        select not exists (select from leasehold.closed_generations c
                            where c.room_id = q.room_id and c.generation = q.generation)
               -- What was purged here does not come back.
               and not exists (select from leasehold.generation_floors f
                                where f.room_id = q.room_id and f.generation >= q.generation)
          from unnest(p_room_ids, p_generations) with ordinality as q (room_id, generation, ord)
         order by q.ord)
$function$;
comment on function leasehold.lacking_lifetimes(p_room_ids text[], p_generations bigint[]) is
    'Internal. Of each of these lifetimes whether it was never here. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.lease_clock(p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS bigint
 LANGUAGE sql
RETURN (SELECT c.lease_now FROM leasehold.clocks(lease_clock.p_now) c(now, lease_now, lease_from));
comment on function leasehold.lease_clock(p_now timestamp with time zone) is
    'The clock by which leases are judged, in microseconds: the database''s less the time in which nobody served. It runs for pulse.reach after each beat and then stands still until the next, for pulse.max_pause at the longest, and never goes back. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.lease_expired(p_lease_end bigint, p_lease_now bigint)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (p_lease_now > p_lease_end);
comment on function leasehold.lease_expired(p_lease_end bigint, p_lease_now bigint) is
    'The one lease predicate, on the lease clock: at its end the session still lives, strictly past it it is gone.';

CREATE OR REPLACE FUNCTION leasehold.lease_instant(p_lease_end bigint)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
    select i.ended_at from leasehold.lease_instants(p_lease_end) i
$function$;
comment on function leasehold.lease_instant(p_lease_end bigint) is
    'When a lease that is over ended, on the database''s clock, however late that is asked.';

CREATE OR REPLACE FUNCTION leasehold.lease_instants(p_lease_end bigint)
 RETURNS TABLE(ended_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    -- What comes strictly after a place where the clock stood still is after that outage.
    select leasehold.instant(
               p_lease_end
               + coalesce(
                   (select o.paused_after from leasehold.outages o
                     where o.lease_at < p_lease_end
                     order by o.lease_at desc, o.outage_id desc limit 1),
                   (select o.paused_before from leasehold.outages o
                     order by o.lease_at, o.outage_id limit 1),
                   p.paused)
               -- The clock goes on after the longest outage, also where no beat has said so yet.
               + case when p_lease_end > greatest(p.floor, leasehold.micros(p.last_at) + p.reach - p.paused)
                           and clock_timestamp() > p.last_at + (p.reach + p.max_pause) * interval '1 microsecond'
                      then p.max_pause else 0 end)
      from leasehold.pulse p
     -- By its key: a scan that a caller switched off would weigh more than the rest of their plan.
     where p.only_row
$function$;
comment on function leasehold.lease_instants(p_lease_end bigint) is
    'Internal. What lease_instant answers, as a table of one row: joined to many leases it is a part of their statement, and not a statement for each.';

CREATE OR REPLACE FUNCTION leasehold.leave_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE sql
AS $function$
    select l.outcomes[1]
      from leasehold.leave_members(
               array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id], p_now) l
$function$;
comment on function leasehold.leave_member(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text, p_now timestamp with time zone) is
    'Ends one session, in the caller''s transaction. The same outcomes, locks and errors as leave_members.';

CREATE OR REPLACE FUNCTION leasehold.leave_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcomes text[], OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_rooms text[];
    v_now timestamptz;
    v_lease_now bigint;
    v_left integer[];
    v_places tid[];
begin
    perform leasehold.check_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids);
    v_rooms := leasehold.lock_rooms(p_room_ids);
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(p_room_ids, p_user_ids, p_device_ids, v_lease_now);
    members_expired := coalesce(leasehold.prune_due(v_rooms, v_now, v_lease_now), 0);

    select array_agg(l.ord), array_agg(l.place)
      into v_left, v_places
      from (select min(q.ord)::integer as ord, m.ctid as place
              from unnest(p_room_ids, p_user_ids, p_epochs, p_device_ids)
                   with ordinality as q (room_id, user_id, epoch, device_id, ord)
             cross join lateral (
                   select m.ctid from leasehold.members m
                    where m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
                      and m.epoch = q.epoch
                   offset 0) m
             where q.room_id = any (v_rooms)
             group by m.ctid) l;
    if v_left is not null then
        perform leasehold.end_sessions(v_places, 'left', v_now);
        perform leasehold.prune_due(v_rooms, v_now, v_lease_now);
    end if;
    -- Of what is asked twice, the second is told how it ended.
    outcomes := array(
        select case when q.ord = any (v_left) then 'left'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.epoch, q.device_id) end
          from unnest(p_room_ids, p_user_ids, p_epochs, p_device_ids)
               with ordinality as q (room_id, user_id, epoch, device_id, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.leave_members(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone, OUT outcomes text[], OUT members_expired integer) is
    'Ends sessions whose epoch is current, one request per position of the arrays. Outcomes: left, or the same as stale_reason. Locks the rooms in order of id, then the sessions; waits for whoever holds one. Run it at read committed. Errors: 22023, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.list_rooms(p_prefix text DEFAULT ''::text, p_after text DEFAULT ''::text, p_limit integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, generation bigint, version bigint, opened_at timestamp with time zone, locked boolean, member_count integer, as_of timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select r.room_id, r.generation, r.version + live.expired, r.opened_at, r.locked, live.members, clock.now
      from leasehold.rooms r
     cross join leasehold.clocks(p_now) clock
     cross join lateral (
           -- While no lease of the room can have ended, its count is exact.
           select 0::bigint as expired, r.member_count as members
            where not leasehold.lease_expired(r.next_end, clock.lease_now)
            union all
           select count(*) filter (where leasehold.lease_expired(m.lease_end, clock.lease_now)),
                  (count(distinct m.user_id)
                      filter (where not leasehold.lease_expired(m.lease_end, clock.lease_now)))::integer
             from leasehold.members m
            where m.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having leasehold.lease_expired(r.next_end, clock.lease_now)) live
     where r.room_id > p_after
       -- An id has at most 256 characters: nothing that starts with the prefix sorts behind this.
       and r.room_id between p_prefix and p_prefix || repeat(U&'\+10FFFF', 256)
       and live.members > 0
     order by r.room_id
     limit p_limit
$function$;
comment on function leasehold.list_rooms(p_prefix text, p_after text, p_limit integer, p_now timestamp with time zone) is
    'The rooms with a live member whose id starts with p_prefix, in order of id, those after p_after. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.lock_door(p_room_id text, p_locked boolean DEFAULT true, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[] := leasehold.lock_rooms(array[p_room_id]);
begin
    select coalesce(leasehold.prune_due(v_rooms, c.now, c.lease_now), 0)
      into members_expired
      from leasehold.clocks(p_now) c;
    update leasehold.rooms r set locked = p_locked where r.room_id = any (v_rooms);
    outcome := case when not found and leasehold.is_misdirected(p_room_id) then 'misdirected'
                    when not found then 'absent' when p_locked then 'locked' else 'unlocked' end;
end
$function$;
comment on function leasehold.lock_door(p_room_id text, p_locked boolean, p_now timestamp with time zone, OUT outcome text, OUT members_expired integer) is
    'Lets nobody into a room who is not in it, or everybody again. Those inside stay, and may join again while they are; the next lifetime of the room begins unlocked. Outcomes: locked, unlocked, absent where there is no such room, or misdirected where another database has it. Locks the room; waits for whoever holds it. Run it at read committed. Errors: 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.lock_free_rooms(p_room_ids text[])
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[];
begin
    select array_agg(r.room_id)
      into v_rooms
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
               for no key update skip locked) r;
    return coalesce(v_rooms, '{}');
end
$function$;
comment on function leasehold.lock_free_rooms(p_room_ids text[]) is
    'Internal. Locks those of these rooms that exist and that no other transaction holds, and answers them. Never waits.';

CREATE OR REPLACE FUNCTION leasehold.lock_live_sessions(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone, OUT now timestamp with time zone, OUT lease_from bigint, OUT places tid[], OUT live integer[], OUT locked integer[])
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_first_end bigint;
    v_lease_now bigint;
begin
    select array_agg(l.ctid), array_agg(l.ord::integer), min(l.lease_end)
      into places, locked, v_first_end
      from (select m.ctid, q.ord, m.lease_end
              from unnest(p_room_ids) with ordinality as q (room_id, ord)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = p_user_ids[q.ord]
               and m.device_id = p_device_ids[q.ord] and m.epoch = p_epochs[q.ord]
               for no key update of m skip locked) l;
    select c.now, c.lease_now, c.lease_from into now, v_lease_now, lease_from from leasehold.clocks(p_now) c;
    live := locked;
    if leasehold.lease_expired(v_first_end, v_lease_now) then
        -- A locked row does not move.
        select array_agg(l.place), array_agg(l.ord)
          into places, live
          from unnest(places, locked) as l (place, ord)
          join leasehold.members m on m.ctid = l.place
         where not leasehold.lease_expired(m.lease_end, v_lease_now);
    end if;
end
$function$;
comment on function leasehold.lock_live_sessions(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_now timestamp with time zone, OUT now timestamp with time zone, OUT lease_from bigint, OUT places tid[], OUT live integer[], OUT locked integer[]) is
    'Internal. Locks those of these sessions whose epoch is current and which no other transaction holds, then reads the clock. Answers the places of those that live and which requests they are, and which requests are locked. Never waits.';

CREATE OR REPLACE FUNCTION leasehold.lock_rooms(p_room_ids text[])
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[];
begin
    select array_agg(r.room_id)
      into v_rooms
      from (select room_id
              from leasehold.rooms
             where room_id = any (p_room_ids)
             order by room_id
               for no key update) r;
    return coalesce(v_rooms, '{}');
end
$function$;
comment on function leasehold.lock_rooms(p_room_ids text[]) is
    'Internal. Locks those of these rooms that exist, in order of id, and answers them: only they are locked. Waits for whoever holds one. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.lock_sessions(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_now bigint DEFAULT NULL::bigint)
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
       and leasehold.lease_expired(next_end, p_lease_now);
    -- All at once: two passes, each in order, could still meet somebody who waits in between.
    perform
       from (select q.room_id collate "C" as room_id, q.user_id collate "C" as user_id, q.device_id collate "C" as device_id
               from unnest(p_room_ids, p_user_ids, p_device_ids) as q (room_id, user_id, device_id)
              union
             select e.room_id, e.user_id, e.device_id
               from leasehold.members e
              where e.room_id = any (v_due)
                and leasehold.lease_expired(e.lease_end, p_lease_now)
              order by 1, 2, 3) k
      -- Each by its key: a plan that was made while the table was empty would go through it for each.
      cross join lateral (
            select from leasehold.members m
             where m.room_id = k.room_id and m.user_id = k.user_id and m.device_id = k.device_id
               for update) locked;
end
$function$;
comment on function leasehold.lock_sessions(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_lease_now bigint) is
    'Internal. Locks these sessions, and with p_lease_now the expired ones of their rooms, in order of room, user and device. Waits for whoever holds one. Who means to change membership holds the rooms already. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.lock_user(p_user_id text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform pg_advisory_xact_lock(l.class, l.object) from leasehold.user_locks(array[p_user_id]) l;
end
$function$;
comment on function leasehold.lock_user(p_user_id text) is
    'Internal. Returns when no join of this user is in flight, and lets none begin to the end of the transaction. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.micros(p_at timestamp with time zone)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((EXTRACT(epoch FROM (p_at AT TIME ZONE 'UTC'::text)) * (1000000)::numeric))::bigint;
comment on function leasehold.micros(p_at timestamp with time zone) is
    'Internal. An instant as microseconds since 1970.';

CREATE OR REPLACE FUNCTION leasehold.misdirected_rooms(p_room_ids text[])
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
begin
    -- A snapshot from before the lock may not know of a fence.
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from leasehold.cell for share;
    end if;
    if (select c.owns_all from leasehold.cell c) then
        return '{}';
    end if;
    return array(select distinct q.room_id
                   from unnest(p_room_ids) as q (room_id)
                  -- By key: as a join it would go through all slots with plans that are kept.
                  where (select s.state from leasehold.slots s
                          where s.slot = leasehold.slot_of(q.room_id)) is distinct from 'owned');
end
$function$;
comment on function leasehold.misdirected_rooms(p_room_ids text[]) is
    'Internal. Those of these rooms that this database may not open. The caller has locked them with open_rooms, so a fence that this does not see waits for its transaction; see leasehold.room_writers. Errors: 40001 at a stricter level than read committed, where a fence came between.';

CREATE OR REPLACE FUNCTION leasehold.open_and_prune(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone, OUT now timestamp with time zone, OUT lease_now bigint, OUT lease_from bigint, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
begin
    perform leasehold.open_rooms(p_room_ids);
    select c.now, c.lease_now, c.lease_from
      into now, lease_now, lease_from
      from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(p_room_ids, p_user_ids, p_device_ids, lease_now);
    members_expired := leasehold.prune_due(p_room_ids, now, lease_now);
    if members_expired is not null then
        -- Pruning may have deleted a room: it is opened again, under the lock that is still held.
        perform leasehold.open_rooms(p_room_ids);
    end if;
    members_expired := coalesce(members_expired, 0);
end
$function$;
comment on function leasehold.open_and_prune(p_room_ids text[], p_user_ids text[], p_device_ids text[], p_now timestamp with time zone, OUT now timestamp with time zone, OUT lease_now bigint, OUT lease_from bigint, OUT members_expired integer) is
    'Internal. Locks these rooms in order of id, those that do not exist as well (version 0), reads the clock, locks these sessions and prunes what is due. Waits for whoever holds one. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.open_rooms(p_room_ids text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    -- A conflict locks the existing row, although the update never happens.
    insert into leasehold.rooms as r
           (room_id, generation, version, opened_at, next_end, member_count, peak_members)
    select distinct id collate "C" as id, 1, 0, '-infinity'::timestamptz, 9223372036854775807, 0, 0
      from unnest(p_room_ids) as id
     order by id
        on conflict (room_id) do update set version = r.version where false;
end
$function$;
comment on function leasehold.open_rooms(p_room_ids text[]) is
    'Internal. Locks these rooms in order of id, those that do not exist as well: they are there then, with version 0. Waits for whoever holds one. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.open_transactions()
 RETURNS TABLE(holder text, oldest_seconds double precision, oldest_transactions bigint, unseen bigint)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.open_transactions() is
    'Internal. What keeps dead rows or holds back the feed of this database: for each kind of holder since when its oldest transaction is open, how many have begun since its oldest, and of how many this role may not see when they began. A row each for session, prepared, standby and slot.';

CREATE OR REPLACE FUNCTION leasehold.outcomes_of(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_done integer[], p_word text, p_locked integer[])
 RETURNS text[]
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
    if cardinality(p_done) = cardinality(p_room_ids) then
        return array_fill(p_word, array[cardinality(p_room_ids)]);
    end if;
    return array(
        select case when q.ord = any (p_done) then p_word
                    -- There, and not locked by this call: somebody else holds it.
                    when not coalesce(q.ord = any (p_locked), false)
                         and exists (select from leasehold.members m
                                      where m.room_id = q.room_id and m.user_id = q.user_id
                                        and m.device_id = q.device_id and m.epoch = q.epoch) then 'busy'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.epoch, q.device_id) end
          from unnest(p_room_ids, p_user_ids, p_epochs, p_device_ids)
               with ordinality as q (room_id, user_id, epoch, device_id, ord)
         order by q.ord);
end
$function$;
comment on function leasehold.outcomes_of(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_done integer[], p_word text, p_locked integer[]) is
    'Internal. For each request this word where it was done, busy where another transaction holds its session, and else why it is stale.';

CREATE OR REPLACE FUNCTION leasehold.own_slots(p_slots integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    v_slot integer;
begin
    -- Nobody is opening a room now.
    lock table leasehold.rooms in exclusive mode;
    if not (select c.owns_all from leasehold.cell c) then
        raise exception 'this database was told already which slots it owns'
            using errcode = 'LH421', hint = 'Move slots between databases with leasehold cell move.';
    end if;
    update leasehold.cell set owns_all = false, fences = fences + 1;
    insert into leasehold.slots (slot, state) select distinct s, 'owned' from unnest(p_slots) as s;
    select leasehold.slot_of(k.room_id)
      into v_slot
      from (select r.room_id from leasehold.rooms r
            union all
            select c.room_id from leasehold.closed_generations c
            union all
            select f.room_id from leasehold.generation_floors f
            union all
            select b.room_id from leasehold.blocks b where b.room_id <> '') k
     where leasehold.is_misdirected(k.room_id)
     limit 1;
    if found then
        raise exception 'this database has, or had, rooms of slot %, which is not among those', v_slot
            using errcode = 'LH421', hint = 'Name all slots that have rooms here, and move them with leasehold cell move.';
    end if;
end
$function$;
comment on function leasehold.own_slots(p_slots integer[]) is
    'Says once, of a database that is to be one of several, which slots it owns; none for an empty array. Errors: LH421 where it was said before, or there is a room of another slot; 55P03, 40P01. Waits for joins under way and holds up others to the end of the transaction.';

CREATE OR REPLACE FUNCTION leasehold.position_key(p_position text)
 RETURNS leasehold.feed_key
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ROW((split_part(p_position, '.'::text, 2))::integer, (split_part(p_position, '.'::text, 3))::xid8, (split_part(p_position, '.'::text, 4))::bigint)::leasehold.feed_key;
comment on function leasehold.position_key(p_position text) is
    'Internal. The place of the event that a position stands at.';

CREATE OR REPLACE FUNCTION leasehold.position_text(p_name text, p_era integer, p_xact_id xid8, p_event_id bigint, p_part integer, p_mark text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN concat_ws('.'::text, p_name, p_era, p_xact_id, p_event_id, p_part, p_mark);
comment on function leasehold.position_text(p_name text, p_era integer, p_xact_id xid8, p_event_id bigint, p_part integer, p_mark text) is
    'Internal. How a position is written. Part 0 opens the room, 1 is the event itself, 2 closes the room or is behind all of it.';

CREATE OR REPLACE FUNCTION leasehold.prune_due(p_locked text[], p_now timestamp with time zone, p_lease_now bigint)
 RETURNS integer
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
       and (member_count = 0 or leasehold.lease_expired(next_end, p_lease_now));
    if v_due is null then
        return null;
    end if;
    return (select p.members_expired from leasehold.prune_locked(v_due, p_now, p_lease_now) p);
end
$function$;
comment on function leasehold.prune_due(p_locked text[], p_now timestamp with time zone, p_lease_now bigint) is
    'Internal. Prunes those of the locked rooms that are empty or may hold an expired session; how many expired, or null where there was no such room.';

CREATE OR REPLACE FUNCTION leasehold.prune_locked(p_room_ids text[], p_now timestamp with time zone, p_lease_now bigint, OUT members_expired integer, OUT rooms_closed integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.prune_locked(p_room_ids text[], p_now timestamp with time zone, p_lease_now bigint, OUT members_expired integer, OUT rooms_closed integer) is
    'Internal. The only place that removes for expiry and the only one that deletes a room. Passes over sessions that another transaction holds. The caller holds the rooms'' locks.';

CREATE OR REPLACE FUNCTION leasehold.prune_rooms(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_rooms text[] := leasehold.lock_free_rooms(p_room_ids);
begin
    select p.members_expired, p.rooms_closed
      into members_expired, rooms_closed
      from leasehold.clocks(p_now) c, leasehold.prune_locked(v_rooms, c.now, c.lease_now) p;
end
$function$;
comment on function leasehold.prune_rooms(p_room_ids text[], p_now timestamp with time zone, OUT members_expired integer, OUT rooms_closed integer) is
    'Removes the expired sessions of these rooms, and the rooms that this leaves empty. Waits for nobody: what another transaction holds is left for the next time.';

CREATE OR REPLACE FUNCTION leasehold.purge(p_older_than interval, p_max_events integer DEFAULT 10000, p_webhooks_wait interval DEFAULT '7 days'::interval, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT ran boolean, OUT generations_purged integer, OUT events_purged integer, OUT blocks_purged integer, OUT finished boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET jit TO 'off'
AS $function$
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
$function$;
comment on function leasehold.purge(p_older_than interval, p_max_events integer, p_webhooks_wait interval, p_now timestamp with time zone, OUT ran boolean, OUT generations_purged integer, OUT events_purged integer, OUT blocks_purged integer, OUT finished boolean) is
    'One batch of forgetting: looks at up to p_max_events events and removes the sessions whose end was recorded longer ago than p_older_than, with a lifetime once its last is among them; and blocks that have ended. What a running transaction may still add to is left for the next time, and what a webhook has yet to deliver for p_webhooks_wait longer. Call it again until finished; ran is false where another purge is under way. Locks what it removes.';

CREATE OR REPLACE FUNCTION leasehold.readers_blocked_until(p_room_ids text[], p_user_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT blocked_until timestamp with time zone[], OUT as_of timestamp with time zone)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
    select array(
               select (select max(b.blocked_until)
                         from leasehold.blocks_of(q.room_id, q.user_id, clock.now) b
                        where b.user_id <> '')
                 from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                order by q.ord),
           clock.now
      from leasehold.clocks(p_now) clock
$function$;
comment on function leasehold.readers_blocked_until(p_room_ids text[], p_user_ids text[], p_now timestamp with time zone, OUT blocked_until timestamp with time zone[], OUT as_of timestamp with time zone) is
    'Internal. Until when each of these users may not even read the room; null where they may. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.release_webhook(p_name text, p_epoch bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
    update leasehold.webhooks w
       set lease_until = null, owner = null
     where w.name = p_name and w.epoch = p_epoch
$function$;
comment on function leasehold.release_webhook(p_name text, p_epoch bigint) is
    'Internal. Lets others take an endpoint at once. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.remove_member(p_room_id text, p_user_id text, p_epoch bigint DEFAULT NULL::bigint, p_block_ms bigint DEFAULT NULL::bigint, p_by text DEFAULT NULL::text, p_note text DEFAULT NULL::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text, OUT sessions_ended integer, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_devices text[];
begin
    v_devices := array(select m.device_id
                         from leasehold.members m
                        where m.room_id = p_room_id and m.user_id = p_user_id) || ''::text;
    -- Locks a room that does not exist as well: a join in flight is waited for,
    -- and one that comes later finds the block.
    select o.now, o.lease_now, o.members_expired
      into v_now, v_lease_now, members_expired
      from leasehold.open_and_prune(
               array_fill(p_room_id, array[cardinality(v_devices)]),
               array_fill(p_user_id, array[cardinality(v_devices)]),
               v_devices, p_now) o;
    if leasehold.misdirected_rooms(array[p_room_id]) <> '{}' then
        outcome := 'misdirected';
        sessions_ended := 0;
        perform leasehold.prune_locked(array[p_room_id], v_now, v_lease_now);
        return;
    end if;
    v_devices := array(select m.device_id
                         from leasehold.members m
                        where m.room_id = p_room_id and m.user_id = p_user_id
                          and (p_epoch is null or m.epoch = p_epoch));
    sessions_ended := cardinality(v_devices);
    if sessions_ended > 0 then
        -- A device that came while the room was waited for is not locked yet.
        perform leasehold.lock_sessions(
                    array_fill(p_room_id, array[sessions_ended]), array_fill(p_user_id, array[sessions_ended]),
                    v_devices);
        perform leasehold.end_sessions(
                    array(select m.ctid
                            from leasehold.members m
                           where m.room_id = p_room_id and m.user_id = p_user_id and m.device_id = any (v_devices)),
                    'removed', v_now, p_by, p_note);
    end if;

    if p_epoch is not null and sessions_ended = 0 then
        outcome := leasehold.stale_reason(p_room_id, p_user_id, p_epoch);
    else
        outcome := case when sessions_ended > 0 then 'removed' else 'absent' end;
        perform leasehold.set_block(p_room_id, p_user_id, p_block_ms, p_by, p_note, v_now);
    end if;

    -- The room may be empty now, or may never have been opened.
    perform leasehold.prune_locked(array[p_room_id], v_now, v_lease_now);
end
$function$;
comment on function leasehold.remove_member(p_room_id text, p_user_id text, p_epoch bigint, p_block_ms bigint, p_by text, p_note text, p_now timestamp with time zone, OUT outcome text, OUT sessions_ended integer, OUT members_expired integer) is
    'Ends a member''s sessions in a room, or only the one with p_epoch; the history keeps who decided it (p_by) and why (p_note). With p_block_ms, joins are refused for so long; 0 lifts an earlier block, null leaves it. Outcomes: removed, absent, misdirected where another database has the room, or for an epoch that is not current, which changes nothing, the same as stale_reason. Locks the room, then the sessions; waits for whoever holds one. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.remove_user(p_user_id text, p_block_ms bigint DEFAULT NULL::bigint, p_by text DEFAULT NULL::text, p_note text DEFAULT NULL::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT room_ids text[], OUT sessions_ended integer, OUT members_expired integer)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_rooms text[];
    v_places tid[];
begin
    -- From here on the user is in the rooms that a statement sees, and in no other.
    perform leasehold.lock_user(p_user_id);
    v_rooms := leasehold.lock_rooms(array(
                   select distinct m.room_id from leasehold.members m where m.user_id = p_user_id));
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(
                array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id), v_lease_now)
       from leasehold.members m
      where m.user_id = p_user_id;
    members_expired := coalesce(leasehold.prune_due(v_rooms, v_now, v_lease_now), 0);
    select coalesce(array_agg(m.room_id), '{}'), array_agg(m.ctid)
      into room_ids, v_places
      from leasehold.members m
     where m.user_id = p_user_id;
    sessions_ended := cardinality(room_ids);
    if sessions_ended > 0 then
        perform leasehold.end_sessions(v_places, 'removed', v_now, p_by, p_note);
        perform leasehold.prune_locked(room_ids, v_now, v_lease_now);
    end if;
    perform leasehold.set_block('', p_user_id, p_block_ms, p_by, p_note, v_now);
end
$function$;
comment on function leasehold.remove_user(p_user_id text, p_block_ms bigint, p_by text, p_note text, p_now timestamp with time zone, OUT room_ids text[], OUT sessions_ended integer, OUT members_expired integer) is
    'Ends a user''s sessions in all rooms; the history keeps who decided it (p_by) and why (p_note). With p_block_ms, joins of any room are refused for so long; 0 lifts an earlier block of all rooms, null leaves it. Answers the room of each session. Waits for joins of the user in flight and lets none begin, then locks the rooms in order of id, then the sessions. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.remove_webhook(p_name text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    delete from leasehold.webhooks w where w.name = p_name;
    return found;
end
$function$;
comment on function leasehold.remove_webhook(p_name text) is
    'Forgets an endpoint, its position and what waits for it. False where there is none. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.renew_webhook(p_name text, p_epoch bigint, p_lease interval)
 RETURNS TABLE(revision bigint, url text, secret text, previous_secret text, room_id text, prefix text, kinds text[], "position" text)
 LANGUAGE sql
AS $function$
    update leasehold.webhooks w
       set lease_until = clock_timestamp() + p_lease
     where w.name = p_name and w.epoch = p_epoch and w.status = 'active'
    returning w.revision, w.url, w.secret,
              case when w.previous_secret_until > clock_timestamp() then w.previous_secret end,
              w.room_id, w.prefix, w.kinds, w."position"
$function$;
comment on function leasehold.renew_webhook(p_name text, p_epoch bigint, p_lease interval) is
    'Internal. Prolongs the lease of an owner and answers what it is to do; no row where it owns the endpoint no longer, or that is not active. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.renumber_changes()
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.renumber_changes() is
    'Run once after a logical restore into another cluster, whose transaction ids start elsewhere: begins an era, and all of the restored history stands before what it writes. Answers the era. Positions from before hold as far as the history was restored. Waits for changes that are under way and holds up all others to the end of the transaction. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.resize_leases(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_lease_ms integer[], p_heartbeat_ms integer[] DEFAULT '{}'::integer[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
    v_requests integer := leasehold.check_sessions(p_room_ids, p_user_ids, p_epochs, p_device_ids);
    v_rooms text[];
    v_held record;
begin
    perform leasehold.check_lengths(v_requests, p_lease_ms, p_heartbeat_ms);
    -- A shorter lease lowers the room's next_end, which needs the room's lock, and rooms come first.
    v_rooms := leasehold.lock_free_rooms(p_room_ids);
    v_held := leasehold.lock_live_sessions(
                  array(select case when q.room_id = any (v_rooms) then q.room_id else '' end
                          from unnest(p_room_ids) with ordinality as q (room_id, ord) order by q.ord),
                  p_user_ids, p_epochs, p_device_ids, p_now);

    -- An UPDATE changes a row once: the length that the session asked for last.
    update leasehold.members m
       set last_seen_at = v_held.now,
           lease_ms = p_lease_ms[l.ord],
           heartbeat_ms = coalesce(p_heartbeat_ms[l.ord], greatest(p_lease_ms[l.ord] / 3, 1)),
           lease_end = v_held.lease_from + p_lease_ms[l.ord] * 1000::bigint,
           disconnected_at = null
      from (select r.ctid, max(r.ord) as ord
              from unnest(v_held.places, v_held.live) as r (ctid, ord)
             group by r.ctid) l
     where m.ctid = l.ctid;
    update leasehold.rooms r
       set next_end = q.first_end
      from (select q.room_id, v_held.lease_from + min(q.lease_ms) * 1000::bigint as first_end
              from unnest(p_room_ids, p_lease_ms) with ordinality as q (room_id, lease_ms, ord)
             where q.ord = any (v_held.live)
             group by q.room_id) q
     where r.room_id = q.room_id and r.next_end > q.first_end;
    return leasehold.outcomes_of(
                    p_room_ids, p_user_ids, p_epochs, p_device_ids, v_held.live, 'renewed', v_held.locked);
end
$function$;
comment on function leasehold.resize_leases(p_room_ids text[], p_user_ids text[], p_epochs bigint[], p_device_ids text[], p_lease_ms integer[], p_heartbeat_ms integer[], p_now timestamp with time zone) is
    'Renews leases and gives them another length from now on; the heartbeat interval is a third of it where it is left out. The same outcomes as heartbeat_members; busy also where another transaction holds the room. Locks the rooms, then the sessions; waits for nobody. Errors: 22023.';

CREATE OR REPLACE FUNCTION leasehold.resume_webhook(p_name text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
    update leasehold.webhooks w
       set status = 'active', revision = w.revision + 1, failures = 0, held_until = null
     where w.name = p_name;
    if not found then
        return false;
    end if;
    -- At once, and with all the patience of a first try.
    update leasehold.webhook_deliveries d
       set due_at = clock_timestamp(), first_failed_at = null
     where d.name = p_name and d.attempts > 0;
    return true;
end
$function$;
comment on function leasehold.resume_webhook(p_name text) is
    'Goes on with an endpoint that is disabled, failed or gone, from where it stopped. False where there is none. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.resume_webhook_from(p_name text, p_after text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_position text := leasehold.webhook_position(p_after);
begin
    update leasehold.webhooks w
       set status = 'active', revision = w.revision + 1, failures = 0, held_until = null, "position" = v_position
     where w.name = p_name;
    if not found then
        return false;
    end if;
    delete from leasehold.webhook_deliveries d where d.name = p_name;
    return true;
end
$function$;
comment on function leasehold.resume_webhook_from(p_name text, p_after text) is
    'Goes on with an endpoint from a chosen place: latest, a position, or null for the oldest kept. What waited for it is dropped. False where there is none. Errors: 22023 and LH410, as changes. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.room_blocks(p_room_id text, p_after text DEFAULT NULL::text, p_limit integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS SETOF leasehold.blocks
 LANGUAGE sql
 STABLE
AS $function$
    select *
      from leasehold.blocks b
     where b.room_id = p_room_id and (b.user_id > p_after) is not false
       and b.blocked_until > coalesce(p_now, clock_timestamp())
     order by b.user_id
     limit p_limit
$function$;
comment on function leasehold.room_blocks(p_room_id text, p_after text, p_limit integer, p_now timestamp with time zone) is
    'The blocks of a room that hold, in order of user, those after p_after; the one of the room itself has an empty user and comes first. Blocks of all rooms are not among them. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.room_counts(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, as_of timestamp with time zone, has_expired boolean, is_misdirected boolean, generation bigint, version bigint, member_count integer)
 LANGUAGE sql
 STABLE
AS $function$
    select q.room_id, clock.now, coalesce(live.expired > 0, false),
           r.room_id is null and leasehold.is_misdirected(q.room_id),
           case when live.members > 0 then r.generation end,
           case when live.members > 0 then r.version + live.expired end,
           coalesce(live.members, 0)
      from (select distinct unnest(p_room_ids) as room_id) q
     cross join leasehold.clocks(p_now) clock
      left join leasehold.rooms r on r.room_id = q.room_id
      left join lateral (
           -- While no lease of the room can have ended, its count is exact.
           select 0::bigint as expired, r.member_count as members
            where not leasehold.lease_expired(r.next_end, clock.lease_now)
            union all
           select count(*) filter (where leasehold.lease_expired(m.lease_end, clock.lease_now)),
                  (count(distinct m.user_id)
                      filter (where not leasehold.lease_expired(m.lease_end, clock.lease_now)))::integer
             from leasehold.members m
            where m.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having leasehold.lease_expired(r.next_end, clock.lease_now)) live on true
$function$;
comment on function leasehold.room_counts(p_room_ids text[], p_now timestamp with time zone) is
    'How many persons are in these rooms: one row each, of a room without one with a null generation and version, and is_misdirected where another database has it. has_expired says that prune_rooms has something to do; version counts it as done. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.room_sessions(p_room_ids text[], p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, as_of timestamp with time zone, has_expired boolean, is_misdirected boolean, generation bigint, version bigint, opened_at timestamp with time zone, locked boolean, user_id text, device_id text, epoch bigint, arrival bigint, arrived_at timestamp with time zone, joined_at timestamp with time zone, last_seen_at timestamp with time zone, heartbeat_ms integer, lease_expires_at timestamp with time zone, status text, cursor jsonb, metadata jsonb, info jsonb)
 LANGUAGE sql
 STABLE
AS $function$
    select q.room_id, clock.now, coalesce(due.expired > 0, false),
           r.room_id is null and leasehold.is_misdirected(q.room_id),
           case when due.live = 0 then null else r.generation end,
           r.version + coalesce(due.expired, 0), r.opened_at, r.locked,
           m.user_id, m.device_id, m.epoch, m.arrival, m.arrived_at, m.joined_at, m.last_seen_at, m.heartbeat_ms,
           clock.now + (m.lease_end - clock.lease_now) * interval '1 microsecond',
           leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, clock.now),
           m.cursor, m.metadata, m.info
      from (select distinct unnest(p_room_ids) as room_id) q
     cross join leasehold.clocks(p_now) clock
      left join leasehold.rooms r on r.room_id = q.room_id
      -- Where a lease may have ended: the version that the room has when that is recorded.
      left join lateral (
           select count(*) filter (where leasehold.lease_expired(e.lease_end, clock.lease_now)) as expired,
                  count(*) filter (where not leasehold.lease_expired(e.lease_end, clock.lease_now)) as live
             from leasehold.members e
            where e.room_id = r.room_id and leasehold.lease_expired(r.next_end, clock.lease_now)
           having count(*) > 0) due on true
      left join leasehold.members m
        on m.room_id = r.room_id and not leasehold.lease_expired(m.lease_end, clock.lease_now)
$function$;
comment on function leasehold.room_sessions(p_room_ids text[], p_now timestamp with time zone) is
    'Who is in these rooms: one row per live session, and of a room without one a single row with a null generation, and is_misdirected where another database has it. has_expired says that prune_rooms has something to do; version counts it as done. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.room_writers(p_among text[] DEFAULT NULL::text[])
 RETURNS text[]
 LANGUAGE sql
AS $function$
    -- Whoever opens a room holds this lock to the end of the transaction, and took it before the look
    -- at the slots: who looked before a fence was committed holds it when this is asked afterwards.
    select coalesce(array_agg(distinct l.virtualtransaction), '{}')
      from pg_locks l
     where l.locktype = 'relation' and l.granted and l.mode = 'RowExclusiveLock'
       and l.relation = 'leasehold.rooms'::regclass
       and l.database = (select oid from pg_database where datname = current_database())
       and l.pid is distinct from pg_backend_pid()
       and (p_among is null or l.virtualtransaction = any (p_among))
$function$;
comment on function leasehold.room_writers(p_among text[]) is
    'Internal. The transactions under way that may have opened a room, or those of these that still are. Locks nothing, and keeps nobody from beginning.';

CREATE OR REPLACE FUNCTION leasehold.session_status(p_last_seen_at timestamp with time zone, p_heartbeat_ms integer, p_disconnected_at timestamp with time zone, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN ((p_disconnected_at IS NOT NULL) OR (p_at > (p_last_seen_at + ((p_heartbeat_ms)::double precision * '00:00:00.0015'::interval)))) THEN 'reconnecting'::text WHEN (p_last_seen_at IS NOT NULL) THEN 'connected'::text ELSE NULL::text END;
comment on function leasehold.session_status(p_last_seen_at timestamp with time zone, p_heartbeat_ms integer, p_disconnected_at timestamp with time zone, p_at timestamp with time zone) is
    'Internal. What a live session''s heartbeats say of its connection: connected, or reconnecting where it was not heard of for more than one and a half of its intervals, or its transport was reported lost.';

CREATE OR REPLACE FUNCTION leasehold.set_block(p_room_id text, p_user_id text, p_block_ms bigint, p_by text, p_note text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if p_block_ms > 0 then
        insert into leasehold.blocks as b (room_id, user_id, blocked_until, blocked_at, blocked_by, note)
        values (p_room_id, p_user_id, p_at + p_block_ms * interval '1 millisecond', p_at, p_by, p_note)
            on conflict (room_id, user_id) do update
               set blocked_until = excluded.blocked_until, blocked_at = excluded.blocked_at,
                   blocked_by = excluded.blocked_by, note = excluded.note;
    elsif p_block_ms = 0 then
        delete from leasehold.blocks b where b.room_id = p_room_id and b.user_id = p_user_id;
    end if;
end
$function$;
comment on function leasehold.set_block(p_room_id text, p_user_id text, p_block_ms bigint, p_by text, p_note text, p_at timestamp with time zone) is
    'Internal. Blocks for so long; 0 lifts an earlier block, null leaves it. The caller holds the lock under which joins read it. Errors: 23514 for an id or a note that cannot be.';

CREATE OR REPLACE FUNCTION leasehold.set_cursor(p_room_id text, p_user_id text, p_epoch bigint, p_cursor jsonb, p_device_id text DEFAULT ''::text, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
    perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
    return (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id],
                p_set_cursor => array[true], p_cursors => array[p_cursor], p_now => p_now))[1];
end
$function$;
comment on function leasehold.set_cursor(p_room_id text, p_user_id text, p_epoch bigint, p_cursor jsonb, p_device_id text, p_now timestamp with time zone) is
    'Sets one session''s cursor, which counts as a heartbeat. The same outcomes, locks and errors as heartbeat_member.';

CREATE OR REPLACE FUNCTION leasehold.set_metadata(p_room_id text, p_user_id text, p_metadata jsonb, p_epoch bigint DEFAULT NULL::bigint, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT outcome text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
declare
    v_lease_now bigint;
begin
    perform leasehold.lock_sessions(array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id))
       from leasehold.members m
      where m.room_id = p_room_id and m.user_id = p_user_id;
    select c.lease_now into v_lease_now from leasehold.clocks(p_now) c;
    update leasehold.members m
       set metadata = p_metadata
     where m.room_id = p_room_id and m.user_id = p_user_id
       and not leasehold.lease_expired(m.lease_end, v_lease_now)
       and m.epoch = coalesce(p_epoch, (
               select max(n.epoch) from leasehold.members n
                where n.room_id = p_room_id and n.user_id = p_user_id
                  and not leasehold.lease_expired(n.lease_end, v_lease_now)));
    outcome := case when found then 'changed'
                    when p_epoch is null and not leasehold.is_misdirected(p_room_id) then 'absent'
                    else leasehold.stale_reason(p_room_id, p_user_id, p_epoch) end;
end
$function$;
comment on function leasehold.set_metadata(p_room_id text, p_user_id text, p_metadata jsonb, p_epoch bigint, p_now timestamp with time zone, OUT outcome text) is
    'Replaces the metadata of a member''s newest session, or of the one with p_epoch, and renews nothing. Outcomes: changed; absent; misdirected where another database has the room; or for an epoch that is not current the same as stale_reason. Locks the member''s sessions; waits for whoever holds one. Errors: 40001, 40P01, 55P03.';

CREATE OR REPLACE FUNCTION leasehold.set_webhook(p_name text, p_url text, p_secret text DEFAULT NULL::text, p_room_id text DEFAULT NULL::text, p_prefix text DEFAULT NULL::text, p_kinds text[] DEFAULT NULL::text[], p_after text DEFAULT 'latest'::text, OUT outcome text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_secret text;
begin
    select w.secret into v_secret from leasehold.webhooks w where w.name = p_name for update;
    v_now := clock_timestamp();
    if found then
        update leasehold.webhooks w
           set url = p_url, room_id = p_room_id, prefix = p_prefix, kinds = p_kinds, revision = w.revision + 1,
               secret = coalesce(p_secret, w.secret),
               -- Receivers have a day to learn of the new one.
               previous_secret = case when p_secret <> v_secret then v_secret else w.previous_secret end,
               previous_secret_until = case when p_secret <> v_secret then v_now + interval '1 day'
                                            else w.previous_secret_until end
         where w.name = p_name;
        outcome := 'changed';
        return;
    end if;
    if p_secret is null then
        outcome := 'no_secret';
        return;
    end if;
    insert into leasehold.webhooks as w (name, url, secret, room_id, prefix, kinds, "position")
    values (p_name, p_url, p_secret, p_room_id, p_prefix, p_kinds, leasehold.webhook_position(p_after))
        on conflict (name) do nothing;
    if found then
        outcome := 'created';
        return;
    end if;
    -- Another one made it meanwhile.
    outcome := s.outcome
      from leasehold.set_webhook(p_name, p_url, p_secret, p_room_id, p_prefix, p_kinds, p_after) s;
end
$function$;
comment on function leasehold.set_webhook(p_name text, p_url text, p_secret text, p_room_id text, p_prefix text, p_kinds text[], p_after text, OUT outcome text) is
    'Makes an endpoint, or changes all of it but its position and status; a secret left out stays, and one that is replaced signs beside the new one for a day. A new endpoint begins at p_after: latest, a position, or null for the oldest kept. Answers created, changed or no_secret (a new one needs it). Errors: 23514 for what cannot be; 22023 and LH410 for the position, as changes. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.settle_deliveries(p_name text, p_epoch bigint, p_seqs bigint[], p_failures text[], p_retry_ms bigint[], p_hold_ms bigint, p_is_gone boolean, p_give_up interval)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
    v_status text;
begin
    if not leasehold.holds_webhook(p_name, p_epoch) then
        return null;
    end if;
    v_now := clock_timestamp();
    with answered as (
        select a.* from unnest(p_seqs, p_failures, p_retry_ms) as a (seq, failure, retry_ms)
    ), delivered as (
        delete from leasehold.webhook_deliveries d
         using answered a
         where d.name = p_name and d.seq = a.seq and a.failure is null
        returning d.seq
    ), failed as (
        update leasehold.webhook_deliveries d
           set first_failed_at = coalesce(d.first_failed_at, v_now),
               -- Twice as long each time, up to an hour, and never together with others.
               due_at = v_now + greatest(
                   a.retry_ms * interval '1 millisecond',
                   least(interval '1 hour', interval '1 second' * 2 ^ least(d.attempts - 1, 20)) * (0.5 + random() / 2))
          from answered a
         where d.name = p_name and d.seq = a.seq and a.failure is not null
        returning d.seq, a.failure, d.first_failed_at
    ), seen as (
        select (select count(*) from delivered) as delivered, count(*) as failed, max(f.failure) as failure,
               coalesce(min(f.first_failed_at) <= v_now - p_give_up, false) as for_too_long
          from failed f
    )
    update leasehold.webhooks w
       set failures = case when s.delivered > 0 then 0 else w.failures end + s.failed,
           last_success_at = case when s.delivered > 0 then v_now else w.last_success_at end,
           last_failure = coalesce(s.failure, w.last_failure),
           last_failure_at = case when s.failed > 0 then v_now else w.last_failure_at end,
           held_until = greatest(w.held_until, v_now + p_hold_ms * interval '1 millisecond'),
           status = case when w.status <> 'active' then w.status
                         when p_is_gone then 'gone'
                         when s.for_too_long then 'failed'
                         else w.status end
      from seen s
     where w.name = p_name
    returning w.status into v_status;
    return v_status;
end
$function$;
comment on function leasehold.settle_deliveries(p_name text, p_epoch bigint, p_seqs bigint[], p_failures text[], p_retry_ms bigint[], p_hold_ms bigint, p_is_gone boolean, p_give_up interval) is
    'Internal. What came of deliveries: those without a failure are over, the others are due again later. Answers the status of the endpoint; null, and nothing is changed, where it has another owner. Locks the endpoint.';

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
            and not exists (select from pg_prepared_xacts p
                             where p.transaction = running::xid and p.database <> current_database())
          order by running
          limit 1),
        pg_snapshot_xmax(pg_current_snapshot()))
$function$;
comment on function leasehold.settled_xact_id() is
    'Internal. Every transaction of this database below it has ended, and this snapshot sees it: the oldest that still runs here, or the next to begin.';

CREATE OR REPLACE FUNCTION leasehold.share_users(p_user_ids text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    perform pg_advisory_xact_lock_shared(l.class, l.object) from leasehold.user_locks(p_user_ids) l;
end
$function$;
comment on function leasehold.share_users(p_user_ids text[]) is
    'Internal. From here to the end of the transaction lock_user waits for these users; waits for it. Errors: 55P03, 40P01.';

CREATE OR REPLACE FUNCTION leasehold.slot_of(p_room_id text)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
declare
    v_hash bytea := sha256(convert_to(p_room_id, 'UTF8'));
begin
    -- Its first three hexadecimal digits, which a proxy can cut out.
    return (get_byte(v_hash, 0) << 4) | (get_byte(v_hash, 1) >> 4);
end
$function$;
comment on function leasehold.slot_of(p_room_id text) is
    'Which of 4,096 slots a room is of: the first twelve bits of the SHA-256 of its id in UTF-8.';

CREATE OR REPLACE FUNCTION leasehold.slot_rooms(p_slots integer[])
 RETURNS TABLE(slot integer, room_id text)
 LANGUAGE sql
 STABLE
AS $function$
    select k.slot, k.room_id
      from (select leasehold.slot_of(a.room_id) as slot, a.room_id
              from (select r.room_id from leasehold.rooms r
                    union
                    select c.room_id from leasehold.closed_generations c
                    union
                    select f.room_id from leasehold.epoch_floors f
                    union
                    select f.room_id from leasehold.generation_floors f) a) k
     where k.slot = any (p_slots)
$function$;
comment on function leasehold.slot_rooms(p_slots integer[]) is
    'Internal. Every room of these slots of which something is known here, but for what is blocked in it. Reads all rooms and lifetimes; locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.slot_states(p_slots integer[])
 RETURNS TABLE(slot integer, state text, peer text)
 LANGUAGE sql
 STABLE
AS $function$
    select q.slot, case when c.owns_all then 'owned' else coalesce(s.state, 'absent') end, s.peer
      from leasehold.cell c
     cross join unnest(p_slots) as q (slot)
      left join leasehold.slots s on s.slot = q.slot
     order by q.slot
$function$;
comment on function leasehold.slot_states(p_slots integer[]) is
    'Of each of these slots whether it is owned, leaving, arriving or absent here, and of one on its way which database it comes from or goes to. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.stale_reason(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    -- 'ended' sorts before 'joined': the end if there is one. A session that
    -- has none and could not be renewed has outlived its lease.
    select case when leasehold.is_misdirected(p_room_id) then 'misdirected' else coalesce((
        select case when e.device_id <> p_device_id then 'unknown_session'
                    when e.kind = 'ended' then e.reason
                    else 'expired' end
          from leasehold.membership_events e
         where e.room_id = p_room_id and e.user_id = p_user_id and e.epoch = p_epoch
         order by e.kind
         limit 1), 'unknown_session') end
$function$;
comment on function leasehold.stale_reason(p_room_id text, p_user_id text, p_epoch bigint, p_device_id text) is
    'Why a session is not current: how it ended (superseded, expired, left, removed, room_closed, moved), or unknown_session; misdirected where another database has the room. Without p_device_id on whichever device. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.sweep(p_max_members integer DEFAULT 1000, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT ran boolean, OUT members_expired integer, OUT rooms_closed integer, OUT finished boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
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
$function$;
comment on function leasehold.sweep(p_max_members integer, p_now timestamp with time zone, OUT ran boolean, OUT members_expired integer, OUT rooms_closed integer, OUT finished boolean) is
    'One batch of the expiry job: finds up to p_max_members expired sessions and prunes their rooms. Call it again until finished; ran is false where another sweep is under way. Locks the rooms and sessions that it prunes; waits for nobody.';

CREATE OR REPLACE FUNCTION leasehold.sweep_works()
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
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
$function$;
comment on function leasehold.sweep_works() is
    'Internal. Whether a transaction of a sweep is at work at this moment, anywhere.';

CREATE OR REPLACE FUNCTION leasehold.take_changes(p_name text, p_epoch bigint, p_revision bigint, p_from text, p_next text, p_room_ids text[], p_items text[], p_changes integer[])
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
    v_now timestamptz;
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return false;
    end if;
    v_now := clock_timestamp();
    -- An answer that was lost is asked for again: the same page is taken once.
    update leasehold.webhooks w
       set "position" = p_next
     where w.name = p_name and w."position" is not distinct from p_from;
    if not found then
        return false;
    end if;
    with taken as (
        select t.*
          from unnest(p_room_ids, p_items, p_changes) with ordinality as t (room_id, items, changes, n)
    ), first as (
        select distinct on (t.room_id) t.* from taken t order by t.room_id, t.n
    ), joined as (
        -- What nobody was sent yet can still grow.
        update leasehold.webhook_deliveries d
           set items = d.items || ',' || f.items, changes = d.changes + f.changes
          from first f
         where d.name = p_name and d.attempts = 0 and d.changes + f.changes <= 100
           and d.seq = (select max(l.seq) from leasehold.webhook_deliveries l
                         where l.name = p_name and l.room_id = f.room_id)
        returning f.n
    )
    insert into leasehold.webhook_deliveries (name, room_id, items, changes, taken_at, due_at)
    select p_name, t.room_id, t.items, t.changes, v_now, v_now
      from taken t
     where t.n not in (select j.n from joined j)
     order by t.n;
    return true;
end
$function$;
comment on function leasehold.take_changes(p_name text, p_epoch bigint, p_revision bigint, p_from text, p_next text, p_room_ids text[], p_items text[], p_changes integer[]) is
    'Internal. Puts a page of the feed, from p_from to p_next, into the outbox of an endpoint, and moves its position; each item is a run of changes of one room. False, and nothing is changed, where the owner no longer has the endpoint as it was or the position is another one. Locks the endpoint.';

CREATE OR REPLACE FUNCTION leasehold.user_last_seen(p_user_id text)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
    -- From room to room by the key: what it costs is the rooms that the user has been in, not the joins.
    with recursive been as (
        (select e.room_id
           from leasehold.membership_events e
          where e.user_id = p_user_id
          order by e.room_id
          limit 1)
        union all
        select (select e.room_id
                  from leasehold.membership_events e
                 where e.user_id = p_user_id and e.room_id > been.room_id
                 order by e.room_id
                 limit 1)
          from been
         where been.room_id is not null
    )
    select greatest(
        (select max(ended.last_seen_at)
           from been
          cross join lateral (
                -- Devices of one stay end in any order.
                select e.last_seen_at
                  from leasehold.membership_events e
                 where e.user_id = p_user_id and e.room_id = been.room_id and e.kind = 'ended'
                 order by e.epoch desc
                 limit 16) ended),
        (select max(m.last_seen_at) from leasehold.members m where m.user_id = p_user_id))
$function$;
comment on function leasehold.user_last_seen(p_user_id text) is
    'When a user was last heard of in any room, as far as the history is kept; null where never. Looks at the last 16 ended sessions in each room. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.user_lock(p_user_id text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (hashtext(p_user_id) & 511);
comment on function leasehold.user_lock(p_user_id text) is
    'Internal. Which of the locks of all users stands for this one.';

CREATE OR REPLACE FUNCTION leasehold.user_locks(p_user_ids text[])
 RETURNS TABLE(class integer, object integer)
 LANGUAGE sql
 IMMUTABLE
AS $function$
    -- 512 locks for all users: a join of thousands must not fill the lock table. The first number is
    -- this project's alone.
    select distinct hashtext('leasehold users'), leasehold.user_lock(id)
      from unnest(p_user_ids) as id
     order by 2
$function$;
comment on function leasehold.user_locks(p_user_ids text[]) is
    'Internal. The advisory locks that stand for these users, in order; several users share one.';

CREATE OR REPLACE FUNCTION leasehold.user_rooms(p_user_id text, p_after text DEFAULT ''::text, p_limit integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(room_id text, generation bigint, epoch bigint, status text, joined_at timestamp with time zone, last_seen_at timestamp with time zone, lease_expires_at timestamp with time zone, as_of timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select distinct on (m.room_id)
           m.room_id, r.generation, m.epoch,
           -- One connected device is enough; connected sorts before reconnecting.
           min(leasehold.session_status(m.last_seen_at, m.heartbeat_ms, m.disconnected_at, clock.now))
               over (partition by m.room_id),
           m.joined_at, max(m.last_seen_at) over (partition by m.room_id),
           clock.now + (m.lease_end - clock.lease_now) * interval '1 microsecond', clock.now
      from leasehold.members m
      join leasehold.rooms r on r.room_id = m.room_id
     cross join leasehold.clocks(p_now) clock
     where m.user_id = p_user_id
       and m.room_id > p_after
       and not leasehold.lease_expired(m.lease_end, clock.lease_now)
     order by m.room_id, m.epoch desc
     limit p_limit
$function$;
comment on function leasehold.user_rooms(p_user_id text, p_after text, p_limit integer, p_now timestamp with time zone) is
    'Where a user is: each room with a live session of theirs, with the newest of them and the best status of all, in order of id, those after p_after. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.verify(p_room_id text DEFAULT NULL::text, p_since timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(invariant integer, room_id text, user_id text, detail text)
 LANGUAGE plpgsql
 STABLE
 SET plan_cache_mode TO 'force_custom_plan'
AS $function$
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
$function$;
comment on function leasehold.verify(p_room_id text, p_since timestamp with time zone) is
    'Violations of the invariants 1, 2, 4, 5, 6 and 7; none where all is well. Reads the whole history, or that of one room, or of those in which something happened since an instant; locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.webhook_figures()
 RETURNS TABLE(status text, endpoints bigint, pending bigint, lag_seconds double precision)
 LANGUAGE sql
 STABLE
AS $function$
    select k.status, count(s.name), coalesce(sum(s.pending_deliveries), 0)::bigint,
           -- Where nobody serves an endpoint nothing is taken for it either.
           coalesce(max(extract(epoch from clock_timestamp()
                                           - least(s.oldest_pending_at,
                                                   case when s.lease_until < clock_timestamp() then s.lease_until end))), 0)
               ::double precision
      from unnest(array['active', 'disabled', 'failed', 'gone', 'expired']) as k (status)
      left join leasehold.webhook_states s on s.status = k.status
     group by k.status
$function$;
comment on function leasehold.webhook_figures() is
    'Internal. How many endpoints there are of each status, how many deliveries wait for them, and for how long the oldest.';

CREATE OR REPLACE FUNCTION leasehold.webhook_position(p_after text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
    -- A position that can be read from is kept as it was given.
    select case when p_after = 'latest' then (select c.next from leasehold.changes('latest', 1) c limit 1)
                when p_after is not null and (select c.next from leasehold.changes(p_after, 1) c limit 1) is not null
                then p_after
           end
$function$;
comment on function leasehold.webhook_position(p_after text) is
    'Internal. Where an endpoint begins that is to go on after this. Errors as changes.';

CREATE OR REPLACE FUNCTION leasehold.webhooks_hold()
 RETURNS leasehold.feed_key
 LANGUAGE sql
 STABLE
AS $function$
    -- Also of one that was switched off: it goes on from where it stopped.
    select case when w."position" is null then (0, '0', 0)::leasehold.feed_key
                else leasehold.position_key(w."position") end
      from leasehold.webhooks w
     cross join leasehold.feed f
     where w.status in ('active', 'disabled', 'failed')
       and (w."position" is null or split_part(w."position", '.', 1) = f.name)
     order by 1
     limit 1
$function$;
comment on function leasehold.webhooks_hold() is
    'Internal. The place in the feed from which on an endpoint still needs events, that one included; null where none needs any.';

CREATE OR REPLACE FUNCTION leasehold.whereabouts(p_user_ids text[], p_max_rooms integer DEFAULT 100, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(ord bigint, room_id text, generation bigint, epoch bigint, status text, joined_at timestamp with time zone, last_seen_at timestamp with time zone, lease_expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
    select u.ord, r.room_id, r.generation, r.epoch, r.status, r.joined_at,
           case when r.room_id is null then leasehold.user_last_seen(u.user_id) else r.last_seen_at end,
           r.lease_expires_at
      from unnest(p_user_ids) with ordinality as u (user_id, ord)
      left join lateral leasehold.user_rooms(u.user_id, '', p_max_rooms, p_now) r on true
     order by u.ord, r.room_id
$function$;
comment on function leasehold.whereabouts(p_user_ids text[], p_max_rooms integer, p_now timestamp with time zone) is
    'Where each of these users is, the first p_max_rooms rooms of each, in order; for who is in none one row that says when they were last seen. Locks nothing.';

CREATE OR REPLACE FUNCTION leasehold.write_placements(p_placed leasehold.placement[], p_lease_ms integer[], p_heartbeat_ms integer[], p_metadata jsonb[], p_cursors jsonb[], p_info jsonb[], p_join_ids text[], p_now timestamp with time zone, p_lease_from bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    -- Rows are found by their keys and changed by their places, which nobody moves while they are
    -- locked: a plan that was made while the tables were empty would go through them otherwise.

    -- The end of the replaced session comes right before the join that replaces it.
    insert into leasehold.membership_events
           (lifetime_id, room_id, generation, version, user_id, device_id, epoch,
            kind, reason, occurred_at, recorded_at, last_seen_at, member_count, join_id, info, xact_id, era)
    select p.lifetime_id, p.room_id, p.generation, p.version - 1, p.user_id, p.replaced_device_id, p.replaced_epoch,
           'ended', 'superseded', p_now, p_now, p.replaced_last_seen_at, p.member_count, null, null,
           p.xact_id, f.era
      from unnest(p_placed) p
      join leasehold.feed f on f.only_row
     where p.replaced_epoch is not null
    union all
    select p.lifetime_id, p.room_id, p.generation, p.version, p.user_id, p.device_id, p.epoch,
           'joined', null, p_now, p_now, null, p.member_count, p_join_ids[p.ord], p_info[p.ord],
           p.xact_id, f.era
      from unnest(p_placed) p
      join leasehold.feed f on f.only_row
     order by 2, 4;

    if exists (select from unnest(p_placed) p where p.replaced_device_id <> p.device_id) then
        delete from leasehold.members m
         using unnest(p_placed) p
         where m.room_id = p.room_id and m.user_id = p.user_id and m.device_id = p.replaced_device_id
           and p.replaced_device_id <> p.device_id;
    end if;

    update leasehold.members m
       set epoch = p.epoch,
           joined_at = p_now,
           last_seen_at = p_now,
           lease_end = p_lease_from + p_lease_ms[p.ord] * 1000::bigint,
           disconnected_at = null,
           lease_ms = p_lease_ms[p.ord],
           heartbeat_ms = coalesce(p_heartbeat_ms[p.ord], greatest(p_lease_ms[p.ord] / 3, 1)),
           cursor = p_cursors[p.ord],
           metadata = p_metadata[p.ord],
           info = p_info[p.ord]
      from (select p.*, held.place
              from unnest(p_placed) p
             cross join lateral (
                   select h.ctid as place from leasehold.members h
                    where h.room_id = p.room_id and h.user_id = p.user_id and h.device_id = p.device_id
                   offset 0) held
             where p.replaced_device_id = p.device_id) p
     where m.ctid = p.place;

    insert into leasehold.members
           (room_id, user_id, device_id, epoch, arrival, arrived_at, joined_at, last_seen_at,
            lease_end, lease_ms, heartbeat_ms, cursor, metadata, info)
    select p.room_id, p.user_id, p.device_id, p.epoch, p.arrival, p.arrived_at, p_now, p_now,
           p_lease_from + p_lease_ms[p.ord] * 1000::bigint, p_lease_ms[p.ord],
           coalesce(p_heartbeat_ms[p.ord], greatest(p_lease_ms[p.ord] / 3, 1)),
           p_cursors[p.ord], p_metadata[p.ord], p_info[p.ord]
      from unnest(p_placed) p
     where p.replaced_device_id is distinct from p.device_id;

    update leasehold.rooms r
       set generation = c.generation,
           version = c.version,
           last_xact_id = c.xact_id,
           opened_at = case when c.opens then p_now else r.opened_at end,
           next_end = least(r.next_end, c.first_end),
           member_count = r.member_count + c.arrived,
           peak_members = greatest(r.peak_members, r.member_count + c.arrived)
      from (select held.place, p.generation, p.xact_id, p.opens, max(p.version) as version,
                   (count(*) filter (where p.arrives))::integer as arrived,
                   min(p_lease_from + p_lease_ms[p.ord] * 1000::bigint) as first_end
              from unnest(p_placed) p
             cross join lateral (
                   select h.ctid as place from leasehold.rooms h where h.room_id = p.room_id offset 0) held
             group by held.place, p.generation, p.xact_id, p.opens) c
     where r.ctid = c.place;
end
$function$;
comment on function leasehold.write_placements(p_placed leasehold.placement[], p_lease_ms integer[], p_heartbeat_ms integer[], p_metadata jsonb[], p_cursors jsonb[], p_info jsonb[], p_join_ids text[], p_now timestamp with time zone, p_lease_from bigint) is
    'Internal. Writes the joins of one round. The caller holds the locks of their rooms and of the sessions that they replace.';
