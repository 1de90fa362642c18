// The floor beneath every heartbeat in Postgres: the one-row UPDATE by itself, sent by pgbench with one connection a client.
import { pgbench } from "./pgbench.mjs";

const MEMBERS = 10_000;

// The columns that a heartbeat reads and writes, with room for HOT updates as the service's own table has.
const TABLE = `
  create table members (
    room_id text not null,
    user_id text not null,
    device_id text not null,
    epoch bigint not null,
    joined_at timestamptz not null,
    last_seen_at timestamptz not null,
    lease_expires_at timestamptz not null,
    lease_ms integer not null,
    cursor jsonb,
    metadata jsonb,
    primary key (room_id, user_id, device_id)
  ) with (fillfactor = 60);
  insert into members
  select 'room-' || n / 10, 'user-' || n, '', 1, now(), now(), now() + interval '1 hour', 3600000, null, null
    from generate_series(0, ${MEMBERS - 1}) n;`;

const SCRIPT = `\\set n random(0, ${MEMBERS - 1})
\\set room :n / 10
update members
   set last_seen_at = clock_timestamp(), lease_expires_at = clock_timestamp() + lease_ms * interval '1 millisecond'
 where room_id = 'room-' || :room::int and user_id = 'user-' || :n::int and device_id = ''
   and epoch = 1 and lease_expires_at >= clock_timestamp();
`;

export class BareUpdate {
  id = "bare-update";
  name = "pgbench bare UPDATE";
  #database = "bare_update";

  constructor(environment) {
    this.environment = environment;
  }

  async start() {
    const { cluster } = this.environment;
    await cluster.createDatabase(this.#database);
    await cluster.sql(this.#database, TABLE);
    await cluster.sql(this.#database, "vacuum analyze");
  }

  measure({ connections, seconds }) {
    const { cluster } = this.environment;
    return pgbench(cluster, { database: this.#database, script: SCRIPT, clients: connections, seconds });
  }

  async stop() {
    await this.environment.cluster.dropDatabase(this.#database);
  }
}
