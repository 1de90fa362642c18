-- Renewing: only the current epoch of a device can, and only while its lease
-- lives. Anything else changes nothing and is told why.

create function leasehold.stale_reason(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default null
)
    returns text
    language sql stable
as $$
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
$$;

comment on function leasehold.stale_reason(text, text, bigint, text) is
    'Why a session is not current: how it ended (superseded, expired, left, removed, room_closed, moved), or unknown_session; misdirected where another database has the room. Without p_device_id on whichever device. Locks nothing.';

create function leasehold.outcomes_of(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_done integer[],
    p_word text,
    p_locked integer[]
)
    returns text[]
    language plpgsql stable
as $$
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
$$;

comment on function leasehold.outcomes_of(text[], text[], bigint[], text[], integer[], text, integer[]) is
    'Internal. For each request this word where it was done, busy where another transaction holds its session, and else why it is stale.';

create function leasehold.heartbeat_members(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_set_cursor boolean[] default '{}',
    p_cursors jsonb[] default '{}',
    p_set_metadata boolean[] default '{}',
    p_metadata jsonb[] default '{}',
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
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
$$;

comment on function leasehold.heartbeat_members(text[], text[], bigint[], text[], boolean[], jsonb[], boolean[], jsonb[], timestamptz) is
    'Renews leases, one request per position of the arrays and in that order; a cursor or metadata changes where its flag is set. Outcomes: renewed, busy where another transaction holds the session (then nothing changed), or the same as stale_reason. Locks the sessions; waits for nobody. Errors: 22023.';

create function leasehold.resize_leases(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_lease_ms integer[],
    p_heartbeat_ms integer[] default '{}',
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
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
$$;

comment on function leasehold.resize_leases(text[], text[], bigint[], text[], integer[], integer[], timestamptz) is
    'Renews leases and gives them another length from now on; the heartbeat interval is a third of it where it is left out. The same outcomes as heartbeat_members; busy also where another transaction holds the room. Locks the rooms, then the sessions; waits for nobody. Errors: 22023.';

create function leasehold.heartbeat_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default '',
    p_lease_ms integer default null,
    p_now timestamptz default null
)
    returns text
    language plpgsql
as $$
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
$$;

comment on function leasehold.heartbeat_member(text, text, bigint, text, integer, timestamptz) is
    'Renews one session''s lease, in the caller''s transaction, with p_lease_ms in another length from now on. Outcomes: renewed, or the same as stale_reason. Locks the session, with p_lease_ms its room before; waits for whoever holds them. Errors: 22023, 40001, 40P01, 55P03.';

create function leasehold.set_cursor(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_cursor jsonb,
    p_device_id text default '',
    p_now timestamptz default null
)
    returns text
    language plpgsql
as $$
begin
    perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
    return (leasehold.heartbeat_members(
                array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id],
                p_set_cursor => array[true], p_cursors => array[p_cursor], p_now => p_now))[1];
end
$$;

comment on function leasehold.set_cursor(text, text, bigint, jsonb, text, timestamptz) is
    'Sets one session''s cursor, which counts as a heartbeat. The same outcomes, locks and errors as heartbeat_member.';
