import { ours } from "../lib/contenders.mjs";
import { joinInSql } from "../lib/members.mjs";
import { ratioRow, valueRow } from "../lib/rows.mjs";
import { alternate } from "../lib/throughput.mjs";

export const about = "joins into one room at a time while it grows past 5,000, against past 100";

const CONNECTIONS = 64;
const SECONDS = 1;
// Rooms begin below the size in question and end as far above it; the last one takes whatever is left of the second.
const SIZES = [
  { id: "big", name: "around the 5,000th", filled: 4_000, joins: 2_000, rooms: 12 },
  { id: "small", name: "around the 100th", filled: 50, joins: 100, rooms: 400 },
];

export async function run(environment) {
  const rounds = environment.quick ? 1 : environment.rounds;
  const service = ours(environment);
  try {
    await service.migrate();
    const prefixOf = (size, round) => `${size.id}-${round}-`;
    for (const size of SIZES) {
      for (let round = 0; round < rounds; round += 1) {
        await joinInSql(service.cluster, service.database, { rooms: size.rooms, perRoom: size.filled, prefix: prefixOf(size, round) });
      }
    }
    await service.serve();
    await service.measure({ script: "join", args: ["warm-", 1_000, 1], connections: CONNECTIONS, seconds: 1 });
    const measured = await alternate(SIZES, rounds, (size, round) =>
      service.measure({ script: "join", args: [prefixOf(size, round), size.rooms, size.joins], connections: CONNECTIONS, seconds: SECONDS }),
    );
    await service.stop({ verify: true });
    const [big, small] = SIZES;
    return [
      ratioRow({
        figure: `joins into one room, ${big.name}`,
        ours: measured.get(big),
        oursName: "Leasehold",
        baseline: measured.get(small),
        baselineName: small.name,
        least: 0.7,
      }),
      valueRow({ figure: `joins into one room, ${big.name}`, value: measured.get(big).perSecond, unit: "/s", least: 3_000 }),
    ];
  } finally {
    await service.stop();
  }
}
