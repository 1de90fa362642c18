import { BareUpdate } from "../lib/bare-update.mjs";
import { throughput } from "../lib/throughput.mjs";

export const about = "heartbeats of 10,000 members, against every peer and the bare UPDATE";

export function run(environment) {
  return throughput(environment, {
    figure: "heartbeats",
    loadFor: (file) => ({ script: "heartbeat", args: [file] }),
    targets: { "express-memory": 5, "express-redis": 6, "coalescing-off": 5, "bare-update": 1 },
    extraContenders: [new BareUpdate(environment)],
  });
}
