// Every process that the benchmark starts is registered here, so that none outlives it.
import { spawn } from "node:child_process";

const running = new Set();

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a process that lives until `stop`; its last lines of output are kept to explain a failure. */
export function start(command, args, { stopSignal = "SIGTERM", ...options } = {}) {
  const process_ = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const child = { name: command.split("/").pop(), process: process_, pid: process_.pid, output: "", stopSignal };
  const keep = (chunk) => {
    child.output = (child.output + chunk).slice(-4_000);
  };
  process_.stdout?.on("data", keep);
  process_.stderr?.on("data", keep);
  child.ended = new Promise((resolve) => {
    process_.once("error", (error) => {
      keep(String(error));
      resolve();
    });
    process_.once("exit", resolve);
  }).then(() => {
    child.hasEnded = true;
    running.delete(child);
  });
  running.add(child);
  return child;
}

/** Asks politely, then after ten seconds no longer. */
export async function stop(child) {
  if (child.hasEnded) return;
  child.process.kill(child.stopSignal);
  const force = setTimeout(() => child.process.kill("SIGKILL"), 10_000);
  await child.ended;
  clearTimeout(force);
}

/** The latest started first: a service before the database that it uses. */
export async function stopAll() {
  for (const child of [...running].reverse()) await stop(child);
}

/** Runs a command to its end and returns what it printed; anything but success is an error. */
export async function run(command, args, { input, onStderr, ...options } = {}) {
  const child = start(command, args, { ...options, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.process.stdout.on("data", (chunk) => (stdout += chunk));
  child.process.stderr.on("data", (chunk) => {
    stderr += chunk;
    onStderr?.(stderr);
  });
  if (input !== undefined) child.process.stdin.end(input);
  const code = await new Promise((resolve, reject) => {
    child.process.once("error", reject);
    child.process.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}\n${stdout.slice(-2_000)}${stderr.slice(-2_000)}`);
  return { stdout, stderr };
}

/** Polls until `probe` stops throwing, or fails with its last error and what the child said. */
export async function untilReady(child, probe, timeoutMs = 20_000) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (child.hasEnded || Date.now() > deadline) {
        throw new Error(`${child.name} did not become ready: ${error.message}\n${child.output}`);
      }
      await sleep(25);
    }
  }
}

export { sleep };
