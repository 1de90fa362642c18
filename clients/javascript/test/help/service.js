import { spawn } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const SECRET = "a secret of the tests, 32 bytes or more";
export const KEY = "a key of the tests";

/** What a test says where the real service is not there to be tried. */
export const skip = process.env.LEASEHOLD_BIN ? false : "LEASEHOLD_BIN does not name the service's program";

/** The real service on a PostgreSQL of its own. */
export class Service {
  static async start(settings = {}) {
    const service = new Service();
    service.data = await mkdtemp(join(tmpdir(), "leasehold-client-"));
    // Where root starts it, its PostgreSQL runs as somebody else.
    await chmod(service.data, 0o755);
    service.settings = settings;
    await service.serve("127.0.0.1:0");
    return service;
  }

  /** Starts it, or starts it again, on what is in its database. */
  async serve(bind = new URL(this.url).host) {
    const env = { ...process.env, ...this.settings, LEASEHOLD_LOG: "error" };
    delete env.DATABASE_URL;
    const args = ["dev", "--data-dir", this.data, "--bind", bind];
    this.process = spawn(process.env.LEASEHOLD_BIN, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    process.once("exit", () => this.process.kill());
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
    for await (const line of createInterface(this.process.stdout)) {
      const [, url] = line.match(/listens on (http:\S+)/) ?? [];
      if (url) {
        this.url = url;
        this.process.stdout.resume();
        return;
      }
    }
    throw new Error("the service ended before it listened");
  }

  async halt() {
    this.process.kill("SIGTERM");
    await this.ended;
  }

  async end() {
    await this.halt();
    await rm(this.data, { recursive: true, force: true });
  }

  async ask(method, path, body) {
    const headers = { "content-type": "application/json", authorization: `Bearer ${KEY}` };
    const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    return response.status === 204 ? null : response.json();
  }

  async participants(roomId) {
    return (await this.ask("GET", `/rooms/${roomId}/participants`)).participants;
  }
}

/** Waits for it to be so, and says what was waited for where it never is. */
export async function eventually(what, holds, withinMs = 10_000) {
  const end = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
