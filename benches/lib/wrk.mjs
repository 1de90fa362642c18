// The load generator. One thread, so that on two cores it never takes more than one from what it measures.
import { fileURLToPath } from "node:url";
import { run } from "./children.mjs";

const LOAD_DIRECTORY = fileURLToPath(new URL("../load", import.meta.url));

/** Sends one kind of request for some seconds over so many connections; any answer that is not a success is an error. */
export async function load(baseUrl, { script, args, connections, seconds, onFormatted }) {
  const { stdout } = await run(
    "wrk",
    [
      "-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "10s",
      "-s", `${LOAD_DIRECTORY}/${script}.lua`, baseUrl, "--", ...args.map(String),
    ],
    { env: { ...process.env, BENCH_LOAD_DIRECTORY: LOAD_DIRECTORY }, onStderr: (text) => text.includes("FORMATTED") && onFormatted?.() },
  );
  const line = stdout.split("\n").find((text) => text.startsWith("RESULT "));
  if (line === undefined) throw new Error(`wrk printed no result:\n${stdout}`);
  const result = JSON.parse(line.slice("RESULT ".length));
  const failed = Object.entries(result.errors).filter(([, count]) => count > 0);
  if (failed.length > 0) {
    const counts = failed.map(([kind, count]) => `${kind} ${count}`).join(", ");
    throw new Error(`${script} against ${baseUrl} with ${connections} connections: errors in ${result.requests} requests: ${counts}`);
  }
  if (result.requests === 0) throw new Error(`${script} against ${baseUrl}: no request was answered`);
  return {
    requests: result.requests,
    perSecond: (result.requests * 1_000_000) / result.durationUs,
    p50Ms: result.p50Us / 1_000,
    p99Ms: result.p99Us / 1_000,
    maxMs: result.maxUs / 1_000,
  };
}
