-- What is true now (the rooms that exist and the sessions in them), what was
-- true (every lifetime of a room, every join and every end), what a purge must
-- leave behind, and when the jobs last ran.
--
-- Written to by the functions of the later migrations only. A room's row is
-- the lock under which its membership changes; a session's row is all that a
-- heartbeat touches. Nothing that a heartbeat changes is indexed, so that its
-- update stays HOT, and the fill factor leaves it room on its own page.
--
-- An UPDATE checks all constraints of its table, changed columns or not, and
-- prepares them for each statement: what an id may be is therefore checked
-- where a join is recorded, once, and not with every heartbeat.

do $$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        raise exception 'leasehold needs a database with encoding UTF8, this one has %',
            current_setting('server_encoding')
            using hint = 'create the database with: create database … encoding ''UTF8'' template template0';
    end if;
end
$$;

create function leasehold.is_id(p_id text) returns boolean
    language sql immutable parallel safe
    return char_length(p_id) between 1 and 256
        and p_id !~ '[\u0001-\u001f\u007f-\u009f]';

comment on function leasehold.is_id(text) is
    'Whether a text can be a room, user or device id: 1 to 256 characters, no control characters.';

create function leasehold.is_note(p_note text) returns boolean
    language sql immutable parallel safe
    return char_length(p_note) between 1 and 500
        and p_note !~ '[\u0001-\u001f\u007f-\u009f]';

comment on function leasehold.is_note(text) is
    'Internal. Whether a text can say why somebody was removed: 1 to 500 characters, no control characters.';

create table leasehold.rooms (
    room_id        text collate "C" not null,
    lifetime_id    bigint           not null generated always as identity,
    generation     bigint           not null,
    version        bigint           not null,
    opened_at      timestamptz      not null,
    next_end       bigint           not null,
    member_count   integer          not null,
    peak_members   integer          not null,
    locked         boolean          not null default false,
    last_xact_id   xid8             not null default '0',

    constraint rooms_pkey primary key (room_id),
    constraint rooms_generation_positive check (generation >= 1),
    constraint rooms_version_not_negative check (version >= 0),
    constraint rooms_member_count_within_peak check (member_count between 0 and peak_members)
) with (fillfactor = 70);

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
comment on column leasehold.rooms.last_xact_id is
    'Where in the feed the last change of this lifetime stands, so that the next one stands behind it; 0 while there was none in this era.';
comment on column leasehold.rooms.locked is
    'Whether only those may join who are there already; see leasehold.lock_door.';

create table leasehold.members (
    room_id          text collate "C" not null,
    user_id          text collate "C" not null,
    device_id        text collate "C" not null,
    epoch            bigint           not null,
    arrival          bigint           not null,
    arrived_at       timestamptz      not null,
    joined_at        timestamptz      not null,
    last_seen_at     timestamptz      not null,
    lease_end        bigint           not null,
    disconnected_at  timestamptz,
    lease_ms         integer          not null,
    heartbeat_ms     integer          not null,
    cursor           jsonb,
    metadata         jsonb,
    info             jsonb,

    constraint members_pkey primary key (room_id, user_id, device_id),
    -- Restrict and not the default, which would look for another room of the same id as well.
    constraint members_room_fkey foreign key (room_id) references leasehold.rooms (room_id) on delete restrict,
    constraint members_lengths_positive check (least(lease_ms, heartbeat_ms) >= 1)
) with (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

create index members_by_user on leasehold.members (user_id, room_id);

comment on table leasehold.members is
    'The sessions that hold a lease: one row per room, user and device. A member with several devices has several.';
comment on column leasehold.members.device_id is
    'Empty for the one unnamed device.';
comment on column leasehold.members.arrival is
    'The room''s version at which this member arrived, kept over reconnects and devices: the order of the list.';
comment on column leasehold.members.lease_end is
    'The last moment at which the session lives, in microseconds of the lease clock; see leasehold.lease_expired. Not to be compared with now().';
comment on column leasehold.members.arrived_at is
    'When this member arrived, kept over reconnects and devices.';
comment on column leasehold.members.info is
    'What the caller vouches for, beside the metadata that members write themselves.';
comment on column leasehold.members.disconnected_at is
    'When the transport was reported lost; a heartbeat clears it.';
comment on column leasehold.members.lease_ms is
    'How long a lease of this session lasts.';
comment on column leasehold.members.heartbeat_ms is
    'How often this session means to renew its lease; see leasehold.session_status.';

create table leasehold.blocks (
    room_id       text collate "C" not null,
    user_id       text collate "C" not null,
    blocked_until timestamptz      not null,
    blocked_at    timestamptz      not null,
    blocked_by    text,
    note          text,

    constraint blocks_pkey primary key (room_id, user_id),
    constraint blocks_room_id_form check (room_id = '' or leasehold.is_id(room_id)),
    constraint blocks_user_id_form check (user_id = '' or leasehold.is_id(user_id)),
    constraint blocks_of_somebody check (room_id <> '' or user_id <> ''),
    constraint blocks_by_form check (leasehold.is_id(blocked_by)),
    constraint blocks_note_form check (leasehold.is_note(note))
);

create index blocks_by_end on leasehold.blocks (blocked_until);

comment on table leasehold.blocks is
    'Who may not join which room, and until when: a removal or a closing that holds for a time.';
comment on column leasehold.blocks.room_id is
    'Empty for all rooms.';
comment on column leasehold.blocks.user_id is
    'Empty for everybody who is not in the room.';
comment on column leasehold.blocks.note is
    'Why, in the words of whoever decided it.';

-- Written when a lifetime ends: opening a room writes no more than the room.
create table leasehold.closed_generations (
    room_id        text collate "C" not null,
    generation     bigint           not null,
    lifetime_id    bigint           not null,
    opened_at      timestamptz      not null,
    closed_at      timestamptz      not null,
    close_reason   text             not null,
    closed_version bigint           not null,
    peak_members   integer          not null,
    era            integer          not null,
    last_xact_id   xid8             not null,

    -- All that the next lifetime asks for.
    constraint closed_generations_pkey primary key (room_id, generation) include (era, last_xact_id),
    constraint closed_generations_close_reason_known check (
        close_reason in ('left', 'expired', 'removed', 'room_closed', 'moved'))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index closed_generations_by_closed_at
    on leasehold.closed_generations using brin (closed_at);

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

-- Each row is written in the transaction of the change that it records. The
-- unique keys are the invariants: one position in a room's life per event, and
-- an epoch that is joined once and ended once. The latter starts with the user,
-- so that it also finds a user's sessions. It alone scatters what is written over
-- the whole history: lifetimes are numbered as they begin, so the other keys of
-- what is written now are near each other, and a long history costs little more
-- than a short one.
create table leasehold.membership_events (
    event_id     bigint           not null generated always as identity,
    xact_id      xid8             not null,
    lifetime_id  bigint           not null,
    room_id      text collate "C" not null,
    generation   bigint           not null,
    version      bigint           not null,
    user_id      text collate "C" not null,
    device_id    text collate "C" not null,
    epoch        bigint           not null,
    kind         text             not null,
    reason       text,
    occurred_at  timestamptz      not null,
    recorded_at  timestamptz      not null,
    last_seen_at timestamptz,
    member_count integer          not null,
    era          integer          not null,
    join_id      text collate "C",
    info         jsonb,
    ended_by     text,
    note         text,

    constraint membership_events_pkey primary key (lifetime_id, version),
    constraint membership_events_once unique (user_id, room_id, epoch, kind),
    constraint membership_events_ids_well_formed check (
        kind <> 'joined'
        or (leasehold.is_id(room_id) and leasehold.is_id(user_id)
            and (device_id = '' or leasehold.is_id(device_id)) and leasehold.is_id(join_id) is not false)),
    constraint membership_events_epoch_positive check (epoch >= 1),
    constraint membership_events_kind_known check (
        (kind = 'joined' and num_nonnulls(reason, last_seen_at, ended_by, note) = 0)
        or (kind = 'ended' and num_nulls(reason, last_seen_at) = 0 and num_nonnulls(join_id, info) = 0)),
    constraint membership_events_member_count_not_negative check (member_count >= 0),
    constraint membership_events_ended_by_form check (leasehold.is_id(ended_by)),
    constraint membership_events_note_form check (leasehold.is_note(note)),
    constraint membership_events_reason_known check (
        reason in ('left', 'expired', 'superseded', 'removed', 'room_closed', 'moved'))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index membership_events_by_decider
    on leasehold.membership_events (ended_by) where ended_by is not null;
create index membership_events_by_recorded_at
    on leasehold.membership_events using brin (recorded_at);
create index membership_events_in_feed_order
    on leasehold.membership_events (era, xact_id, event_id);

comment on table leasehold.membership_events is
    'Append-only: every join and every end of a session, once, in the transaction that made it so.';
comment on column leasehold.membership_events.xact_id is
    'The transaction that wrote it, or that of the room''s change before it where that is higher: a reader of the feed stops before the oldest one still running, and sees each room''s changes in their order.';
comment on column leasehold.membership_events.lifetime_id is
    'The room and generation as one number, see leasehold.rooms and leasehold.closed_generations: by it a lifetime''s events are found.';
comment on column leasehold.membership_events.era is
    'The era of leasehold.feed in which it was written; 0 for what came with its room from another database, whose feed has told it.';
comment on column leasehold.membership_events.info is
    'On a join: what its caller vouched for.';
comment on column leasehold.membership_events.occurred_at is
    'When it became true; for an expiry the end of the lease, however late it was recorded.';
comment on column leasehold.membership_events.recorded_at is
    'When it was written.';
comment on column leasehold.membership_events.last_seen_at is
    'On an end: the session''s last heartbeat.';
comment on column leasehold.membership_events.member_count is
    'How many members the room has after it.';
comment on column leasehold.membership_events.join_id is
    'On a join: what its caller called it, so that asking again does not join again.';
comment on column leasehold.membership_events.ended_by is
    'On a removal or a closing: who decided it, if that was said.';
comment on column leasehold.membership_events.note is
    'On a removal or a closing: why, in the words of whoever decided it.';

create table leasehold.epoch_floors (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    epoch   bigint           not null,

    constraint epoch_floors_pkey primary key (room_id, user_id)
);

comment on table leasehold.epoch_floors is
    'The highest epoch of a room and user among purged history, so that epochs never go back.';

-- Who was erased is to be found nowhere, and their epochs must not start again.
create table leasehold.erased_floors (
    person bytea  not null,
    epoch  bigint not null,

    constraint erased_floors_pkey primary key (person)
);

comment on table leasehold.erased_floors is
    'The highest epoch of an erased person in a room, so that epochs never go back should they return. Who it is shows only to who asks for them; see leasehold.erased_person.';

create table leasehold.erasures (
    erasure_id      bigint      not null generated always as identity,
    erased_at       timestamptz not null,
    sessions_erased bigint      not null,

    constraint erasures_pkey primary key (erasure_id)
);

comment on table leasehold.erasures is
    'One row per person whose history was erased: when, and how many sessions. Neither who, nor their pseudonym.';

create table leasehold.erasure_keys (
    key     bytea   not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    is_ours boolean not null default true,

    constraint erasure_keys_pkey primary key (key)
);
create unique index erasure_keys_one_of_ours on leasehold.erasure_keys (is_ours) where is_ours;
insert into leasehold.erasure_keys default values;

comment on table leasehold.erasure_keys is
    'What leasehold.erased_person is keyed with, so that a copy of erased_floors alone confirms no guess: one key of this database''s own, and those of databases from which rooms came.';

create function leasehold.erased_persons(p_room_id text, p_user_id text)
    returns table (person bytea, is_ours boolean)
    language sql stable
as $$
    -- Twice, as in HMAC: nobody can prolong what was hashed.
    select sha256(k.key || sha256(k.key || convert_to(p_room_id, 'UTF8') || '\x00' || convert_to(p_user_id, 'UTF8'))),
           k.is_ours
      from leasehold.erasure_keys k
$$;

comment on function leasehold.erased_persons(text, text) is
    'Internal. What may stand for an erased person in a room, in place of the ids: by the key of each database that may have erased them.';

create function leasehold.erased_person(p_room_id text, p_user_id text)
    returns bytea
    language sql stable
as $$
    select p.person from leasehold.erased_persons(p_room_id, p_user_id) p where p.is_ours
$$;

comment on function leasehold.erased_person(text, text) is
    'Internal. What stands for a person whom this database erases in a room, in place of the ids.';

create table leasehold.generation_floors (
    room_id    text collate "C" not null,
    generation bigint           not null,

    constraint generation_floors_pkey primary key (room_id)
);

comment on table leasehold.generation_floors is
    'The highest generation of a room among purged history, so that generations never go back.';

create table leasehold.generation_purges (
    room_id       text collate "C" not null,
    generation    bigint           not null,
    events_purged bigint           not null,
    purged_until  timestamptz      not null,

    constraint generation_purges_pkey primary key (room_id, generation)
);

comment on table leasehold.generation_purges is
    'The lifetimes whose history is purged in part, as they last longer than it is kept. Of their own, so that a purge meets nobody who changes the room.';
comment on column leasehold.generation_purges.purged_until is
    'When the last of the purged sessions ended.';

create table leasehold.sweeps (
    only_row      boolean     not null default true,
    last_swept_at timestamptz,
    unfinished_at timestamptz,

    constraint sweeps_pkey primary key (only_row),
    constraint sweeps_one_row check (only_row)
);
insert into leasehold.sweeps default values;

comment on table leasehold.sweeps is
    'One row: when a sweep last found nothing more to do, whose age is how late the history may be; and when a batch last left something to do, null after one that did not.';

create table leasehold.feed (
    only_row          boolean not null default true,
    name              text    not null default left(gen_random_uuid()::text, 8),
    era               integer not null default 1,
    system_identifier bigint  not null default (pg_control_system()).system_identifier,

    constraint feed_pkey primary key (only_row),
    constraint feed_one_row check (only_row)
);
insert into leasehold.feed default values;

comment on table leasehold.feed is
    'One row: what a position in the feed names beside its place, so that one of another database is told apart; and the cluster whose transaction ids this era counts.';
comment on column leasehold.feed.era is
    'Raised by leasehold.renumber_changes: what an earlier era wrote stands before all of this one, whatever its transaction ids.';

create table leasehold.purges (
    only_row        boolean not null default true,
    purged_era      integer,
    purged_xact_id  xid8,
    purged_event_id bigint,
    purged_part     integer,
    purged_mark     text,
    looked_era      integer not null default 1,
    looked_xact_id  xid8    not null default '0',
    looked_event_id bigint  not null default 0,

    constraint purges_pkey primary key (only_row),
    constraint purges_one_row check (only_row),
    constraint purges_position_whole check (
        num_nulls(purged_era, purged_xact_id, purged_event_id, purged_part, purged_mark) in (0, 5))
);
insert into leasehold.purges default values;

comment on table leasehold.purges is
    'One row: the highest place in the feed that was ever purged; null while none was. A reader of the feed that stands before it has missed something.';
comment on column leasehold.purges.looked_xact_id is
    'With its era and event: up to where the purge has gone, passing over the joins of who was still there.';

create table leasehold.cell (
    only_row boolean not null default true,
    owns_all boolean not null default true,
    fences   bigint  not null default 0,

    constraint cell_pkey primary key (only_row),
    constraint cell_one_row check (only_row)
);
insert into leasehold.cell default values;

comment on table leasehold.cell is
    'One row: whether this database has every room, as it has unless rooms are spread over several.';
comment on column leasehold.cell.owns_all is
    'Where false it has the rooms of the slots that leasehold.slots says are owned, and no others.';
comment on column leasehold.cell.fences is
    'Raised whenever slots are taken away, so that a transaction whose snapshot is older is refused.';

create table leasehold.slots (
    slot  integer not null,
    state text    not null,
    peer  text,

    constraint slots_pkey primary key (slot),
    constraint slots_slot_known check (slot between 0 and 4095),
    constraint slots_state_known check (state in ('owned', 'leaving', 'arriving')),
    constraint slots_peer_of_a_move check ((state = 'owned') = (peer is null))
);

comment on table leasehold.slots is
    'Of a database that is one of several: which of the 4,096 slots of rooms it owns, and which are on their way. No row: it does not own the slot. Empty where it owns all.';
comment on column leasehold.slots.state is
    'owned: its rooms are here. leaving: they were, and nobody joins them here any more. arriving: they are not here yet.';
comment on column leasehold.slots.peer is
    'Of a slot on its way: leasehold.feed.name of the other database.';
