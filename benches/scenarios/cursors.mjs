import { throughput } from "../lib/throughput.mjs";

export const about = "cursor updates of 10,000 members";

/** Two rounds are enough for figures without a target, and keep the whole under ten minutes. */
export function run(environment) {
  return throughput({ ...environment, rounds: Math.min(environment.rounds, 2) }, {
    figure: "cursor updates",
    loadFor: (file) => ({ script: "cursor", args: [file] }),
  });
}
