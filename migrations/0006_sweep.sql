-- The scheduled job: expire leases and delete empty rooms in bounded batches.
--
-- Nothing depends on it for what a reader sees; it keeps the tables small and
-- the history timely. It may be called by the service, by pg_cron or by cron,
-- and by all of them at once: a second one returns instead of queueing.

create table leasehold.sweeps (
    only_row      boolean     not null default true,
    last_swept_at timestamptz,

    constraint sweeps_pkey primary key (only_row),
    constraint sweeps_one_row check (only_row)
);
insert into leasehold.sweeps default values;

comment on table leasehold.sweeps is
    'One row: when a sweep last found nothing more to do. Its age is how late the history may be.';

create function leasehold.sweep(
    p_max_members integer default 1000,
    p_now timestamptz default null,
    out ran boolean,
    out members_expired integer,
    out rooms_closed integer,
    out finished boolean
)
    language plpgsql
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_rooms text[];
    v_seen integer;
begin
    members_expired := 0;
    rooms_closed := 0;
    finished := false;
    -- Held to the end of the transaction; the two numbers spell "leasehold sweep" for this project alone.
    ran := pg_try_advisory_xact_lock(hashtext('leasehold'), hashtext('sweep'));
    if not ran then
        return;
    end if;

    -- A room that somebody is changing is pruned by them, or by the next sweep: it does not hold up the others.
    select array_agg(distinct due.room_id), count(*)
      into v_rooms, v_seen
      from (select r.room_id
              from leasehold.members m
              join leasehold.rooms r on r.room_id = m.room_id
             where leasehold.lease_expired(m.lease_expires_at, v_now)
             limit p_max_members
               for no key update of r skip locked) due;
    if v_rooms is not null then
        select p.members_expired, p.rooms_closed
          into members_expired, rooms_closed
          from leasehold.prune_locked(v_rooms, coalesce(p_now, clock_timestamp())) p;
    end if;

    finished := v_seen < p_max_members;
    if finished then
        update leasehold.sweeps set last_swept_at = v_now;
    end if;
end
$$;

comment on function leasehold.sweep(integer, timestamptz) is
    'One batch of the expiry job: finds up to p_max_members expired members and prunes their rooms. Call it again until finished; ran is false where another sweep is under way.';
