import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

// As browsers are at home: hidden pages' timers are delayed and pages that one leaves are kept, both of
// which drivers of browsers switch off. No more than what keeps it quiet and lets root start it.
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--no-default-browser-check",
  "--password-store=basic",
  "--remote-debugging-port=0",
];


/** A Chromium of one's own, with a fresh profile. */
export class Chromium {
  static async start(flags = []) {
    const browser = new Chromium();
    browser.profile = await mkdtemp(join(tmpdir(), "leasehold-chromium-"));
    const args = [...FLAGS, ...flags, `--user-data-dir=${browser.profile}`, "about:blank"];
    browser.process = spawn(process.env.CHROMIUM_BIN, args, { stdio: ["ignore", "ignore", "pipe"] });
    browser.ended = new Promise((resolve) => browser.process.once("exit", resolve));
    process.once("exit", () => browser.process.kill("SIGKILL"));
    browser.playwright = await chromium.connectOverCDP(await browser.#address(), { noDefaults: true });
    return browser;
  }

  async #address() {
    for await (const line of createInterface(this.process.stderr)) {
      const [, address] = line.match(/DevTools listening on (ws:\S+)/) ?? [];
      if (!address) continue;
      this.process.stderr.resume();
      return address;
    }
    throw new Error(`${process.env.CHROMIUM_BIN} ended before it listened`);
  }

  /** The context in which the tabs of one profile are, as they are at home. */
  get tabs() {
    return this.playwright.contexts()[0];
  }

  /** Somebody else's browser: nothing is shared with other contexts, not even a process. */
  newContext(options) {
    return this.playwright.newContext(options);
  }

  /** Stops every process of it, as a machine that sleeps does. */
  async sleep() {
    for (const pid of await family(this.process.pid)) process.kill(pid, "SIGSTOP");
  }

  async wake() {
    for (const pid of await family(this.process.pid)) process.kill(pid, "SIGCONT");
  }

  async end() {
    await this.playwright.close();
    this.process.kill("SIGTERM");
    await this.ended;
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A process and all that came of it. */
async function family(root) {
  const parents = new Map();
  for (const pid of (await readdir("/proc")).filter(Number).map(Number)) {
    try {
      // After the name, which may have spaces and parentheses: the state and the parent.
      const [, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").match(/.*\) \S (\d+)/);
      parents.set(pid, Number(parent));
    } catch {
      // It ended meanwhile.
    }
  }
  const found = [root];
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child);
  return found;
}
