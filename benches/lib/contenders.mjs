// What is measured: the service, with and without coalescing, and its peers. Each is started fresh for a scenario.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, start, stop, untilReady } from "./children.mjs";
import { processCpu } from "./cpu.mjs";
import { expect, freePort } from "./http.mjs";
import { remove, temporaryDirectory } from "./temporary.mjs";
import { load } from "./wrk.mjs";

const PEERS = fileURLToPath(new URL("../peers", import.meta.url));

/** Runs a load and says what each answer cost in CPU, in the service and in its database. */
async function measuredLoad(contender, options) {
  const serviceBefore = processCpu(contender.server.pid);
  const databaseBefore = contender.databaseCpu();
  const sample = await load(contender.baseUrl, options);
  return {
    ...sample,
    serviceCpuUs: (processCpu(contender.server.pid) - serviceBefore) / sample.requests,
    databaseCpuUs: contender.hasDatabase ? (contender.databaseCpu() - databaseBefore) / sample.requests : null,
  };
}

async function startServer(contender, command, args, env) {
  const port = await freePort();
  contender.baseUrl = `http://127.0.0.1:${port}`;
  contender.server = start(command, args, { env: { ...process.env, NODE_ENV: "production", ...env(port) } });
  await untilReady(contender.server, () => expect(200, contender.baseUrl, "GET", "/healthz"));
}

class Peer {
  hasDatabase = false;

  constructor(id, name) {
    this.id = id;
    this.name = name;
  }

  databaseCpu() {
    return 0;
  }

  measure(options) {
    return measuredLoad(this, options);
  }

  async start() {
    await startServer(this, process.execPath, [`${PEERS}/${this.id}/server.mjs`], (port) => ({ PORT: String(port) }));
  }

  async stop() {
    if (this.server !== undefined) await stop(this.server);
  }
}

class RedisPeer extends Peer {
  hasDatabase = true;

  databaseCpu() {
    return processCpu(this.redis.pid);
  }

  async start() {
    this.directory = temporaryDirectory("redis");
    const socket = join(this.directory, "socket");
    // Nothing is written to disk, which is the fastest that Redis can be and less than the service promises.
    this.redis = start("redis-server", ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", this.directory]);
    await untilReady(this.redis, () => run("redis-cli", ["-s", socket, "ping"]));
    await startServer(this, process.execPath, [`${PEERS}/${this.id}/server.mjs`], (port) => ({ PORT: String(port), REDIS_SOCKET: socket }));
  }

  async stop() {
    await super.stop();
    if (this.redis !== undefined) await stop(this.redis);
    if (this.directory !== undefined) remove(this.directory);
  }
}

export class Service {
  hasDatabase = true;

  constructor(environment, id, name, settings = {}) {
    Object.assign(this, { environment, id, name, settings });
    this.database = `leasehold_${id.replaceAll("-", "_")}`;
  }

  get cluster() {
    return this.environment.cluster;
  }

  databaseCpu() {
    return this.cluster.cpu();
  }

  measure(options) {
    return measuredLoad(this, options);
  }

  /** Runs a command of the binary on this contender's database. */
  command(...args) {
    return run(this.environment.binary, args, { env: { ...process.env, DATABASE_URL: this.cluster.url(this.database), LEASEHOLD_LOG: "warn" } });
  }

  /** Makes the database and its tables; members may be filled in before `serve`. */
  async migrate() {
    await this.cluster.createDatabase(this.database);
    await this.command("migrate");
  }

  /** Makes the database as a copy of another service's, which nothing may be connected to. */
  async copyFrom(other) {
    await this.cluster.createDatabase(this.database, { template: other.database });
  }

  async serve() {
    await startServer(this, this.environment.binary, ["serve"], (port) => ({
      DATABASE_URL: this.cluster.url(this.database),
      LEASEHOLD_BIND: `127.0.0.1:${port}`,
      LEASEHOLD_LOG: "warn",
      ...this.settings,
    }));
  }

  async start() {
    await this.migrate();
    await this.serve();
  }

  /** Ends one of several instances; another still needs the database. */
  async stopServing() {
    if (this.server !== undefined) await stop(this.server);
  }

  /** Stops serving, then has the invariants checked, so that no figure comes from a wrong answer. */
  async stop({ verify = false } = {}) {
    if (this.server !== undefined) await stop(this.server);
    if (verify) await this.command("verify");
    await this.cluster.dropDatabase(this.database);
  }
}

export const expressMemory = () => new Peer("express-memory", "in-memory Express");
export const expressRedis = () => new RedisPeer("express-redis", "Express on Redis");
export const ours = (environment, settings) => new Service(environment, "ours", "Leasehold", settings);
/** At its best: as many statements at once as it has connections. */
export const coalescingOff = (environment) =>
  new Service(environment, "coalescing-off", "coalescing off", { LEASEHOLD_COALESCE_MAX_BATCH: "1", LEASEHOLD_COALESCE_LANES: "10" });

/** A few answers by hand before any load, so that contenders are compared at the same work. */
export async function checkContract({ baseUrl }, { room, user, epoch }, perRoom) {
  const path = `/rooms/${room}`;
  await expect(204, baseUrl, "POST", `${path}/heartbeat`, { userId: user, epoch });
  await expect(409, baseUrl, "POST", `${path}/heartbeat`, { userId: user, epoch: epoch + 1_000 });
  await expect(204, baseUrl, "POST", `${path}/cursor`, { userId: user, epoch, cursor: { line: 10, column: 4 } });
  const { participants } = await expect(200, baseUrl, "GET", `${path}/participants`);
  const person = participants.find(({ userId }) => userId === user);
  if (participants.length !== perRoom || person?.cursor?.line !== 10) {
    throw new Error(`${baseUrl}${path} lists ${participants.length} of ${perRoom} participants, or not the cursor`);
  }
}
