import { throughput } from "../lib/throughput.mjs";

export const about = "lists of 1,000 rooms of ten";

export function run(environment) {
  return throughput(environment, {
    figure: "lists of ten",
    loadFor: (file) => ({ script: "list", args: [file] }),
    targets: { "express-memory": 3 },
  });
}
