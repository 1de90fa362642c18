// A Postgres cluster that lives as long as the run: durable as by default, reachable through a socket in a private directory only.
import { chownSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { run, start, untilReady } from "./children.mjs";
import { familyCpu } from "./cpu.mjs";
import { temporaryDirectory } from "./temporary.mjs";

const SETTINGS = {
  listen_addresses: "",
  // pgbench needs one connection a client, up to 256.
  max_connections: "300",
  shared_buffers: "256MB",
  max_wal_size: "4GB",
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  log_line_prefix: "%d: ",
};
const TMPFS_MAGIC = 0x01021994;

/** Server programs on PATH, or the newest of Debian's. */
function binDirectory() {
  const onPath = (process.env.PATH ?? "").split(":").find((dir) => ["initdb", "postgres", "pgbench"].every((name) => existsSync(join(dir, name))));
  if (onPath !== undefined) return onPath;
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((version) => join(debian, version, "bin")).find((dir) => existsSync(join(dir, "postgres")));
  if (found === undefined) throw new Error("no PostgreSQL server programs found");
  return found;
}

/** Postgres refuses to run as root, so root runs it as the postgres user. */
async function serverUser() {
  if (process.getuid() !== 0) return {};
  const id = async (flag) => Number((await run("id", [flag, "postgres"])).stdout);
  return { uid: await id("-u"), gid: await id("-g") };
}

export class Cluster {
  static async start() {
    const cluster = new Cluster();
    cluster.bin = binDirectory();
    const user = await serverUser();
    cluster.directory = temporaryDirectory("bench");
    cluster.data = join(cluster.directory, "data");
    cluster.logPath = join(cluster.directory, "log");
    cluster.isOnTmpfs = statfsSync(cluster.directory).type === TMPFS_MAGIC;
    mkdirSync(cluster.data, { mode: 0o700 });
    const log = openSync(cluster.logPath, "a", 0o600);
    if (user.uid !== undefined) {
      for (const path of [cluster.directory, cluster.data]) chownSync(path, user.uid, user.gid);
    }
    await run(join(cluster.bin, "initdb"), ["-D", cluster.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"], { ...user, cwd: cluster.directory });
    const settings = { ...SETTINGS, unix_socket_directories: cluster.directory };
    cluster.server = start(
      join(cluster.bin, "postgres"),
      ["-D", cluster.data, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
      // SIGINT is the fast shutdown: it does not wait for clients.
      { ...user, cwd: cluster.directory, stdio: ["ignore", log, log], stopSignal: "SIGINT" },
    );
    await untilReady(cluster.server, () => cluster.sql("postgres", "select 1"));
    cluster.version = await cluster.sql("postgres", "show server_version");
    return cluster;
  }

  get settings() {
    return SETTINGS;
  }

  /** What the server said about one database, which is one line a statement where its `log_statement` is on. */
  log() {
    return readFileSync(this.logPath, "utf8");
  }

  url(database) {
    return `postgres://postgres@localhost/${database}?host=${encodeURIComponent(this.directory)}`;
  }

  connectionArguments(database) {
    return ["-h", this.directory, "-U", "postgres", database];
  }

  /** Runs SQL and returns the last result as bare text, columns apart by a bar. */
  async sql(database, text) {
    const { stdout } = await run("psql", ["-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-", "-h", this.directory, "-U", "postgres", "-d", database], { input: text });
    return stdout.trimEnd();
  }

  async createDatabase(name, { template = "template0" } = {}) {
    await this.sql("postgres", `drop database if exists ${name} with (force);\ncreate database ${name} template ${template}`);
  }

  async dropDatabase(name) {
    await this.sql("postgres", `drop database if exists ${name} with (force)`);
  }

  /** Server processes of all kinds. */
  cpu() {
    return familyCpu(this.server.pid);
  }
}
