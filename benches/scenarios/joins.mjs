import { ROOMS, throughput } from "../lib/throughput.mjs";

export const about = "a storm of new members over 1,000 rooms, new rooms each round so that every round begins alike";

export function run(environment) {
  return throughput(environment, {
    figure: "joins",
    loadFor: (_file, round, connections) => ({ script: "join", args: [`storm-${connections}-${round}-`, ROOMS, 1] }),
    targets: { "express-memory": 2 },
  });
}
