-- What was true: every lifetime of a room, every join and every end.
--
-- Each row is written in the transaction of the change that it records. The
-- unique keys are the invariants: one position in a room's life per event, and
-- an epoch that is joined once and ended once. The latter starts with the user,
-- so that it also finds a person's sessions.

create table leasehold.room_generations (
    room_id        text collate "C" not null,
    generation     bigint           not null,
    opened_at      timestamptz      not null,
    closed_at      timestamptz,
    close_reason   text,
    closed_version bigint,
    peak_members   integer,

    constraint room_generations_pkey primary key (room_id, generation),
    constraint room_generations_closed_whole check (
        num_nulls(closed_at, close_reason, closed_version, peak_members) in (0, 4)),
    constraint room_generations_close_reason_known check (
        close_reason in ('left', 'expired', 'removed', 'room_closed'))
);

create unique index room_generations_one_open
    on leasehold.room_generations (room_id) where closed_at is null;
create index room_generations_by_closed_at
    on leasehold.room_generations (closed_at) where closed_at is not null;

comment on table leasehold.room_generations is
    'One row per lifetime of a room; the columns of its end are null while it is open.';
comment on column leasehold.room_generations.close_reason is
    'How its last member ended.';
comment on column leasehold.room_generations.closed_version is
    'The version of the event that closed it.';

create table leasehold.membership_events (
    event_id     bigint           not null generated always as identity,
    xact_id      xid8             not null default pg_current_xact_id(),
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

    constraint membership_events_pkey primary key (room_id, generation, version),
    constraint membership_events_once unique (user_id, room_id, epoch, kind),
    constraint membership_events_ids_well_formed check (
        kind <> 'joined'
        or (leasehold.is_id(room_id) and leasehold.is_id(user_id)
            and (device_id = '' or leasehold.is_id(device_id)))),
    constraint membership_events_epoch_positive check (epoch >= 1),
    constraint membership_events_kind_known check (
        (kind = 'joined' and reason is null and last_seen_at is null)
        or (kind = 'ended' and reason is not null and last_seen_at is not null)),
    constraint membership_events_reason_known check (
        reason in ('left', 'expired', 'superseded', 'removed', 'room_closed'))
) with (autovacuum_vacuum_insert_scale_factor = 0.1);

create index membership_events_in_commit_order
    on leasehold.membership_events (xact_id, event_id);

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

-- What a purge must leave behind, so that epochs and generations never go back.
create table leasehold.epoch_floors (
    room_id text collate "C" not null,
    user_id text collate "C" not null,
    epoch   bigint           not null,
    constraint epoch_floors_pkey primary key (room_id, user_id)
);
comment on table leasehold.epoch_floors is
    'The highest epoch of a room and user among purged history.';

create table leasehold.generation_floors (
    room_id    text collate "C" not null,
    generation bigint           not null,
    constraint generation_floors_pkey primary key (room_id)
);
comment on table leasehold.generation_floors is
    'The highest generation of a room among purged history.';
