-- What live readers ask beside the list itself: how those who are gone left.

create function leasehold.departures(
    p_room_ids text[],
    p_generations bigint[],
    p_user_ids text[],
    p_arrivals bigint[]
)
    returns table (ord integer, epoch bigint, version bigint, reason text)
    language sql stable
as $$
    -- A stay is over at its first end that leaves no session of the person; the end of a
    -- superseded one is followed at once by the join that replaced it.
    select distinct on (q.ord) q.ord::integer, e.epoch, e.version, e.reason
      from unnest(p_room_ids, p_generations, p_user_ids, p_arrivals)
           with ordinality as q (room_id, generation, user_id, arrival, ord)
     cross join lateral (
           select h.epoch, h.version, h.reason,
                  sum(case h.kind when 'joined' then 1 else -1 end) over (order by h.version) as sessions
             from leasehold.membership_events h
            where h.user_id = q.user_id and h.room_id = q.room_id
              and h.generation = q.generation and h.version >= q.arrival) e
     where e.sessions = 0 and e.reason <> 'superseded'
     order by q.ord, e.version
$$;

comment on function leasehold.departures(text[], bigint[], text[], bigint[]) is
    'Internal. How stays ended that began at these arrivals (members.arrival): the last session''s epoch and reason, and the version of its end. No row for a stay that goes on, or whose history is purged.';
