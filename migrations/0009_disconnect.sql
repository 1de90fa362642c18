-- A transport that was lost: the member looks it at once, and the lease decides
-- whether they are gone. Guarded as a heartbeat is, which undoes it.

create function leasehold.disconnect_members(
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
    v_now timestamptz;
    v_rows tid[];
    v_lost integer[];
begin
    -- In the order of the heartbeats, so that the two cannot wait for each other.
    -- A locked row does not move, so the update below finds it by its place.
    select array_agg(l.ctid)
      into v_rows
      from (select m.ctid
              from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
                   as q (room_id, user_id, device_id, epoch)
              join leasehold.members m
                on m.room_id = q.room_id and m.user_id = q.user_id and m.device_id = q.device_id
               and m.epoch = q.epoch
             order by m.room_id, m.user_id, m.device_id
               for no key update of m) l;
    v_now := coalesce(p_now, clock_timestamp());

    with lost as (
        -- The first report counts: since when the transport is lost.
        update leasehold.members m
           set disconnected_at = coalesce(m.disconnected_at, v_now)
         where m.ctid = any (v_rows)
           and not leasehold.lease_expired(m.lease_expires_at, v_now)
        returning m.room_id, m.user_id, m.device_id, m.epoch
    )
    select coalesce(array_agg(q.ord::integer), '{}')
      into v_lost
      from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
           with ordinality as q (room_id, user_id, device_id, epoch, ord)
      join lost using (room_id, user_id, device_id, epoch);

    return array(
        select case when q.ord = any (v_lost) then 'disconnected'
                    else leasehold.stale_reason(q.room_id, q.user_id, q.device_id, q.epoch) end
          from unnest(p_room_ids, p_user_ids, p_device_ids, p_epochs)
               with ordinality as q (room_id, user_id, device_id, epoch, ord)
         order by q.ord);
end
$$;

comment on function leasehold.disconnect_members(text[], text[], text[], bigint[], timestamptz) is
    'Marks sessions whose transport was lost, one request per position of the arrays; no lease changes. Answers one outcome per request: disconnected, or as of stale_reason.';

create function leasehold.disconnect_member(
    p_room_id text,
    p_user_id text,
    p_epoch bigint,
    p_device_id text default '',
    p_now timestamptz default null
)
    returns text
    language sql
as $$
    select (leasehold.disconnect_members(
                array[p_room_id], array[p_user_id], array[p_device_id], array[p_epoch], p_now))[1]
$$;

comment on function leasehold.disconnect_member(text, text, bigint, text, timestamptz) is
    'Marks one member''s session, in the caller''s transaction. Outcomes as of disconnect_members.';
