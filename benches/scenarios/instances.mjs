import { ours, Service } from "../lib/contenders.mjs";
import { joinInSql, membersOf, MemberFile } from "../lib/members.mjs";
import { ratioRow } from "../lib/rows.mjs";
import { log, PER_ROOM, ROOMS } from "../lib/throughput.mjs";
import { medianSample } from "../lib/stats.mjs";

export const about = "four instances on the same cores against one, asked by as many clients";

const INSTANCES = 4;
const CONNECTIONS = 64;

/** All at once, each instance by its share of the clients; rates add up, and the slowest instance's p99 is that of all. */
async function together(instances, round, seconds, loadFor) {
  const share = CONNECTIONS / instances.length;
  const samples = await Promise.all(
    instances.map((instance, n) => instance.measure({ ...loadFor(round, n, instances.length), connections: share, seconds })),
  );
  const sum = (field) => samples.reduce((total, sample) => total + sample[field], 0);
  const requests = sum("requests");
  const weighted = (field) => samples.reduce((total, sample) => total + sample[field] * sample.requests, 0) / requests;
  return {
    requests,
    perSecond: sum("perSecond"),
    p50Ms: weighted("p50Ms"),
    p99Ms: Math.max(...samples.map((sample) => sample.p99Ms)),
    maxMs: Math.max(...samples.map((sample) => sample.maxMs)),
    serviceCpuUs: weighted("serviceCpuUs"),
    // Each sample saw the whole database at work.
    databaseCpuUs: samples.reduce((total, sample) => total + sample.databaseCpuUs * sample.requests, 0) / samples.length / requests,
  };
}

export async function run(environment) {
  const { rounds, seconds } = environment;
  const first = ours(environment);
  const instances = [first];
  const files = [];
  const stopOthers = async () => {
    for (const instance of instances.slice(1)) await instance.stopServing();
  };
  try {
    await first.migrate();
    await joinInSql(first.cluster, first.database, { rooms: ROOMS, perRoom: PER_ROOM });
    // Nobody is asked for by two instances at a time.
    for (let n = 0; n < INSTANCES; n += 1) {
      const rooms = ROOMS / INSTANCES;
      files.push(new MemberFile(membersOf({ rooms, perRoom: PER_ROOM, firstRoom: n * rooms })));
    }
    const all = new MemberFile(membersOf({ rooms: ROOMS, perRoom: PER_ROOM }));
    files.push(all);
    for (let n = 1; n < INSTANCES; n += 1) instances.push(Object.assign(new Service(environment, `instance-${n}`, "another"), { database: first.database }));
    for (const instance of instances) await instance.serve();
    const loads = [
      ["heartbeats", 0.9, (_round, n, of) => ({ script: "heartbeat", args: [of === 1 ? all.path : files[n].path] })],
      ["joins", 0.85, (round, n, of) => ({ script: "join", args: [`of-${of}-${round}-${n}-`, ROOMS / of, 1] })],
    ];
    const rows = [];
    for (const [name, least, loadFor] of loads) {
      log(`  ${name}`);
      const [one, four] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        one.push(await together([first], round, seconds, loadFor));
        four.push(await together(instances, round, seconds, loadFor));
      }
      const compared = {
        ours: medianSample(four), oursName: `${INSTANCES} instances`,
        baseline: medianSample(one), baselineName: "one instance",
      };
      rows.push(ratioRow({ figure: `${name} of ${INSTANCES} instances`, ...compared, least }));
      rows.push(ratioRow({ figure: `${name} of ${INSTANCES} instances, p99`, ...compared, field: "p99Ms", most: 2 }));
    }
    await stopOthers();
    await first.stop({ verify: true });
    return rows;
  } finally {
    await stopOthers();
    await first.stop();
    for (const file of files) file.remove();
  }
}
