// The members that a load speaks for: who they are, the file that wrk reads, and the ways to make them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, forEachAtOnce } from "./http.mjs";
import { remove, temporaryDirectory } from "./temporary.mjs";

/** Longer than any scenario takes, so that no lease ends while it is measured. */
const HTTP_LEASE_MS = 300_000;
const SQL_LEASE_MS = 3_600_000;
/** A multiple of the rooms' sizes, so that each call opens whole rooms. */
const JOINS_PER_CALL = 2_000;

export const roomName = (room) => `room-${room}`;

/** Numbers in an order that is the same in every run but has nothing to do with rooms. */
export function shuffled(items) {
  const result = [...items];
  let state = 20_240_229;
  for (let i = result.length - 1; i > 0; i -= 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

/** Members in rooms of equal size, all with the epoch of a first join. */
export function* membersOf({ rooms, perRoom, firstRoom = 0 }) {
  for (let room = firstRoom; room < firstRoom + rooms; room += 1) {
    for (let user = 0; user < perRoom; user += 1) yield { room: roomName(room), user: `user-${room}-${user}`, epoch: 1 };
  }
}

export async function joinOverHttp(baseUrl, members) {
  await forEachAtOnce(members, async (member) => {
    const joined = await expect(200, baseUrl, "POST", `/rooms/${member.room}/join`, { userId: member.user, leaseMs: HTTP_LEASE_MS });
    if (joined.epoch !== member.epoch) throw new Error(`${member.user} got epoch ${joined.epoch} instead of ${member.epoch}`);
  });
}

/** Joins the same members through the public SQL function, thousands a call and one commit each. */
export async function joinInSql(cluster, database, { rooms, perRoom, firstRoom = 0, prefix = "room-" }) {
  const members = rooms * perRoom;
  const joined = await cluster.sql(
    database,
    `set synchronous_commit = off;
    create temporary table joined (members bigint);
    do $$
    begin
      for v_start in 0 .. ${members - 1} by ${JOINS_PER_CALL} loop
        insert into joined
        select count(*)
          from (select array_agg('${prefix}' || room order by n) as rooms,
                       array_agg('user-' || room || '-' || n % ${perRoom} order by n) as users
                  from (select n, ${firstRoom} + n / ${perRoom} as room
                          from generate_series(v_start, least(v_start + ${JOINS_PER_CALL}, ${members}) - 1) n) numbered) a
         cross join lateral leasehold.join_members(
                 a.rooms, a.users,
                 array_fill(''::text, array[cardinality(a.rooms)]),
                 array_fill(${SQL_LEASE_MS}, array[cardinality(a.rooms)])) j
         cross join lateral unnest(j.outcomes, j.epochs) as o (outcome, epoch)
         where o.outcome = 'joined' and o.epoch = 1;
        commit;
        -- Plans made for empty tables would scan the full ones.
        if v_start = 0 then
          analyze leasehold.rooms, leasehold.members, leasehold.membership_events, leasehold.closed_generations;
          commit;
        end if;
      end loop;
    end $$;
    select sum(members) from joined;`,
  );
  if (Number(joined) !== members) throw new Error(`${joined} of ${members} members joined`);
  // What autovacuum would have done for a service that has been running for a while.
  await cluster.sql(database, "vacuum analyze");
  await cluster.sql(database, "checkpoint");
}

/** Writes members to a file for wrk, in shuffled order. */
export class MemberFile {
  #directory = temporaryDirectory("members");

  constructor(members) {
    this.path = join(this.#directory, "members");
    const lines = shuffled([...members]).map(({ room, user, epoch }) => `${room}\t${user}\t${epoch}`);
    writeFileSync(this.path, `${lines.join("\n")}\n`);
  }

  remove() {
    remove(this.#directory);
  }
}
