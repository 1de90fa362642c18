-- The steps of whoever serves an endpoint. Each begins with the lock of its row
-- and a look at the epoch, and is short: requests are sent between them.

create function leasehold.claim_webhooks(p_owner text, p_lease interval)
    returns table (name text, epoch bigint)
    language sql
as $$
    update leasehold.webhooks w
       set owner = p_owner, epoch = w.epoch + 1, lease_until = clock_timestamp() + p_lease
      from (select k.name
              from leasehold.webhooks k
             where k.status = 'active' and coalesce(k.lease_until <= clock_timestamp(), true)
             order by k.name
               for update skip locked) free
     where w.name = free.name
    returning w.name, w.epoch
$$;

comment on function leasehold.claim_webhooks(text, interval) is
    'Internal. Makes p_owner the owner of every active endpoint that has none. Passes over what another transaction holds.';

create function leasehold.renew_webhook(p_name text, p_epoch bigint, p_lease interval)
    returns table (
        revision bigint,
        url text,
        secret text,
        previous_secret text,
        room_id text,
        prefix text,
        kinds text[],
        "position" text
    )
    language sql
as $$
    update leasehold.webhooks w
       set lease_until = clock_timestamp() + p_lease
     where w.name = p_name and w.epoch = p_epoch and w.status = 'active'
    returning w.revision, w.url, w.secret,
              case when w.previous_secret_until > clock_timestamp() then w.previous_secret end,
              w.room_id, w.prefix, w.kinds, w."position"
$$;

comment on function leasehold.renew_webhook(text, bigint, interval) is
    'Internal. Prolongs the lease of an owner and answers what it is to do; no row where it owns the endpoint no longer, or that is not active. Locks the endpoint.';

create function leasehold.release_webhook(p_name text, p_epoch bigint)
    returns void
    language sql
as $$
    update leasehold.webhooks w
       set lease_until = null, owner = null
     where w.name = p_name and w.epoch = p_epoch
$$;

comment on function leasehold.release_webhook(text, bigint) is
    'Internal. Lets others take an endpoint at once. Locks the endpoint.';

create function leasehold.holds_webhook(p_name text, p_epoch bigint, p_revision bigint default null)
    returns boolean
    language sql
as $$
    -- Whoever claims or changes the endpoint waits until this step is done.
    select exists (select from leasehold.webhooks w
                    where w.name = p_name and w.epoch = p_epoch
                      and (p_revision is null or (w.revision = p_revision and w.status = 'active'))
                      for update)
$$;

comment on function leasehold.holds_webhook(text, bigint, bigint) is
    'Internal. Whether this owner still has the endpoint and, where it names a revision, has it as it is now. Locks the endpoint.';

create function leasehold.take_changes(
    p_name text,
    p_epoch bigint,
    p_revision bigint,
    p_from text,
    p_next text,
    p_room_ids text[],
    p_items text[],
    p_changes integer[]
)
    returns boolean
    language plpgsql
as $$
declare
    v_now timestamptz;
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return false;
    end if;
    v_now := clock_timestamp();
    -- An answer that was lost is asked for again: the same page is taken once.
    update leasehold.webhooks w
       set "position" = p_next
     where w.name = p_name and w."position" is not distinct from p_from;
    if not found then
        return false;
    end if;
    with taken as (
        select t.*
          from unnest(p_room_ids, p_items, p_changes) with ordinality as t (room_id, items, changes, n)
    ), first as (
        select distinct on (t.room_id) t.* from taken t order by t.room_id, t.n
    ), joined as (
        -- What nobody was sent yet can still grow.
        update leasehold.webhook_deliveries d
           set items = d.items || ',' || f.items, changes = d.changes + f.changes
          from first f
         where d.name = p_name and d.attempts = 0 and d.changes + f.changes <= 100
           and d.seq = (select max(l.seq) from leasehold.webhook_deliveries l
                         where l.name = p_name and l.room_id = f.room_id)
        returning f.n
    )
    insert into leasehold.webhook_deliveries (name, room_id, items, changes, taken_at, due_at)
    select p_name, t.room_id, t.items, t.changes, v_now, v_now
      from taken t
     where t.n not in (select j.n from joined j)
     order by t.n;
    return true;
end
$$;

comment on function leasehold.take_changes(text, bigint, bigint, text, text, text[], text[], integer[]) is
    'Internal. Puts a page of the feed, from p_from to p_next, into the outbox of an endpoint, and moves its position; each item is a run of changes of one room. False, and nothing is changed, where the owner no longer has the endpoint as it was or the position is another one. Locks the endpoint.';

create function leasehold.due_deliveries(
    p_name text,
    p_epoch bigint,
    p_revision bigint,
    p_busy_room_ids text[],
    p_limit integer
)
    returns table (
        pending bigint,
        as_of timestamptz,
        seq bigint,
        delivery_id text,
        room_id text,
        items text
    )
    language plpgsql
as $$
declare
    v_now timestamptz;
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return;
    end if;
    v_now := clock_timestamp();
    return query
    with waiting as (
        select count(*) as deliveries from leasehold.webhook_deliveries d where d.name = p_name
    ), chosen as (
        -- Of each room the oldest, if it is due; walked in order, so that no room is forgotten.
        select d.seq
          from leasehold.webhook_deliveries d
         where d.name = p_name and d.due_at <= v_now and d.room_id <> all (p_busy_room_ids)
           and not exists (select from leasehold.webhook_deliveries e
                            where e.name = d.name and e.room_id = d.room_id and e.seq < d.seq)
           and not exists (select from leasehold.webhooks w where w.name = p_name and w.held_until > v_now)
         order by d.seq
         limit p_limit
    ), begun as (
        update leasehold.webhook_deliveries d
           set attempts = d.attempts + 1
          from chosen c
         where d.name = p_name and d.seq = c.seq
        returning d.*
    )
    select w.deliveries, v_now, b.seq, b.delivery_id, b.room_id, b.items
      from waiting w
      left join begun b on true
     order by b.seq;
end
$$;

comment on function leasehold.due_deliveries(text, bigint, bigint, text[], integer) is
    'Internal. What an owner is to send now: the oldest delivery of each room that is due, but for rooms with one under way. One row at least, with how many deliveries wait; none where the owner no longer has the endpoint as it was. Locks the endpoint.';

create function leasehold.settle_deliveries(
    p_name text,
    p_epoch bigint,
    p_seqs bigint[],
    p_failures text[],
    p_retry_ms bigint[],
    p_hold_ms bigint,
    p_is_gone boolean,
    p_give_up interval
)
    returns text
    language plpgsql
as $$
declare
    v_now timestamptz;
    v_status text;
begin
    if not leasehold.holds_webhook(p_name, p_epoch) then
        return null;
    end if;
    v_now := clock_timestamp();
    with answered as (
        select a.* from unnest(p_seqs, p_failures, p_retry_ms) as a (seq, failure, retry_ms)
    ), delivered as (
        delete from leasehold.webhook_deliveries d
         using answered a
         where d.name = p_name and d.seq = a.seq and a.failure is null
        returning d.seq
    ), failed as (
        update leasehold.webhook_deliveries d
           set first_failed_at = coalesce(d.first_failed_at, v_now),
               -- Twice as long each time, up to an hour, and never together with others.
               due_at = v_now + greatest(
                   a.retry_ms * interval '1 millisecond',
                   least(interval '1 hour', interval '1 second' * 2 ^ least(d.attempts - 1, 20)) * (0.5 + random() / 2))
          from answered a
         where d.name = p_name and d.seq = a.seq and a.failure is not null
        returning d.seq, a.failure, d.first_failed_at
    ), seen as (
        select (select count(*) from delivered) as delivered, count(*) as failed, max(f.failure) as failure,
               coalesce(min(f.first_failed_at) <= v_now - p_give_up, false) as for_too_long
          from failed f
    )
    update leasehold.webhooks w
       set failures = case when s.delivered > 0 then 0 else w.failures end + s.failed,
           last_success_at = case when s.delivered > 0 then v_now else w.last_success_at end,
           last_failure = coalesce(s.failure, w.last_failure),
           last_failure_at = case when s.failed > 0 then v_now else w.last_failure_at end,
           held_until = greatest(w.held_until, v_now + p_hold_ms * interval '1 millisecond'),
           status = case when w.status <> 'active' then w.status
                         when p_is_gone then 'gone'
                         when s.for_too_long then 'failed'
                         else w.status end
      from seen s
     where w.name = p_name
    returning w.status into v_status;
    return v_status;
end
$$;

comment on function leasehold.settle_deliveries(text, bigint, bigint[], text[], bigint[], bigint, boolean, interval) is
    'Internal. What came of deliveries: those without a failure are over, the others are due again later. Answers the status of the endpoint; null, and nothing is changed, where it has another owner. Locks the endpoint.';

create function leasehold.expire_webhook(p_name text, p_epoch bigint, p_revision bigint)
    returns boolean
    language plpgsql
as $$
begin
    if not leasehold.holds_webhook(p_name, p_epoch, p_revision) then
        return false;
    end if;
    update leasehold.webhooks w set status = 'expired' where w.name = p_name;
    return true;
end
$$;

comment on function leasehold.expire_webhook(text, bigint, bigint) is
    'Internal. Stops an endpoint whose position cannot be read from. Locks the endpoint.';

create function leasehold.webhook_figures()
    returns table (status text, endpoints bigint, pending bigint, lag_seconds double precision)
    language sql stable
as $$
    select k.status, count(s.name), coalesce(sum(s.pending_deliveries), 0)::bigint,
           -- Where nobody serves an endpoint nothing is taken for it either.
           coalesce(max(extract(epoch from clock_timestamp()
                                           - least(s.oldest_pending_at,
                                                   case when s.lease_until < clock_timestamp() then s.lease_until end))), 0)
               ::double precision
      from unnest(array['active', 'disabled', 'failed', 'gone', 'expired']) as k (status)
      left join leasehold.webhook_states s on s.status = k.status
     group by k.status
$$;

comment on function leasehold.webhook_figures() is
    'Internal. How many endpoints there are of each status, how many deliveries wait for them, and for how long the oldest.';

create function leasehold.webhooks_hold()
    returns leasehold.feed_key
    language sql stable
as $$
    -- Also of one that was switched off: it goes on from where it stopped.
    select case when w."position" is null then (0, '0', 0)::leasehold.feed_key
                else leasehold.position_key(w."position") end
      from leasehold.webhooks w
     cross join leasehold.feed f
     where w.status in ('active', 'disabled', 'failed')
       and (w."position" is null or split_part(w."position", '.', 1) = f.name)
     order by 1
     limit 1
$$;

comment on function leasehold.webhooks_hold() is
    'Internal. The place in the feed from which on an endpoint still needs events, that one included; null where none needs any.';
