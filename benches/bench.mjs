// Runs scenarios one after another and prints one table. `benches/run` prepares what this needs.
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { run, stopAll } from "./lib/children.mjs";
import { Cluster } from "./lib/postgres.mjs";
import { LEGEND, table, writeJson } from "./lib/report.mjs";
import { removeAll } from "./lib/temporary.mjs";
import { log } from "./lib/throughput.mjs";

const SCENARIOS = [
  "heartbeats", "cursors", "lists", "joins", "ceiling", "many-members", "one-room",
  "one-connection", "hot-updates", "sweep", "mass-expiry", "idle", "live",
];
/** Take too long for a run of everything. */
const LARGE_SCENARIOS = ["instances", "sweep-rooms", "past"];
const BASELINE_SCENARIOS = ["heartbeats", "cursors", "lists", "joins"];

const USAGE = `usage: benches/run [scenario …] [--scale] [--quick] [--json FILE] [--binary FILE] [--rounds N] [--seconds N] [--baselines-only]

scenarios: ${SCENARIOS.join(", ")} (all unless named);
           ${LARGE_SCENARIOS.join(", ")} (with --scale, or where named)
  --scale           those that a run of everything has no time for
  --quick           one short round and fewer members, to see that it runs; its figures mean little
  --json FILE       where the figures are written (benches/results.json)
  --binary FILE     a built leasehold; without it the release build of this repository
  --rounds N        alternating rounds of which the median counts (3)
  --seconds N       length of one measurement (2)
  --baselines-only  measure the peers without the service`;

function parse() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scale: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      json: { type: "string", default: "benches/results.json" },
      binary: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      "baselines-only": { type: "boolean", default: false },
      "check-arguments": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const baselinesOnly = values["baselines-only"];
  const known = baselinesOnly ? BASELINE_SCENARIOS : [...SCENARIOS, ...LARGE_SCENARIOS];
  const unknown = positionals.find((name) => !known.includes(name));
  if (values.help || unknown !== undefined) {
    console.log(unknown === undefined ? USAGE : `no scenario ${unknown} here\n\n${USAGE}`);
    process.exit(values.help ? 0 : 2);
  }
  const positive = (text, fallback) => {
    const value = Number(text ?? fallback);
    if (!Number.isInteger(value) || value < 1) throw new Error(`${text} is not a positive whole number`);
    return value;
  };
  return {
    names: positionals.length > 0 ? positionals : baselinesOnly ? BASELINE_SCENARIOS : values.scale ? LARGE_SCENARIOS : SCENARIOS,
    json: values.json,
    binary: values.binary,
    quick: values.quick,
    baselinesOnly,
    checkOnly: values["check-arguments"],
    rounds: positive(values.rounds, values.quick ? 1 : 3),
    seconds: positive(values.seconds, values.quick ? 1 : 2),
  };
}

async function describe(options, cluster) {
  const version = async (command, args) => (await run("sh", ["-c", `${command} ${args} 2>&1 | head -n 1`])).stdout.trim();
  return {
    startedAt: new Date().toISOString(),
    cpus: `${cpus().length} × ${cpus()[0].model}`,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    postgres: cluster.version,
    postgresSettings: cluster.settings,
    dataOnMemory: cluster.isOnTmpfs,
    node: process.version,
    redis: await version("redis-server", "--version"),
    wrk: await version("wrk", "-v"),
    rounds: options.rounds,
    seconds: options.seconds,
    quick: options.quick,
  };
}

let ending;

/** Ends every child whatever happened, once. */
function end() {
  ending ??= (async () => {
    await stopAll();
    removeAll();
  })();
  return ending;
}

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => end().then(() => process.exit(signal === "SIGINT" ? 130 : 143)));
}

async function main() {
  const options = parse();
  if (options.checkOnly) return;
  const cluster = await Cluster.start();
  const environment = { ...options, cluster };
  const description = await describe(options, cluster);
  log(`${description.cpus}, PostgreSQL ${description.postgres}, ${options.rounds} rounds of ${options.seconds} s`);
  if (cluster.isOnTmpfs) log("warning: the temporary directory is in memory, so fsync costs nothing; set TMPDIR to a disk");
  const rows = [];
  const began = Date.now();
  for (const name of options.names) {
    const scenario = await import(`./scenarios/${name}.mjs`);
    const scenarioBegan = Date.now();
    log(`${name}: ${scenario.about}`);
    rows.push(...(await scenario.run(environment)).map((row) => ({ scenario: name, ...row })));
    log(`  took ${((Date.now() - scenarioBegan) / 1_000).toFixed(0)} s`);
  }
  description.tookSeconds = Math.round((Date.now() - began) / 1_000);
  console.log(`\n${table(rows)}\n\n${LEGEND}`);
  writeJson(options.json, description, rows);
  log(`\n${description.tookSeconds} s; figures in ${options.json}`);
}

try {
  await main();
  await end();
} catch (error) {
  // What a signal interrupted is not a failure of its own.
  if (ending === undefined) {
    console.error(`\nbench failed: ${error.stack}`);
    process.exitCode = 1;
  }
  await end();
}
