import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, sleep } from "./children.mjs";
import { remove, temporaryDirectory } from "./temporary.mjs";

/** pgbench's clock runs while its clients connect, though its rate leaves that out. */
const connectingSeconds = (clients) => Math.max(1, clients / 100);

function number(output, pattern) {
  const match = output.match(pattern);
  if (match === null) throw new Error(`pgbench printed nothing like ${pattern}:\n${output}`);
  return Number(match[1]);
}

/** CPU seconds that the cluster uses in a second, sampled from when the clients have connected until shortly before the end. */
async function cpuPerSecond(cluster, clients, seconds) {
  await sleep(connectingSeconds(clients) * 1_000);
  const [began, before] = [performance.now(), cluster.cpu()];
  await sleep(seconds * 1_000 - 200);
  return ((cluster.cpu() - before) * 1_000) / (performance.now() - began);
}

/** Runs a script of one transaction with prepared statements; commits are asynchronous, as the service's heartbeats are. */
export async function pgbench(cluster, { database, script, clients, seconds, transactions }) {
  const directory = temporaryDirectory("pgbench");
  try {
    const file = join(directory, "script.sql");
    writeFileSync(file, script);
    const timed = transactions === undefined;
    const length = timed ? ["-T", String(Math.ceil(seconds + connectingSeconds(clients)))] : ["-t", String(Math.ceil(transactions / clients))];
    const running = run(
      join(cluster.bin, "pgbench"),
      ["-n", "-M", "prepared", "-c", String(clients), "-j", "2", ...length, "-f", file, ...cluster.connectionArguments(database)],
      { env: { ...process.env, PGOPTIONS: "-c synchronous_commit=off" } },
    );
    const [{ stdout }, cpuUsPerSecond] = await Promise.all([running, timed ? cpuPerSecond(cluster, clients, seconds) : null]);
    if (/number of failed transactions: [1-9]/.test(stdout)) throw new Error(`pgbench had failed transactions:\n${stdout}`);
    const perSecond = number(stdout, /tps = ([\d.]+)/);
    return { perSecond, databaseCpuUs: timed ? cpuUsPerSecond / perSecond : null };
  } finally {
    remove(directory);
  }
}
