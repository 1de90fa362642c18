import { throughput } from "../lib/throughput.mjs";

export const about = "cursor updates of 10,000 members";

export function run(environment) {
  return throughput(environment, {
    figure: "cursor updates",
    loadFor: (file) => ({ script: "cursor", args: [file] }),
  });
}
