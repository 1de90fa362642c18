-- Renewing and leaving: only the current epoch of a device can, and only while
-- its lease lives. Anything else changes nothing and is told why.

create function leasehold.stale_reason(
    p_room_id text,
    p_user_id text,
    p_device_id text,
    p_epoch bigint
)
    returns text
    language sql stable
as $$
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
$$;

comment on function leasehold.stale_reason(text, text, text, bigint) is
    'Why a session is not current: how it ended (superseded, expired, left, removed, room_closed), or unknown_session.';

create function leasehold.heartbeat_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_epochs bigint[],
    p_lease_ms integer[] default '{}',
    p_set_cursor boolean[] default '{}',
    p_cursors jsonb[] default '{}',
    p_set_metadata boolean[] default '{}',
    p_metadata jsonb[] default '{}',
    p_wait boolean default true,
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
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
$$;

comment on function leasehold.heartbeat_members(text[], text[], text[], bigint[], integer[], boolean[], jsonb[], boolean[], jsonb[], boolean, timestamptz) is
    'Renews leases, one request per position of the arrays and in that order; a cursor or metadata changes where its flag is set. Answers one outcome per request: renewed, or as of stale_reason; without p_wait also busy, where another transaction holds the session.';

create function leasehold.heartbeat_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default '',
    p_lease_ms integer default null,
    p_now timestamptz default null
)
    returns text
    language sql
as $$
    select (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], array[p_lease_ms],
                p_now => p_now))[1]
$$;

comment on function leasehold.heartbeat_member(text, text, bigint, text, integer, timestamptz) is
    'Renews one member''s lease, in the caller''s transaction. Outcomes as of heartbeat_members.';

create function leasehold.update_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_cursor jsonb,
    p_device_id text default '',
    p_now timestamptz default null
)
    returns text
    language sql
as $$
    select (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch],
                p_set_cursor => array[true], p_cursors => array[p_cursor], p_now => p_now))[1]
$$;

comment on function leasehold.update_member(text, text, bigint, jsonb, text, timestamptz) is
    'Sets one member''s cursor, which counts as a heartbeat. Outcomes as of heartbeat_members.';

create function leasehold.leave_members(
    p_room_ids text[],
    p_user_ids text[],
    p_device_ids text[],
    p_epochs bigint[],
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
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
$$;

comment on function leasehold.leave_members(text[], text[], text[], bigint[], timestamptz) is
    'Ends sessions whose epoch is current, one request per position of the arrays. Answers one outcome per request: left, or as of stale_reason.';

create function leasehold.leave_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default '',
    p_now timestamptz default null
)
    returns text
    language sql
as $$
    select (leasehold.leave_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], p_now))[1]
$$;

comment on function leasehold.leave_member(text, text, bigint, text, timestamptz) is
    'Ends one member''s session, in the caller''s transaction. Outcomes as of leave_members.';
