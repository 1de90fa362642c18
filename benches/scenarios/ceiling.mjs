import { ours } from "../lib/contenders.mjs";
import { joinInSql, membersOf, MemberFile } from "../lib/members.mjs";
import { ratioRow, valueRow } from "../lib/rows.mjs";
import { medianSample } from "../lib/stats.mjs";
import { CONNECTIONS, log, PER_ROOM, ROOMS } from "../lib/throughput.mjs";

export const about = "heartbeats and lists against what the same server answers without a database, and heartbeats by the thousand";

const BEATS_A_REQUEST = 1_000;
/** Each holds a thousand members for the time of its request; more of them would be the same members twice. */
const GATEWAYS = 4;

export async function run(environment) {
  const { rounds, seconds } = environment;
  const service = ours(environment);
  const file = new MemberFile(membersOf({ rooms: ROOMS, perRoom: PER_ROOM }));
  const loads = {
    nothing: { script: "health", args: [] },
    heartbeats: { script: "heartbeat", args: [file.path] },
    "lists of ten": { script: "list", args: [file.path] },
  };
  const rows = [];
  try {
    await service.migrate();
    await joinInSql(service.cluster, service.database, { rooms: ROOMS, perRoom: PER_ROOM });
    await service.serve();
    for (const connections of CONNECTIONS) {
      log(`  ${connections} connections`);
      const samples = Object.fromEntries(Object.keys(loads).map((name) => [name, []]));
      for (let round = 0; round < rounds; round += 1) {
        for (const [name, load] of Object.entries(loads)) samples[name].push(await service.measure({ ...load, connections, seconds }));
      }
      for (const [name, least] of [["heartbeats", 0.6], ["lists of ten", 0.4]]) {
        rows.push(ratioRow({
          figure: `${name} against the server's limit, ${connections} connections`,
          ours: medianSample(samples[name]), oursName: service.name,
          baseline: medianSample(samples.nothing), baselineName: "its /healthz", least,
        }));
      }
    }
    const batches = [];
    for (let round = 0; round < rounds; round += 1) {
      batches.push(await service.measure({ script: "beats", args: [file.path, BEATS_A_REQUEST], connections: GATEWAYS, seconds }));
    }
    const { perSecond, p99Ms } = medianSample(batches);
    rows.push(valueRow({
      figure: `heartbeats by ${BEATS_A_REQUEST.toLocaleString("en-US")} a request`,
      value: perSecond * BEATS_A_REQUEST, unit: "/s", note: `${GATEWAYS} connections, p99 ${p99Ms.toFixed(0)} ms`, least: 150_000,
    }));
    await service.stop({ verify: true });
    return rows;
  } finally {
    await service.stop();
    file.remove();
  }
}
