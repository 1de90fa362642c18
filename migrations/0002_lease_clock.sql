-- The lease clock: the database's clock less the time in which nobody served.
--
-- A lease measures the silence of a client. While no instance could be heard,
-- silence means nothing, so the clock by which leases are judged stands still
-- then. It is a number of microseconds, so that nobody compares it with now()
-- by accident; whatever is recorded as having happened stays on the database's
-- clock.
--
-- Each serving instance beats once a second. The clock runs for a moment after
-- each beat and then waits for the next, so it never shows what it would have
-- to take back. A beat that is merely late lets it catch up. Coming back after a time without
-- beats is one update of one row: no session is touched, all of them go on
-- from where they were, nothing is extended twice, and it does not matter who
-- comes back first. Only a missing beat stops the clock, never the share of
-- clients that are silent. A clock of the database that jumps, a machine that
-- was suspended and an overload in which no beat gets through are the same case.

create table leasehold.pulse (
    only_row     boolean not null default true,
    last_at      timestamptz,
    last_by      bigint,
    paused       bigint  not null default 0,
    floor        bigint  not null default 0,
    spread_until bigint  not null default 0,
    reach        bigint  not null default 1500000,
    gap          bigint  not null default 3000000,
    max_pause    bigint  not null default 600000000,

    constraint pulse_pkey primary key (only_row),
    constraint pulse_one_row check (only_row),
    constraint pulse_lengths check (reach between 1 and gap and max_pause >= 0)
) with (fillfactor = 10);
insert into leasehold.pulse default values;

comment on table leasehold.pulse is
    'One row: when an instance last served, and for how long the lease clock has stood still. All lengths in microseconds.';
comment on column leasehold.pulse.last_at is
    'The last beat; null where no instance has served yet: then the lease clock is the database''s.';
comment on column leasehold.pulse.last_by is
    'Whose it was, if it said so.';
comment on column leasehold.pulse.paused is
    'By how much the lease clock is behind the database''s.';
comment on column leasehold.pulse.floor is
    'The lease clock at the last beat: it never shows less.';
comment on column leasehold.pulse.spread_until is
    'On the lease clock: no other outage before it makes the clock stand still longer than it lasted.';
comment on column leasehold.pulse.reach is
    'For how long after a beat the lease clock runs without another.';
comment on column leasehold.pulse.gap is
    'Beats that are further apart than this are an outage.';
comment on column leasehold.pulse.max_pause is
    'The longest that one outage stops the clock; 0 switches it off.';

create table leasehold.outages (
    outage_id     bigint      not null generated always as identity,
    began_at      timestamptz not null,
    ended_at      timestamptz not null,
    lease_at      bigint      not null,
    paused_before bigint      not null,
    paused_after  bigint      not null,

    constraint outages_pkey primary key (outage_id)
);
create index outages_by_lease_at on leasehold.outages (lease_at, outage_id);

comment on table leasehold.outages is
    'The times in which nobody served, or the database''s clock jumped: from the last beat before to the first one after.';
comment on column leasehold.outages.lease_at is
    'Where the lease clock stood meanwhile.';
comment on column leasehold.outages.paused_after is
    'By how much the lease clock is behind the database''s from then on.';

create function leasehold.micros(p_at timestamptz)
    returns bigint
    language sql immutable parallel safe
    -- By way of a zone that is named, as only that is immutable and goes into its caller's plan.
    return (extract(epoch from p_at at time zone 'UTC') * 1000000)::bigint;

comment on function leasehold.micros(timestamptz) is
    'Internal. An instant as microseconds since 1970.';

create function leasehold.instant(p_micros bigint)
    returns timestamptz
    language sql immutable parallel safe
    return (timestamp '1970-01-01' + p_micros * interval '1 microsecond') at time zone 'UTC';

comment on function leasehold.instant(bigint) is
    'Internal. The opposite of micros.';

create function leasehold.clocks(p_now timestamptz default null)
    returns table (now timestamptz, lease_now bigint, lease_from bigint)
    language sql stable
as $$
    -- Materialized, so that whoever joins it judges all rows by one reading. In this form it
    -- becomes part of its caller's plan: every call of the schema comes by here.
    with reading as materialized (
        select coalesce(p_now, clock_timestamp()) as now
    ), clock as materialized (
        select r.now,
               greatest(p.floor,
                   case
                       when p.last_at is null or p.max_pause = 0 then leasehold.micros(r.now)
                       -- The database's clock stepped back.
                       when r.now < p.last_at then leasehold.micros(p.last_at)
                       when leasehold.micros(r.now) <= leasehold.micros(p.last_at) + p.reach
                           then leasehold.micros(r.now)
                       -- Nobody serves: it stands still, but not for ever, unless this is an instance
                       -- that serves, whose beat is about to say how long.
                       when leasehold.micros(r.now) > leasehold.micros(p.last_at) + p.reach + p.max_pause
                            and current_setting('leasehold.serves', true) is distinct from 'on'
                           then leasehold.micros(r.now) - p.max_pause
                       else leasehold.micros(p.last_at) + p.reach
                   end - p.paused) as lease_now,
               -- Where a beat that is merely late brings the clock.
               least(leasehold.micros(r.now), leasehold.micros(p.last_at) + p.gap) - p.paused as caught_up
          from reading r
         cross join leasehold.pulse p
         where p.only_row
    )
    select clock.now, clock.lease_now, greatest(clock.lease_now, clock.caught_up) from clock
$$;

comment on function leasehold.clocks(timestamptz) is
    'Internal. Both clocks by one reading: what is recorded as having happened is on the first, leases are judged by the second, and begin at the third, which is where a late beat would let the second catch up to. The only place that reads either. p_now is null but in tests. Call it after the locks. Locks nothing.';

create function leasehold.lease_clock(p_now timestamptz default null)
    returns bigint
    language sql volatile
    return (select c.lease_now from leasehold.clocks(p_now) c);

comment on function leasehold.lease_clock(timestamptz) is
    'The clock by which leases are judged, in microseconds: the database''s less the time in which nobody served. It runs for pulse.reach after each beat and then stands still until the next, for pulse.max_pause at the longest, and never goes back. Locks nothing.';

create function leasehold.lease_expired(p_lease_end bigint, p_lease_now bigint)
    returns boolean
    language sql immutable parallel safe
    return p_lease_now > p_lease_end;

comment on function leasehold.lease_expired(bigint, bigint) is
    'The one lease predicate, on the lease clock: at its end the session still lives, strictly past it it is gone.';

create function leasehold.lease_instants(p_lease_end bigint)
    returns table (ended_at timestamptz)
    language sql stable
as $$
    -- What comes strictly after a place where the clock stood still is after that outage.
    select leasehold.instant(
               p_lease_end
               + coalesce(
                   (select o.paused_after from leasehold.outages o
                     where o.lease_at < p_lease_end
                     order by o.lease_at desc, o.outage_id desc limit 1),
                   (select o.paused_before from leasehold.outages o
                     order by o.lease_at, o.outage_id limit 1),
                   p.paused)
               -- The clock goes on after the longest outage, also where no beat has said so yet.
               + case when p_lease_end > greatest(p.floor, leasehold.micros(p.last_at) + p.reach - p.paused)
                           and clock_timestamp() > p.last_at + (p.reach + p.max_pause) * interval '1 microsecond'
                      then p.max_pause else 0 end)
      from leasehold.pulse p
     -- By its key: a scan that a caller switched off would weigh more than the rest of their plan.
     where p.only_row
$$;

comment on function leasehold.lease_instants(bigint) is
    'Internal. What lease_instant answers, as a table of one row: joined to many leases it is a part of their statement, and not a statement for each.';

create function leasehold.lease_instant(p_lease_end bigint)
    returns timestamptz
    language sql stable
as $$
    select i.ended_at from leasehold.lease_instants(p_lease_end) i
$$;

comment on function leasehold.lease_instant(bigint) is
    'When a lease that is over ended, on the database''s clock, however late that is asked.';

create function leasehold.beat(
    p_heartbeat_ms integer default 5000,
    p_longest_lease_ms integer default 300000,
    p_max_pause_ms bigint default 600000,
    p_instance bigint default null,
    p_since_ms bigint default null,
    p_now timestamptz default null,
    out paused_ms bigint,
    out was_outage boolean
)
    language plpgsql
as $$
declare
    v_pulse leasehold.pulse;
    v_now timestamptz;
    v_age bigint;
    v_jump bigint := 0;
    v_outage bigint;
    v_silent bigint;
    v_stood bigint;
    v_lease_now bigint;
    v_extra bigint := 0;
    v_before bigint;
begin
    select * into v_pulse from leasehold.pulse for update;
    v_before := v_pulse.paused;
    v_now := coalesce(p_now, clock_timestamp());
    v_age := leasehold.micros(v_now) - leasehold.micros(v_pulse.last_at);
    v_pulse.max_pause := p_max_pause_ms * 1000;
    was_outage := coalesce(v_age not between 0 and v_pulse.gap, false);

    if was_outage then
        v_stood := greatest(v_pulse.floor,
                            leasehold.micros(v_pulse.last_at) - v_pulse.paused
                            + case when v_age > 0 then v_pulse.reach else 0 end);
        -- Whoever beat a moment ago knows that the rest is the database's clock, which jumped. How
        -- long the last beat is ago knows only whose it was: of another it may be no time at all.
        if v_age < 0 or p_since_ms * 1000 < v_age then
            v_jump := v_age - case when p_instance = v_pulse.last_by
                                   then greatest(coalesce(p_since_ms * 1000, 0), 0) else 0 end;
        end if;
        v_outage := greatest(v_age - v_jump, 0);
        v_silent := case when v_outage > v_pulse.gap then v_outage - v_pulse.reach else 0 end;
        v_lease_now := greatest(v_stood,
                                leasehold.micros(v_pulse.last_at) - v_pulse.paused
                                + v_outage - least(v_silent, v_pulse.max_pause));
        -- Clients need a moment to find the service again: the clock stands still one heartbeat longer.
        if v_outage > v_pulse.gap and v_pulse.max_pause > 0 and v_stood >= v_pulse.spread_until then
            v_extra := p_heartbeat_ms * 1000::bigint;
            v_pulse.spread_until := v_lease_now + p_longest_lease_ms * 1000::bigint;
        end if;
        v_pulse.paused := leasehold.micros(v_now) - v_lease_now + v_extra;
        v_pulse.floor := v_lease_now;
        insert into leasehold.outages (began_at, ended_at, lease_at, paused_before, paused_after)
        values (v_pulse.last_at, v_now, v_stood, v_before, v_pulse.paused);
    else
        v_pulse.floor := greatest(v_pulse.floor, leasehold.micros(v_now) - v_pulse.paused);
    end if;

    update leasehold.pulse
       set last_at = v_now, last_by = p_instance, paused = v_pulse.paused, floor = v_pulse.floor,
           spread_until = v_pulse.spread_until, max_pause = v_pulse.max_pause;
    paused_ms := (v_pulse.paused - v_before) / 1000;
end
$$;

comment on function leasehold.beat(integer, integer, bigint, bigint, bigint, timestamptz) is
    'A sign that somebody serves, once a second from each instance. A beat that comes after a gap stops the lease clock for as long as the gap was (p_max_pause_ms at the longest, 0 for not at all) and one heartbeat longer, though not again within p_longest_lease_ms, and records the outage. p_instance is any number that is the caller''s own, and p_since_ms how long ago the caller''s own last beat was by a clock that cannot jump. Locks the pulse. Answers by how much the clock was stopped.';
