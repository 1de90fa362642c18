-- Ending other people's sessions: a removal, which may hold for a time, and the
-- closing of a room. Both act on rows under the room's lock, whatever the
-- sockets of those concerned do meanwhile.

create function leasehold.end_sessions(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_reason text,
    p_now timestamptz
)
    returns integer
    language plpgsql
as $$
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
$$;

comment on function leasehold.end_sessions(text, text, bigint, text, timestamptz) is
    'Internal. Ends the sessions of a room, or of one user in it, or the one with this epoch; says how many. The caller holds the room''s lock and prunes afterwards.';

create function leasehold.remove_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint default null,
    p_block_ms bigint default null,
    p_now timestamptz default null,
    out outcome text,
    out sessions_ended integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.remove_member(text, text, bigint, bigint, timestamptz) is
    'Ends a person''s sessions in a room, or only the one with p_epoch. With p_block_ms, joins are refused for so long; 0 lifts an earlier block, null leaves it. Outcomes: removed, absent, or for an epoch that is not current, which changes nothing, as of stale_reason.';

create function leasehold.close_room(
    p_room_id text,
    p_now timestamptz default null,
    out outcome text,
    out sessions_ended integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.close_room(text, timestamptz) is
    'Ends every session of a room and with them its generation. Outcomes: closed, or absent where nobody was in it. A join that comes later opens the next generation.';
