-- Ending other people's sessions: a removal from a room or from all of them, and
-- the closing of a room, each of which may hold for a time. They act on rows
-- under the rooms' locks, whatever the sockets of those concerned do meanwhile.

create function leasehold.set_block(
    p_room_id text,
    p_user_id text,
    p_block_ms bigint,
    p_by text,
    p_note text,
    p_at timestamptz
)
    returns void
    language plpgsql
as $$
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
$$;

comment on function leasehold.set_block(text, text, bigint, text, text, timestamptz) is
    'Internal. Blocks for so long; 0 lifts an earlier block, null leaves it. The caller holds the lock under which joins read it. Errors: 23514 for an id or a note that cannot be.';

create function leasehold.remove_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint default null,
    p_block_ms bigint default null,
    p_by text default null,
    p_note text default null,
    p_now timestamptz default null,
    out outcome text,
    out sessions_ended integer,
    out members_expired integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.remove_member(text, text, bigint, bigint, text, text, timestamptz) is
    'Ends a member''s sessions in a room, or only the one with p_epoch; the history keeps who decided it (p_by) and why (p_note). With p_block_ms, joins are refused for so long; 0 lifts an earlier block, null leaves it. Outcomes: removed, absent, misdirected where another database has the room, or for an epoch that is not current, which changes nothing, the same as stale_reason. Locks the room, then the sessions; waits for whoever holds one. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

create function leasehold.close_room(
    p_room_id text,
    p_block_ms bigint default null,
    p_by text default null,
    p_note text default null,
    p_now timestamptz default null,
    out outcome text,
    out sessions_ended integer,
    out members_expired integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.close_room(text, bigint, text, text, timestamptz) is
    'Ends every session of a room and with them its lifetime; the history keeps who decided it (p_by) and why (p_note). With p_block_ms nobody opens it again for so long; 0 lifts that, null leaves it. Outcomes: closed, absent where nobody was in it, or misdirected where another database has the room. A join that comes later opens the next generation. Locks the room, then its sessions; waits for whoever holds one. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

create function leasehold.remove_user(
    p_user_id text,
    p_block_ms bigint default null,
    p_by text default null,
    p_note text default null,
    p_now timestamptz default null,
    out room_ids text[],
    out sessions_ended integer,
    out members_expired integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.remove_user(text, bigint, text, text, timestamptz) is
    'Ends a user''s sessions in all rooms; the history keeps who decided it (p_by) and why (p_note). With p_block_ms, joins of any room are refused for so long; 0 lifts an earlier block of all rooms, null leaves it. Answers the room of each session. Waits for joins of the user in flight and lets none begin, then locks the rooms in order of id, then the sessions. Run it at read committed. Errors: 23514 for an id or a note that cannot be, 40001, 40P01, 55P03.';

create function leasehold.lock_door(
    p_room_id text,
    p_locked boolean default true,
    p_now timestamptz default null,
    out outcome text,
    out members_expired integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.lock_door(text, boolean, timestamptz) is
    'Lets nobody into a room who is not in it, or everybody again. Those inside stay, and may join again while they are; the next lifetime of the room begins unlocked. Outcomes: locked, unlocked, absent where there is no such room, or misdirected where another database has it. Locks the room; waits for whoever holds it. Run it at read committed. Errors: 40001, 40P01, 55P03.';

create function leasehold.set_metadata(
    p_room_id text,
    p_user_id text,
    p_metadata jsonb,
    p_epoch bigint default null,
    p_now timestamptz default null,
    out outcome text
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.set_metadata(text, text, jsonb, bigint, timestamptz) is
    'Replaces the metadata of a member''s newest session, or of the one with p_epoch, and renews nothing. Outcomes: changed; absent; misdirected where another database has the room; or for an epoch that is not current the same as stale_reason. Locks the member''s sessions; waits for whoever holds one. Errors: 40001, 40P01, 55P03.';

create function leasehold.room_blocks(
    p_room_id text,
    p_after text default null,
    p_limit integer default 100,
    p_now timestamptz default null
)
    returns setof leasehold.blocks
    language sql stable
as $$
    select *
      from leasehold.blocks b
     where b.room_id = p_room_id and (b.user_id > p_after) is not false
       and b.blocked_until > coalesce(p_now, clock_timestamp())
     order by b.user_id
     limit p_limit
$$;

comment on function leasehold.room_blocks(text, text, integer, timestamptz) is
    'The blocks of a room that hold, in order of user, those after p_after; the one of the room itself has an empty user and comes first. Blocks of all rooms are not among them. Locks nothing.';

create function leasehold.readers_blocked_until(
    p_room_ids text[],
    p_user_ids text[],
    p_now timestamptz default null,
    out blocked_until timestamptz[],
    out as_of timestamptz
)
    language sql stable
as $$
    select array(
               select (select max(b.blocked_until)
                         from leasehold.blocks_of(q.room_id, q.user_id, clock.now) b
                        where b.user_id <> '')
                 from unnest(p_room_ids, p_user_ids) with ordinality as q (room_id, user_id, ord)
                order by q.ord),
           clock.now
      from leasehold.clocks(p_now) clock
$$;

comment on function leasehold.readers_blocked_until(text[], text[], timestamptz) is
    'Internal. Until when each of these users may not even read the room; null where they may. Locks nothing.';
