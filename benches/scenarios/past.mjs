import { Service } from "../lib/contenders.mjs";
import { joinInSql, MemberFile, membersOf } from "../lib/members.mjs";
import { fillPast, membersOfThePast, olderHalf } from "../lib/past.mjs";
import { ratioRow, valueRow } from "../lib/rows.mjs";
import { medianSample } from "../lib/stats.mjs";
import { alternate, log, PER_ROOM, ROOMS, stopEach } from "../lib/throughput.mjs";

export const about = "joins with 20,000,000 events of the past against none, and heartbeats while half of them are purged";

const CONNECTIONS = 64;

export async function run(environment) {
  const { rounds, quick } = environment;
  // Long enough for a checkpoint to be felt.
  const seconds = quick ? 1 : 10;
  const rooms = quick ? 10_000 : 1_000_000;
  // Of each room so many members come back that no run asks for somebody twice.
  const returning = new MemberFile(membersOfThePast({ rooms, every: quick ? 1 : 10 }));
  const past = new Service(environment, "past", `${(rooms * 20).toLocaleString("en-US")} events of the past`);
  const none = new Service(environment, "none", "none");
  const contenders = [past, none];
  const loads = [
    ["joins into rooms of the past, by who was in them", (round) => ({ script: "rejoin", args: [returning.path, round / rounds] })],
    ["joins into new rooms", (round) => ({ script: "join", args: [`new-${round}-`, ROOMS * 100, 1] })],
  ];
  try {
    for (const contender of contenders) {
      await contender.migrate();
      if (contender === past) {
        await fillPast(past.cluster, past.database, rooms);
        await joinInSql(past.cluster, past.database, { rooms: ROOMS, perRoom: PER_ROOM });
      }
      await contender.serve();
      await contender.measure({ script: "join", args: ["warm-", ROOMS, 1], connections: CONNECTIONS, seconds: 2 });
    }
    const rows = [];
    for (const [figure, loadFor] of loads) {
      log(`  ${figure}`);
      const measured = await alternate(contenders, rounds, (contender, round) =>
        contender.measure({ ...loadFor(round), connections: CONNECTIONS, seconds }),
      );
      rows.push(ratioRow({ figure, ours: measured.get(past), oursName: past.name, baseline: measured.get(none), baselineName: none.name, least: 0.85 }));
    }
    return [...rows, ...(await purge(past, { rooms, rounds, seconds }))];
  } finally {
    await stopEach(contenders);
    returning.remove();
  }
}

/** Forgets the older half of the past while others beat, from the first event to the last. */
async function purge(service, { rooms, rounds, seconds }) {
  log("  a purge, and heartbeats meanwhile");
  const living = new MemberFile(membersOf({ rooms: ROOMS, perRoom: PER_ROOM }));
  const beat = () => service.measure({ script: "heartbeat", args: [living.path], connections: CONNECTIONS, seconds });
  try {
    const before = [];
    for (let round = 0; round < rounds; round += 1) before.push(await beat());
    const began = performance.now();
    let tookSeconds;
    const purging = service.command("purge", "--older-than", olderHalf(rooms)).then(({ stdout }) => {
      tookSeconds = (performance.now() - began) / 1_000;
      return Number(/with (\d+) events purged/.exec(stdout)[1]);
    });
    // Its failure is thrown where it is awaited, not while the load still runs.
    purging.catch(() => {});
    const during = [];
    do during.push(await beat());
    while (tookSeconds === undefined);
    const events = await purging;
    // The last of them outlasted the purge.
    if (during.length > 1) during.pop();
    return [
      valueRow({
        figure: `purge of ${events.toLocaleString("en-US")} events, under load`,
        value: events / tookSeconds, unit: "/s", note: `in ${tookSeconds.toFixed(0)} s`, least: 50_000,
      }),
      ratioRow({
        figure: "heartbeats' p99 during the purge",
        ours: medianSample(during),
        oursName: service.name,
        baseline: medianSample(before),
        baselineName: "before it",
        field: "p99Ms",
        most: 2,
      }),
    ];
  } finally {
    living.remove();
  }
}
