-- What is true now: the rooms that exist and the members in them.
--
-- Written to by the functions of the later migrations only. A room's row is
-- the lock under which its membership changes; a member's row is all that a
-- heartbeat touches. Nothing that a heartbeat changes is indexed, so that its
-- update stays HOT, and the fill factor leaves it room on its own page.
--
-- An UPDATE checks all constraints of its table, changed columns or not, and
-- prepares them for each statement: what an id may be is therefore checked
-- where a join is recorded (0002), once, and not here with every heartbeat.

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

create table leasehold.rooms (
    room_id        text collate "C" not null,
    generation     bigint           not null,
    version        bigint           not null,
    opened_at      timestamptz      not null,
    next_expiry_at timestamptz      not null,
    member_count   integer          not null,
    peak_members   integer          not null,

    constraint rooms_pkey primary key (room_id),
    constraint rooms_generation_positive check (generation >= 1),
    constraint rooms_version_not_negative check (version >= 0),
    constraint rooms_member_count_within_peak check (member_count between 0 and peak_members)
) with (fillfactor = 70);

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

create table leasehold.members (
    room_id          text collate "C" not null,
    user_id          text collate "C" not null,
    device_id        text collate "C" not null,
    epoch            bigint           not null,
    arrival          bigint           not null,
    joined_at        timestamptz      not null,
    last_seen_at     timestamptz      not null,
    lease_expires_at timestamptz      not null,
    disconnected_at  timestamptz,
    lease_ms         integer          not null,
    cursor           jsonb,
    metadata         jsonb,

    constraint members_pkey primary key (room_id, user_id, device_id),
    constraint members_room_fkey foreign key (room_id) references leasehold.rooms (room_id),
    constraint members_lease_ms_positive check (lease_ms >= 1)
) with (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

create index members_by_user on leasehold.members (user_id, room_id);

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

create table leasehold.blocks (
    room_id       text collate "C" not null,
    user_id       text collate "C" not null,
    blocked_until timestamptz      not null,

    constraint blocks_pkey primary key (room_id, user_id),
    constraint blocks_room_id_form check (leasehold.is_id(room_id)),
    constraint blocks_user_id_form check (leasehold.is_id(user_id))
);

comment on table leasehold.blocks is
    'Who may not join a room, and until when: a removal that holds for a time.';
