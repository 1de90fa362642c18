// Rates of one kind of request, each contender measured in turn within every round.
import { checkContract, coalescingOff, expressMemory, expressRedis, ours, Service } from "./contenders.mjs";
import { joinInSql, joinOverHttp, membersOf, MemberFile } from "./members.mjs";
import { ratioRow } from "./rows.mjs";
import { medianSample } from "./stats.mjs";

export const CONNECTIONS = [64, 256];
export const ROOMS = 1_000;
export const PER_ROOM = 10;

export function log(text) {
  process.stderr.write(`${text}\n`);
}

/** Which contender goes first moves on by one each round, so that none always follows the same. */
const rotated = (items, by) => items.map((_, index) => items[(index + by) % items.length]);

/** Calls `measure(contender, round)` for every contender in every round and returns the median sample of each. */
export async function alternate(contenders, rounds, measure) {
  const samples = new Map(contenders.map((contender) => [contender, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of rotated(contenders, round)) samples.get(contender).push(await measure(contender, round));
  }
  return new Map([...samples].map(([contender, list]) => [contender, medianSample(list)]));
}

export async function stopEach(contenders, options) {
  for (const contender of contenders) await contender.stop(options);
}

/**
 * Measures one kind of request against every peer at each number of connections.
 * `loadFor(file, round, connections)` gives wrk's script and its arguments; `targets` has the least ratio by the peer's id.
 */
export async function throughput(environment, { figure, loadFor, targets = {}, extraContenders = [] }) {
  const { rounds, seconds, baselinesOnly } = environment;
  const service = baselinesOnly ? [] : [ours(environment), coalescingOff(environment)];
  const contenders = [...service, expressMemory(), expressRedis(), ...extraContenders];
  const members = [...membersOf({ rooms: ROOMS, perRoom: PER_ROOM })];
  const file = new MemberFile(members);
  const medians = new Map();
  try {
    for (const contender of contenders) {
      if (contender instanceof Service) {
        await contender.migrate();
        await joinInSql(contender.cluster, contender.database, { rooms: ROOMS, perRoom: PER_ROOM });
        await contender.serve();
      } else {
        await contender.start();
        if (contender.baseUrl === undefined) continue;
        await joinOverHttp(contender.baseUrl, members);
      }
      await checkContract(contender, members[0], PER_ROOM);
      await contender.measure({ ...loadFor(file.path, "warm", CONNECTIONS[0]), connections: CONNECTIONS[0], seconds: 1 });
    }
    for (const connections of CONNECTIONS) {
      log(`  ${figure}, ${connections} connections`);
      const measured = await alternate(contenders, rounds, (contender, round) =>
        contender.measure({ ...loadFor(file.path, round, connections), connections, seconds }),
      );
      medians.set(connections, measured);
    }
    await stopEach(service, { verify: true });
  } finally {
    await stopEach(contenders);
    file.remove();
  }
  return CONNECTIONS.flatMap((connections) => {
    const measured = medians.get(connections);
    const [first, ...others] = contenders;
    return others.map((other) =>
      ratioRow({
        figure: `${figure}, ${connections} connections`,
        ours: measured.get(first),
        oursName: first.name,
        baseline: measured.get(other),
        baselineName: other.name,
        least: baselinesOnly ? undefined : targets[other.id],
      }),
    );
  });
}
