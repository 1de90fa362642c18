-- Webhooks: the feed, delivered to addresses of others.
--
-- An endpoint has its own position in the feed. What was read up to there and is
-- not delivered yet waits in an outbox, so that a room whose delivery fails keeps
-- neither the position nor other rooms. One instance at a time serves an endpoint:
-- by a lease with an epoch, both of the row, so that no transaction is open while
-- a request is under way. Every step names the epoch, and one of an owner of
-- before changes nothing.

create table leasehold.webhooks (
    name                  text not null,
    url                   text not null,
    secret                text not null,
    previous_secret       text,
    previous_secret_until timestamptz,
    room_id               text,
    prefix                text,
    kinds                 text[],
    status                text not null default 'active',
    "position"            text,
    revision              bigint not null default 1,
    owner                 text,
    epoch                 bigint not null default 0,
    lease_until           timestamptz,
    held_until            timestamptz,
    failures              bigint not null default 0,
    last_failure          text,
    last_failure_at       timestamptz,
    last_success_at       timestamptz,

    constraint webhooks_pkey primary key (name),
    constraint webhooks_name_is_an_id check (leasehold.is_id(name)),
    constraint webhooks_url_is_http check (url ~ '^https?://' and octet_length(url) <= 2048),
    constraint webhooks_one_filter_of_rooms check (room_id is null or prefix is null),
    constraint webhooks_known_kinds check (
        cardinality(kinds) > 0 and kinds <@ array['room_opened', 'joined', 'ended', 'room_closed']),
    constraint webhooks_known_status check (status in ('active', 'disabled', 'failed', 'gone', 'expired'))
);

comment on table leasehold.webhooks is
    'Addresses that the feed is delivered to, each with its position in it. Secrets are here and nowhere else; webhook_states is the same without them.';
comment on column leasehold.webhooks.status is
    'active; disabled by somebody; failed: it answered nothing good for too long; gone: it answered 410; expired: its position was purged or is of another history.';
comment on column leasehold.webhooks."position" is
    'Everything up to here is delivered or in webhook_deliveries; null is before the oldest kept.';
comment on column leasehold.webhooks.revision is
    'Raised by whoever changes the endpoint: its owner then reads it again before its next step.';
comment on column leasehold.webhooks.epoch is
    'Numbers the owners; a step that names an older one changes nothing.';
comment on column leasehold.webhooks.held_until is
    'The receiver asked for no request before.';

create table leasehold.webhook_deliveries (
    name            text not null,
    seq             bigint generated always as identity,
    delivery_id     text not null default 'msg_' || replace(gen_random_uuid()::text, '-', ''),
    room_id         text not null,
    items           text not null,
    changes         integer not null,
    attempts        integer not null default 0,
    taken_at        timestamptz not null,
    due_at          timestamptz not null,
    first_failed_at timestamptz,

    constraint webhook_deliveries_pkey primary key (name, seq),
    constraint webhook_deliveries_of_a_room unique (name, room_id, seq),
    constraint webhook_deliveries_webhook foreign key (name) references leasehold.webhooks (name) on delete cascade,
    constraint webhook_deliveries_not_empty check (changes > 0)
);

comment on table leasehold.webhook_deliveries is
    'What endpoints are still to be sent: up to 100 changes of one room each, in order of seq within the room. What was once tried stays as it is, with its delivery_id.';
comment on column leasehold.webhook_deliveries.items is
    'The changes as JSON, separated by commas.';

create view leasehold.webhook_states as
select w.name, w.url, w.room_id, w.prefix, w.kinds, w.status, w."position", w.failures, w.last_success_at,
       w.last_failure_at, w.last_failure, w.held_until, w.previous_secret_until, w.lease_until,
       waiting.deliveries as pending_deliveries, waiting.changes as pending_changes,
       waiting.oldest_at as oldest_pending_at
  from leasehold.webhooks w
 cross join lateral (select count(*) as deliveries, coalesce(sum(d.changes), 0)::bigint as changes,
                            min(d.taken_at) as oldest_at
                       from leasehold.webhook_deliveries d
                      where d.name = w.name) waiting;

comment on view leasehold.webhook_states is
    'Every endpoint without its secrets: where it is in the feed, what waits for it, and how it answered last.';

create function leasehold.set_webhook(
    p_name text,
    p_url text,
    p_secret text default null,
    p_room_id text default null,
    p_prefix text default null,
    p_kinds text[] default null,
    p_after text default 'latest',
    out outcome text
)
    language plpgsql
as $$
declare
    v_now timestamptz;
    v_secret text;
begin
    select w.secret into v_secret from leasehold.webhooks w where w.name = p_name for update;
    v_now := clock_timestamp();
    if found then
        update leasehold.webhooks w
           set url = p_url, room_id = p_room_id, prefix = p_prefix, kinds = p_kinds, revision = w.revision + 1,
               secret = coalesce(p_secret, w.secret),
               -- Receivers have a day to learn of the new one.
               previous_secret = case when p_secret <> v_secret then v_secret else w.previous_secret end,
               previous_secret_until = case when p_secret <> v_secret then v_now + interval '1 day'
                                            else w.previous_secret_until end
         where w.name = p_name;
        outcome := 'changed';
        return;
    end if;
    if p_secret is null then
        outcome := 'no_secret';
        return;
    end if;
    insert into leasehold.webhooks as w (name, url, secret, room_id, prefix, kinds, "position")
    values (p_name, p_url, p_secret, p_room_id, p_prefix, p_kinds, leasehold.webhook_position(p_after))
        on conflict (name) do nothing;
    if found then
        outcome := 'created';
        return;
    end if;
    -- Another one made it meanwhile.
    outcome := s.outcome
      from leasehold.set_webhook(p_name, p_url, p_secret, p_room_id, p_prefix, p_kinds, p_after) s;
end
$$;

comment on function leasehold.set_webhook(text, text, text, text, text, text[], text) is
    'Makes an endpoint, or changes all of it but its position and status; a secret left out stays, and one that is replaced signs beside the new one for a day. A new endpoint begins at p_after: latest, a position, or null for the oldest kept. Answers created, changed or no_secret (a new one needs it). Errors: 23514 for what cannot be; 22023 and LH410 for the position, as changes. Locks the endpoint.';

create function leasehold.webhook_position(p_after text)
    returns text
    language sql stable
as $$
    -- A position that can be read from is kept as it was given.
    select case when p_after = 'latest' then (select c.next from leasehold.changes('latest', 1) c limit 1)
                when p_after is not null and (select c.next from leasehold.changes(p_after, 1) c limit 1) is not null
                then p_after
           end
$$;

comment on function leasehold.webhook_position(text) is
    'Internal. Where an endpoint begins that is to go on after this. Errors as changes.';

create function leasehold.disable_webhook(p_name text)
    returns boolean
    language plpgsql
as $$
begin
    update leasehold.webhooks w
       set status = 'disabled', revision = w.revision + 1
     where w.name = p_name;
    return found;
end
$$;

comment on function leasehold.disable_webhook(text) is
    'Sends an endpoint nothing more; its position and what waits for it stay as they are. False where there is none. Locks the endpoint.';

create function leasehold.resume_webhook(p_name text)
    returns boolean
    language plpgsql
as $$
begin
    update leasehold.webhooks w
       set status = 'active', revision = w.revision + 1, failures = 0, held_until = null
     where w.name = p_name;
    if not found then
        return false;
    end if;
    -- At once, and with all the patience of a first try.
    update leasehold.webhook_deliveries d
       set due_at = clock_timestamp(), first_failed_at = null
     where d.name = p_name and d.attempts > 0;
    return true;
end
$$;

comment on function leasehold.resume_webhook(text) is
    'Goes on with an endpoint that is disabled, failed or gone, from where it stopped. False where there is none. Locks the endpoint.';

create function leasehold.resume_webhook_from(p_name text, p_after text)
    returns boolean
    language plpgsql
as $$
declare
    v_position text := leasehold.webhook_position(p_after);
begin
    update leasehold.webhooks w
       set status = 'active', revision = w.revision + 1, failures = 0, held_until = null, "position" = v_position
     where w.name = p_name;
    if not found then
        return false;
    end if;
    delete from leasehold.webhook_deliveries d where d.name = p_name;
    return true;
end
$$;

comment on function leasehold.resume_webhook_from(text, text) is
    'Goes on with an endpoint from a chosen place: latest, a position, or null for the oldest kept. What waited for it is dropped. False where there is none. Errors: 22023 and LH410, as changes. Locks the endpoint.';

create function leasehold.remove_webhook(p_name text)
    returns boolean
    language plpgsql
as $$
begin
    delete from leasehold.webhooks w where w.name = p_name;
    return found;
end
$$;

comment on function leasehold.remove_webhook(text) is
    'Forgets an endpoint, its position and what waits for it. False where there is none. Locks the endpoint.';
