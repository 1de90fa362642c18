-- Ending other people's sessions: a removal, which may hold for a time, and the
-- closing of a room. Both act on rows under the room's lock, whatever the
-- sockets of those concerned do meanwhile.

create function leasehold.remove_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint default null,
    p_block_ms bigint default null,
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
                    array_fill(p_room_id, array[sessions_ended]), array_fill(p_user_id, array[sessions_ended]),
                    v_devices, 'removed', v_now);
    end if;

    if p_epoch is not null and sessions_ended = 0 then
        -- An epoch has one device; which one does not matter to who removes.
        outcome := leasehold.stale_reason(
                       p_room_id, p_user_id, p_epoch,
                       coalesce((select e.device_id
                                   from leasehold.membership_events e
                                  where e.room_id = p_room_id and e.user_id = p_user_id and e.epoch = p_epoch
                                  limit 1), ''));
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
    perform leasehold.prune_locked(array[p_room_id], v_now, v_lease_now);
end
$$;

comment on function leasehold.remove_member(text, text, bigint, bigint, timestamptz) is
    'Ends a member''s sessions in a room, or only the one with p_epoch. With p_block_ms, joins are refused for so long; 0 lifts an earlier block, null leaves it. Outcomes: removed, absent, or for an epoch that is not current, which changes nothing, the same as stale_reason. Locks the room, then the sessions; waits for whoever holds one. Run it at read committed. Errors: 23514 for an id that cannot be, 40001, 40P01, 55P03.';

create function leasehold.close_room(
    p_room_id text,
    p_now timestamptz default null,
    out outcome text,
    out sessions_ended integer,
    out members_expired integer
)
    language plpgsql
as $$
declare
    v_rooms text[] := leasehold.lock_rooms(array[p_room_id]);
    v_now timestamptz;
    v_lease_now bigint;
    v_users text[];
    v_devices text[];
begin
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    -- All sessions in one pass.
    perform leasehold.lock_sessions(
                array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id), v_lease_now)
       from leasehold.members m
      where m.room_id = any (v_rooms);
    members_expired := coalesce(leasehold.prune_due(v_rooms, v_now, v_lease_now), 0);
    select array_agg(m.user_id), array_agg(m.device_id)
      into v_users, v_devices
      from leasehold.members m
     where m.room_id = any (v_rooms);
    sessions_ended := coalesce(cardinality(v_users), 0);
    outcome := case when sessions_ended > 0 then 'closed' else 'absent' end;
    if sessions_ended > 0 then
        perform leasehold.end_sessions(
                    array_fill(p_room_id, array[sessions_ended]), v_users, v_devices, 'room_closed', v_now);
        perform leasehold.prune_locked(v_rooms, v_now, v_lease_now);
    end if;
end
$$;

comment on function leasehold.close_room(text, timestamptz) is
    'Ends every session of a room and with them its lifetime. Outcomes: closed, or absent where nobody was in it. A join that comes later opens the next generation. Locks the room, then its sessions; waits for whoever holds one. Run it at read committed. Errors: 40001, 40P01, 55P03.';
