-- Rooms spread over several databases, and how slots of them go from one to another.
--
-- A move is made of steps in two databases, each a transaction of its own, in this order:
--   1. the target marks the slots as arriving;
--   2. the source marks them as leaving: the fence, from which on nobody opens a room there;
--   3. the source waits for the transactions that may have looked before the fence;
--   4. the source ends what is left in the rooms, with the reason moved;
--   5. the target takes over the history and the floors;
--   6. the target owns the slots;
--   7. the source forgets that it did.
-- Wherever it stops, at most one of the two owns a slot, and each step can be taken again. Until
-- step 6 it can be called off: first the target forgets, then the source owns the slots again.
-- Both name the other in slots.peer, so that a move is neither gone on with nor called off
-- between other databases than those where it began.
--
-- The history of lifetimes that are over never changes, so most of it is taken over before
-- the fence. The source keeps its copy until its purge, for readers of its feed; the
-- target puts its copy into era 0, which is in no feed.

create function leasehold.own_slots(p_slots integer[])
    returns void
    language plpgsql
as $$
declare
    v_slot integer;
begin
    -- Nobody is opening a room now.
    lock table leasehold.rooms in exclusive mode;
    if not (select c.owns_all from leasehold.cell c) then
        raise exception 'this database was told already which slots it owns'
            using errcode = 'LH421', hint = 'Move slots between databases with leasehold cell move.';
    end if;
    update leasehold.cell set owns_all = false, fences = fences + 1;
    insert into leasehold.slots (slot, state) select distinct s, 'owned' from unnest(p_slots) as s;
    select leasehold.slot_of(k.room_id)
      into v_slot
      from (select r.room_id from leasehold.rooms r
            union all
            select c.room_id from leasehold.closed_generations c
            union all
            select f.room_id from leasehold.generation_floors f
            union all
            select b.room_id from leasehold.blocks b where b.room_id <> '') k
     where leasehold.is_misdirected(k.room_id)
     limit 1;
    if found then
        raise exception 'this database has, or had, rooms of slot %, which is not among those', v_slot
            using errcode = 'LH421', hint = 'Name all slots that have rooms here, and move them with leasehold cell move.';
    end if;
end
$$;

comment on function leasehold.own_slots(integer[]) is
    'Says once, of a database that is to be one of several, which slots it owns; none for an empty array. Errors: LH421 where it was said before, or there is a room of another slot; 55P03, 40P01. Waits for joins under way and holds up others to the end of the transaction.';

create function leasehold.slot_states(p_slots integer[])
    returns table (slot integer, state text, peer text)
    language sql stable
as $$
    select q.slot, case when c.owns_all then 'owned' else coalesce(s.state, 'absent') end, s.peer
      from leasehold.cell c
     cross join unnest(p_slots) as q (slot)
      left join leasehold.slots s on s.slot = q.slot
     order by q.slot
$$;

comment on function leasehold.slot_states(integer[]) is
    'Of each of these slots whether it is owned, leaving, arriving or absent here, and of one on its way which database it comes from or goes to. Locks nothing.';

create function leasehold.change_slots(p_slots integer[], p_from text, p_to text, p_peer text)
    returns void
    language plpgsql
as $$
declare
    v_odd record;
    v_slots integer[];
begin
    perform from leasehold.cell for update;
    -- A step that was taken already is no error; of a slot that is on its way only its own move is.
    select s.* into v_odd
      from leasehold.slot_states(p_slots) s
     where not (s.state = p_to and (s.peer = p_peer or s.peer is null and p_to in ('owned', 'absent')))
       and not (s.state = p_from and (s.peer is null or s.peer = p_peer))
     limit 1;
    if found then
        raise exception 'slot % is % here%', v_odd.slot, v_odd.state,
                coalesce(', in a move with the database ' || v_odd.peer, '')
            using errcode = 'LH421',
                  hint = format('This step takes it from %s to %s in a move with the database %s; leasehold cell show says what is where.', p_from, p_to, p_peer);
    end if;
    v_slots := array(select s.slot from leasehold.slot_states(p_slots) s where s.state <> p_to);
    if v_slots = '{}' then
        return;
    end if;
    if (select c.owns_all from leasehold.cell c) then
        insert into leasehold.slots (slot, state) select n, 'owned' from generate_series(0, 4095) as n;
        update leasehold.cell set owns_all = false;
    end if;
    if p_to = 'absent' then
        delete from leasehold.slots s where s.slot = any (v_slots);
    else
        insert into leasehold.slots as s (slot, state, peer)
        select distinct n, p_to, case when p_to <> 'owned' then p_peer end from unnest(v_slots) as n
            on conflict (slot) do update set state = excluded.state, peer = excluded.peer;
    end if;
    update leasehold.cell set fences = fences + 1;
end
$$;

comment on function leasehold.change_slots(integer[], text, text, text) is
    'Internal. One step of a move with the database p_peer: takes these slots from one state to another, where absent is none. Errors: LH421 where one of them is in neither, or in a move with another database.';

create function leasehold.room_writers(p_among text[] default null)
    returns text[]
    language sql volatile
as $$
    -- Whoever opens a room holds this lock to the end of the transaction, and took it before the look
    -- at the slots: who looked before a fence was committed holds it when this is asked afterwards.
    select coalesce(array_agg(distinct l.virtualtransaction), '{}')
      from pg_locks l
     where l.locktype = 'relation' and l.granted and l.mode = 'RowExclusiveLock'
       and l.relation = 'leasehold.rooms'::regclass
       and l.database = (select oid from pg_database where datname = current_database())
       and l.pid is distinct from pg_backend_pid()
       and (p_among is null or l.virtualtransaction = any (p_among))
$$;

comment on function leasehold.room_writers(text[]) is
    'Internal. The transactions under way that may have opened a room, or those of these that still are. Locks nothing, and keeps nobody from beginning.';

create function leasehold.end_moved(
    p_slots integer[],
    p_room_ids text[],
    p_now timestamptz default null,
    out room_ids text[]
)
    language plpgsql
as $$
declare
    v_now timestamptz;
    v_lease_now bigint;
    v_places tid[];
begin
    room_ids := leasehold.lock_rooms(array(
        select r from unnest(p_room_ids) as r where leasehold.slot_of(r) = any (p_slots)));
    if exists (select from leasehold.slot_states(p_slots) s where s.state <> 'leaving') then
        raise exception 'a slot is not leaving'
            using errcode = 'LH421', hint = 'Rooms are ended behind the fence; run the move again.';
    end if;
    select c.now, c.lease_now into v_now, v_lease_now from leasehold.clocks(p_now) c;
    perform leasehold.lock_sessions(array_agg(m.room_id), array_agg(m.user_id), array_agg(m.device_id))
       from leasehold.members m
      where m.room_id = any (room_ids);
    perform leasehold.prune_due(room_ids, v_now, v_lease_now);
    v_places := array(select m.ctid from leasehold.members m where m.room_id = any (room_ids));
    if v_places <> '{}' then
        perform leasehold.end_sessions(v_places, 'moved', v_now);
        perform leasehold.prune_locked(room_ids, v_now, v_lease_now);
    end if;
end
$$;

comment on function leasehold.end_moved(integer[], text[], timestamptz) is
    'Internal. Ends what is left in those of these rooms whose slots are leaving, and answers those that were there. Locks the rooms in order of id, then their sessions; waits for whoever holds one. Errors: LH421, 55P03, 40P01.';

create function leasehold.slot_rooms(p_slots integer[])
    returns table (slot integer, room_id text)
    language sql stable
as $$
    select k.slot, k.room_id
      from (select leasehold.slot_of(a.room_id) as slot, a.room_id
              from (select r.room_id from leasehold.rooms r
                    union
                    select c.room_id from leasehold.closed_generations c
                    union
                    select f.room_id from leasehold.epoch_floors f
                    union
                    select f.room_id from leasehold.generation_floors f) a) k
     where k.slot = any (p_slots)
$$;

comment on function leasehold.slot_rooms(integer[]) is
    'Internal. Every room of these slots of which something is known here, but for what is blocked in it. Reads all rooms and lifetimes; locks nothing.';

create function leasehold.changed_rooms(p_slots integer[], p_since_era integer, p_since_xact_id xid8)
    returns table (slot integer, room_id text)
    language sql stable
as $$
    select leasehold.slot_of(e.room_id), e.room_id
      from (select distinct h.room_id
              from leasehold.membership_events h
             where (h.era, h.xact_id, h.event_id) >= (p_since_era, p_since_xact_id, 0)) e
     where leasehold.slot_of(e.room_id) = any (p_slots)
$$;

comment on function leasehold.changed_rooms(integer[], integer, xid8) is
    'Internal. Those rooms of these slots in which something happened since the feed was settled up to there. Locks nothing.';

create function leasehold.closed_lifetimes(p_room_ids text[], out room_ids text[], out generations bigint[], out events bigint[])
    language sql stable
as $$
    select coalesce(array_agg(c.room_id order by c.room_id, c.generation), '{}'),
           coalesce(array_agg(c.generation order by c.room_id, c.generation), '{}'),
           coalesce(array_agg(c.closed_version order by c.room_id, c.generation), '{}')
      from leasehold.closed_generations c
     where c.room_id = any (p_room_ids)
$$;

comment on function leasehold.closed_lifetimes(text[]) is
    'Internal. The lifetimes of these rooms that are over, with how many events each had. Locks nothing.';

create function leasehold.lacking_lifetimes(p_room_ids text[], p_generations bigint[])
    returns boolean[]
    language sql stable
as $$
    select array(
        select not exists (select from leasehold.closed_generations c
                            where c.room_id = q.room_id and c.generation = q.generation)
               -- What was purged here does not come back.
               and not exists (select from leasehold.generation_floors f
                                where f.room_id = q.room_id and f.generation >= q.generation)
          from unnest(p_room_ids, p_generations) with ordinality as q (room_id, generation, ord)
         order by q.ord)
$$;

comment on function leasehold.lacking_lifetimes(text[], bigint[]) is
    'Internal. Of each of these lifetimes whether it was never here. Locks nothing.';

create function leasehold.export_lifetimes(
    p_room_ids text[],
    p_generations bigint[],
    out closed text,
    out events text,
    out purges text
)
    language sql stable
as $$
    with wanted as materialized (
        select c.*
          from unnest(p_room_ids, p_generations) as q (room_id, generation)
          join leasehold.closed_generations c on c.room_id = q.room_id and c.generation = q.generation
    )
    select (select array_agg(row(w.*)::leasehold.closed_generations)::text from wanted w),
           (select array_agg(e)::text from wanted w
              join leasehold.membership_events e on e.lifetime_id = w.lifetime_id),
           (select array_agg(p)::text from wanted w
              join leasehold.generation_purges p on p.room_id = w.room_id and p.generation = w.generation)
$$;

comment on function leasehold.export_lifetimes(text[], bigint[]) is
    'Internal. All that is known of these lifetimes, as import_lifetimes takes it. Locks nothing.';

create function leasehold.import_lifetimes(p_closed text, p_events text, p_purges text)
    returns bigint
    language plpgsql
as $$
declare
    v_events bigint;
begin
    with lifetime as materialized (
        select c.*, nextval(pg_get_serial_sequence('leasehold.rooms', 'lifetime_id')) as new_lifetime_id
          from unnest(p_closed::leasehold.closed_generations[]) c
    ), arrived as materialized (
        select e.*, l.new_lifetime_id,
               -- In the order in which a purge forgets it, what closed the room last.
               max(leasehold.micros(e.recorded_at)) over (
                   partition by e.lifetime_id order by e.version)::text::xid8 as new_xact_id
          from unnest(p_events::leasehold.membership_events[]) e
          join lifetime l on l.lifetime_id = e.lifetime_id
    ), closed as (
        insert into leasehold.closed_generations
               (room_id, generation, lifetime_id, opened_at, closed_at, close_reason, closed_version, peak_members, era, last_xact_id)
        select l.room_id, l.generation, l.new_lifetime_id, l.opened_at, l.closed_at, l.close_reason, l.closed_version,
               l.peak_members, 0, a.new_xact_id
          from lifetime l
          join arrived a on a.lifetime_id = l.lifetime_id and a.version = l.closed_version
    )
    insert into leasehold.membership_events
           (xact_id, lifetime_id, room_id, generation, version, user_id, device_id, epoch, kind, reason, occurred_at,
            recorded_at, last_seen_at, member_count, era, join_id, info, ended_by, note)
    select a.new_xact_id, a.new_lifetime_id, a.room_id, a.generation, a.version, a.user_id, a.device_id, a.epoch, a.kind,
           a.reason, a.occurred_at, a.recorded_at, a.last_seen_at, a.member_count, 0, a.join_id, a.info, a.ended_by, a.note
      from arrived a
     order by a.room_id, a.generation, a.version;
    get diagnostics v_events = row_count;
    insert into leasehold.generation_purges
    select * from unnest(p_purges::leasehold.generation_purges[]);
    return v_events;
end
$$;

comment on function leasehold.import_lifetimes(text, text, text) is
    'Internal. Takes over what export_lifetimes answered, of lifetimes that were never here; answers how many events it was. Errors: 23505 where a person has the same epoch in a room here, as then two databases had it.';

create function leasehold.export_floors(
    p_slots integer[],
    p_room_ids text[],
    out epochs text,
    out generations text,
    out blocks text,
    out erased text,
    out erasure_keys text
)
    language sql stable
as $$
    select (select array_agg(f)::text from leasehold.epoch_floors f where f.room_id = any (p_room_ids)),
           (select array_agg(f)::text from leasehold.generation_floors f where f.room_id = any (p_room_ids)),
           (select array_agg(b)::text from leasehold.blocks b
             where b.room_id <> '' and leasehold.slot_of(b.room_id) = any (p_slots)),
           -- Of whom they are, and of which room, shows to nobody: so all of them.
           (select array_agg(f)::text from leasehold.erased_floors f),
           (select array_agg(k)::text from leasehold.erasure_keys k)
$$;

comment on function leasehold.export_floors(integer[], text[]) is
    'Internal. What keeps epochs and generations of these rooms from going back, and who is blocked in the slots, as import_floors takes it. Locks nothing.';

create function leasehold.import_floors(
    p_slots integer[],
    p_epochs text,
    p_generations text,
    p_blocks text,
    p_erased text,
    p_erasure_keys text
)
    returns void
    language plpgsql
as $$
begin
    insert into leasehold.epoch_floors as f
    select * from unnest(p_epochs::leasehold.epoch_floors[])
        on conflict (room_id, user_id) do update set epoch = greatest(f.epoch, excluded.epoch);
    insert into leasehold.generation_floors as f
    select * from unnest(p_generations::leasehold.generation_floors[])
        on conflict (room_id) do update set generation = greatest(f.generation, excluded.generation);
    insert into leasehold.erasure_keys (key, is_ours)
    select k.key, false from unnest(p_erasure_keys::leasehold.erasure_keys[]) k
        on conflict (key) do nothing;
    insert into leasehold.erased_floors as f
    select * from unnest(p_erased::leasehold.erased_floors[])
        on conflict (person) do update set epoch = greatest(f.epoch, excluded.epoch);
    -- Left from an earlier time here, perhaps lifted since.
    delete from leasehold.blocks b where b.room_id <> '' and leasehold.slot_of(b.room_id) = any (p_slots);
    insert into leasehold.blocks select * from unnest(p_blocks::leasehold.blocks[]);
end
$$;

comment on function leasehold.import_floors(integer[], text, text, text, text, text) is
    'Internal. Takes over what export_floors answered; floors only rise. Can be done again.';
