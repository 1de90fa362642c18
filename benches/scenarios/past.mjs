import { Service } from "../lib/contenders.mjs";
import { MemberFile } from "../lib/members.mjs";
import { fillPast, membersOfThePast } from "../lib/past.mjs";
import { ratioRow } from "../lib/rows.mjs";
import { alternate, log, ROOMS, stopEach } from "../lib/throughput.mjs";

export const about = "joins with 20,000,000 events of the past against none";

const CONNECTIONS = 64;

export async function run(environment) {
  const { rounds, quick } = environment;
  // Long enough for a checkpoint to be felt.
  const seconds = quick ? 1 : 10;
  const rooms = quick ? 10_000 : 1_000_000;
  // Of each room so many members come back that no run asks for somebody twice.
  const file = new MemberFile(membersOfThePast({ rooms, every: quick ? 1 : 10 }));
  const past = new Service(environment, "past", `${(rooms * 20).toLocaleString("en-US")} events of the past`);
  const none = new Service(environment, "none", "none");
  const contenders = [past, none];
  const loads = [
    ["joins into rooms of the past, by who was in them", (round) => ({ script: "rejoin", args: [file.path, round / rounds] })],
    ["joins into new rooms", (round) => ({ script: "join", args: [`new-${round}-`, ROOMS * 100, 1] })],
  ];
  try {
    for (const contender of contenders) {
      await contender.migrate();
      if (contender === past) await fillPast(past.cluster, past.database, rooms);
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
    return rows;
  } finally {
    await stopEach(contenders);
    file.remove();
  }
}
