import { ours } from "../lib/contenders.mjs";
import { largeDatabase, largeRooms } from "../lib/large.mjs";
import { membersOf, MemberFile, roomName } from "../lib/members.mjs";
import { ratioRow, valueRow } from "../lib/rows.mjs";
import { median, medianSample } from "../lib/stats.mjs";
import { age, NO_OWN_SWEEP, sweep } from "../lib/sweeping.mjs";
import { PER_ROOM } from "../lib/throughput.mjs";

export const about = "a sweep of 5,000 expired among 500,000 members, while the others beat";

const CONNECTIONS = 64;
/** Short, so that a sweep fills a good part of it and is not lost in the percentile. */
const SECONDS = 1;

export async function run(environment) {
  const rooms = largeRooms(environment);
  const expiring = environment.quick ? 500 : 5_000;
  const rounds = environment.rounds;
  const service = ours(environment, NO_OWN_SWEEP);
  const { cluster, database } = service;
  // The last rooms lose one member each round; nobody beats for them.
  const living = new MemberFile(membersOf({ rooms: rooms - expiring, perRoom: PER_ROOM }));
  const leaving = Array.from({ length: expiring }, (_, index) => rooms - expiring + index);
  const beat = (part, onFormatted) =>
    service.measure({ script: "heartbeat", args: [living.path, part], connections: CONNECTIONS, seconds: SECONDS, onFormatted });
  try {
    await service.copyFrom(await largeDatabase(environment));
    await service.serve();
    await beat(0);
    const [quiet, during, sweeps] = [[], [], []];
    for (let round = 0; round < rounds; round += 1) {
      const users = leaving.map((room) => `('${roomName(room)}','user-${room}-${round}')`).join(",");
      const aged = await age(cluster, database, `(m.room_id, m.user_id) in (values ${users})`);
      quiet.push(await beat(round / rounds));
      let sweeping;
      const busy = await beat((round + 0.5) / rounds, () => {
        sweeping ??= sweep(cluster, database);
        // Its failure is thrown where it is awaited, not while the load still runs.
        sweeping.catch(() => {});
      });
      const swept = await sweeping;
      if (aged !== expiring || swept.members !== expiring) throw new Error(`${aged} aged and ${swept.members} swept instead of ${expiring}`);
      during.push(busy);
      sweeps.push(swept.seconds);
    }
    await service.stop({ verify: true });
    const total = (rooms * PER_ROOM).toLocaleString("en-US");
    return [
      valueRow({ figure: `sweep of ${expiring.toLocaleString("en-US")} among ${total}, under load`, value: median(sweeps), unit: "s", below: 1 }),
      ratioRow({
        figure: "heartbeats' p99 during the sweep",
        ours: medianSample(during),
        oursName: service.name,
        baseline: medianSample(quiet),
        baselineName: "before it",
        field: "p99Ms",
        most: 2,
      }),
    ];
  } finally {
    await service.stop();
    living.remove();
  }
}
