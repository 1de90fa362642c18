-- Leaving, and the news that a transport was lost: then the member looks it at
-- once, and the lease decides whether they are gone.

create function leasehold.leave_members(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_now timestamptz default null,
    out outcomes text[],
    out members_expired integer
)
    language plpgsql
as $$
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
$$;

comment on function leasehold.leave_members(text[], text[], bigint[], text[], timestamptz) is
    'Ends sessions whose epoch is current, one request per position of the arrays. Outcomes: left, or the same as stale_reason. Locks the rooms in order of id, then the sessions; waits for whoever holds one. Run it at read committed. Errors: 22023, 40001, 40P01, 55P03.';

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
    select l.outcomes[1]
      from leasehold.leave_members(
               array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id], p_now) l
$$;

comment on function leasehold.leave_member(text, text, bigint, text, timestamptz) is
    'Ends one session, in the caller''s transaction. The same outcomes, locks and errors as leave_members.';

create function leasehold.disconnect_members(
    p_room_ids text[],
    p_user_ids text[],
    p_epochs bigint[],
    p_device_ids text[],
    p_now timestamptz default null
)
    returns text[]
    language plpgsql
as $$
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
$$;

comment on function leasehold.disconnect_members(text[], text[], bigint[], text[], timestamptz) is
    'Marks sessions whose transport was lost, one request per position of the arrays; no lease changes. Outcomes: disconnected, busy where another transaction holds the session, or the same as stale_reason. Locks the sessions; waits for nobody. Errors: 22023.';

create function leasehold.disconnect_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default '',
    p_now timestamptz default null
)
    returns text
    language plpgsql
as $$
begin
    perform leasehold.await_session(p_room_id, p_user_id, p_device_id);
    return (leasehold.disconnect_members(
                array[p_room_id], array[p_user_id], array[p_epoch], array[p_device_id], p_now))[1];
end
$$;

comment on function leasehold.disconnect_member(text, text, bigint, text, timestamptz) is
    'Marks one session, in the caller''s transaction. Outcomes: disconnected, or the same as stale_reason. Locks the session; waits for whoever holds it. Errors: 22023, 40001, 40P01, 55P03.';
