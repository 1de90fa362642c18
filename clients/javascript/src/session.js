import { Backoff } from "./backoff.js";
import { verdict } from "./outcome.js";
import { isHidden } from "./page.js";
import { randomId } from "./platform.js";

/** By so much the wall clock must outrun the steady one to show that the machine slept. */
const SLEEP_MS = 2000;
/** What a clock here may lose against the server's. */
const DRIFT = 0.99;
/** Metadata that changes often is sent no more often than this. */
const METADATA_MS = 100;

/** One membership: joins, renews, joins again, and knows until when the server is sure to keep it. */
export class Session {
  #connection;
  #platform;
  #timers;
  #options;
  #heard;
  #backoff;
  /** Grows whenever what is under way is no longer wanted. */
  #life = 0;
  #wanted = true;
  #away = false;
  #epoch = null;
  #joinId = null;
  #joined = false;
  #end = null;
  #metadata;
  #metadataSent;
  /** What may be counted on; and what the server said last. */
  #leaseMs = 0;
  #leaseToldMs = 0;
  #baseLeaseMs;
  #heartbeatShare = 1 / 3;
  #hiddenLeaseMs;
  #deadline = -Infinity;
  #ackedAt = { now: 0, wall: 0 };
  #trouble = false;
  #told = "connecting";
  #running = null;
  #leaving = null;
  #again = false;
  #abort = null;
  #sentAt = 0;
  #notBefore = 0;
  #callOffRun = () => {};
  #callOffDeadline = () => {};

  /** `heard` has `status`, `joined(answer)`, `ended`, `renewed` and `problem`. */
  constructor(connection, options, heard) {
    this.#connection = connection;
    this.#platform = connection.platform;
    this.#timers = connection.timers;
    this.#options = options;
    this.#heard = heard;
    this.#backoff = new Backoff(this.#platform);
    this.#metadata = this.#metadataSent = options.metadata;
    this.#baseLeaseMs = options.leaseMs;
    this.#hiddenLeaseMs = options.hiddenLeaseMs;
    this.run();
  }

  get epoch() {
    return this.#epoch;
  }

  get end() {
    return this.#end;
  }

  /** Worked out at each look, so that no timer that slept can leave it wrongly `connected`. */
  get status() {
    if (this.#end) return "ended";
    if (!this.#joined) return "connecting";
    if (this.#epoch === null || this.#platform.now() >= this.#deadline) return "lost";
    return this.#trouble || this.#slept() ? "reconnecting" : "connected";
  }

  get #active() {
    return this.#wanted && !this.#away && !this.#end;
  }

  get identity() {
    return { userId: this.#options.userId, deviceId: this.#options.deviceId, epoch: this.#epoch };
  }

  /** Asks what is next: a join or a heartbeat. One at a time; asked meanwhile, one more comes after. */
  run() {
    if (!this.#active) return;
    this.#again = true;
    if (this.#running) return;
    this.#callOffRun();
    this.#running = this.#work().finally(() => {
      this.#running = null;
    });
  }

  async #work() {
    let wait;
    do {
      this.#again = false;
      const tooSoon = this.#notBefore - this.#platform.now();
      wait = tooSoon > 0 ? tooSoon : await (this.#epoch === null ? this.#join() : this.#beat());
    } while (this.#active && this.#again && this.#notBefore <= this.#platform.now());
    this.#tell();
    if (!this.#active) return;
    this.#callOffRun = this.#timers.after(wait, () => this.run());
  }

  /** Something woke: the page, the network, the machine. What was under way before may be dead. */
  wake() {
    this.#away = false;
    if (!this.#active) return;
    this.#tell();
    if (this.#running && this.#platform.now() - this.#sentAt > 1000) this.#abort?.abort();
    this.run();
  }

  /** The page goes, and may come back. */
  suspend() {
    if (!this.#active) return;
    this.#away = true;
    this.#forget(true);
  }

  setMetadata(metadata) {
    this.#metadata = metadata;
    // While it fails the next attempt, in its time, brings it along.
    if (this.#epoch === null || this.#running || this.#trouble) return;
    this.#callOffRun();
    this.#callOffRun = this.#timers.after(Math.max(0, METADATA_MS + this.#sentAt - this.#platform.now()), () => this.run());
  }

  /** Resolves once the server has heard of it, or cannot be told. */
  leave() {
    return (this.#leaving ??= this.#leave());
  }

  async #leave() {
    this.#wanted = false;
    const under = this.#running;
    this.#end ??= { code: "left" };
    await this.#forget();
    await under;
    this.#tell();
  }

  /** What another request about this session came to: a cursor renews as a heartbeat does. */
  answered(outcome, epoch, sentAt) {
    if (epoch !== this.#epoch || !this.#active) return;
    const next = verdict(outcome);
    if (next === "done") this.#renewed(sentAt);
    else if (next !== "again" && outcome.status === 409) this.run();
  }

  /** Somebody says that this epoch, or with none any, is over: the next answer tells why. */
  confirm(epoch) {
    if (this.#epoch !== null && (epoch === undefined || epoch >= this.#epoch)) this.run();
  }

  /** Stops for good. */
  stop(end) {
    if (!this.#active) return;
    this.#end = end;
    const told = Promise.all([this.#forget(), this.#running]);
    this.#tell();
    this.#heard.ended(end, told);
  }

  #slept() {
    const { now, wall } = this.#ackedAt;
    return this.#platform.wallNow() - wall - (this.#platform.now() - now) > SLEEP_MS;
  }

  /** Gives the session up, and tells the server where it may know of one. */
  #forget(unloading) {
    const epoch = this.#epoch;
    this.#life++;
    this.#epoch = this.#joinId = null;
    this.#again = false;
    this.#callOffRun();
    this.#callOffDeadline();
    return epoch === null ? undefined : this.#farewell(epoch, unloading);
  }

  #farewell(epoch, unloading) {
    const fields = { ...this.identity, epoch };
    if (unloading) return this.#connection.farewell(this.#options.roomId, fields);
    return this.#connection.request(this.#options.roomId, "leave", fields);
  }

  async #join() {
    const life = this.#life;
    const { ifPresent } = this.#options;
    // The same until it is answered: where the answer is lost, the session that it began is found again.
    this.#joinId ??= randomId();
    const metadata = this.#metadata;
    const leaseMs = this.#baseLeaseMs;
    const cursor = this.#heard.cursor();
    const fields = { ...this.identity, epoch: undefined, joinId: this.#joinId, leaseMs, ifPresent, metadata, cursor };
    const outcome = await this.#ask("join", fields);
    if (life !== this.#life) {
      // Left while the answer was on its way: without this the room would keep a ghost.
      if (outcome.status === 200) await this.#farewell(outcome.body.epoch, this.#away);
      return 0;
    }
    if (verdict(outcome) !== "done") return this.#failed(outcome);
    const { epoch, heartbeatMs } = outcome.body;
    this.#joinId = null;
    this.#epoch = epoch;
    this.#baseLeaseMs = this.#leaseMs = this.#leaseToldMs = outcome.body.leaseMs;
    this.#heartbeatShare = heartbeatMs / this.#leaseMs;
    this.#metadataSent = metadata;
    this.#joined = true;
    this.#deadline = -Infinity;
    this.#renewed(this.#sentAt);
    this.#heard.joined(outcome.body);
    return this.#wantedLease() === this.#leaseMs && metadata === this.#metadata ? this.#untilHeartbeat() : 0;
  }

  async #beat() {
    const life = this.#life;
    const fields = this.identity;
    const leaseMs = this.#wantedLease();
    const metadata = this.#metadata;
    if (leaseMs !== this.#leaseToldMs) fields.leaseMs = leaseMs;
    if (metadata !== this.#metadataSent) fields.metadata = metadata ?? null;
    // A shorter lease may begin although its answer is lost.
    if (fields.leaseMs < this.#leaseMs) {
      this.#leaseMs = fields.leaseMs;
      this.#limitDeadline(this.#platform.now() + this.#leaseMs * DRIFT);
    }
    const outcome = await this.#ask("heartbeat", fields);
    if (life !== this.#life) return 0;
    if (verdict(outcome) !== "done") return this.#failed(outcome, fields);
    this.#leaseMs = this.#leaseToldMs = fields.leaseMs ?? this.#leaseToldMs;
    this.#metadataSent = metadata;
    this.#renewed(this.#sentAt);
    return metadata === this.#metadata ? this.#untilHeartbeat() : METADATA_MS;
  }

  #ask(type, fields) {
    this.#abort = new AbortController();
    this.#sentAt = this.#platform.now();
    // Short enough for a second try within the lease.
    const timeoutMs = Math.min(10_000, Math.max(1000, 0.4 * (this.#leaseMs || 25_000)));
    const life = this.#life;
    const options = { timeoutMs, signal: this.#abort.signal, wanted: () => life === this.#life };
    return this.#connection.request(this.#options.roomId, type, fields, options);
  }

  /** How long to wait after an answer that was none, or not the wanted one. */
  #failed(outcome, sent) {
    const { body, retryAfterMs } = outcome;
    const next = verdict(outcome);
    if (next === "stop") return this.#refused(body, sent);
    this.#trouble = true;
    if (next === "rejoin") {
      this.#epoch = this.#joinId = null;
      this.#callOffDeadline();
    }
    this.#tell();
    // A service that was away leaves its clients a heartbeat's time to find it again.
    const longestMs = this.#joined ? this.#leaseMs * this.#heartbeatShare : undefined;
    const wait = this.#backoff.failed(retryAfterMs, longestMs);
    this.#notBefore = retryAfterMs > 0 ? this.#platform.now() + wait : 0;
    return wait;
  }

  /** What a heartbeat asked for beside the renewal is dropped where it cannot be had. */
  #refused(body, sent) {
    if (sent?.leaseMs && body.code === "invalid_request") {
      this.#hiddenLeaseMs = 0;
    } else if (sent && body.code === "metadata_too_large") {
      this.#metadata = this.#metadataSent;
      this.#heard.problem(body);
    } else {
      // It is over at the server already.
      this.#epoch = null;
      this.stop({ code: "refused", ...body });
    }
    return 0;
  }

  #renewed(sentAt) {
    this.#deadline = Math.max(this.#deadline, sentAt + this.#leaseMs * DRIFT);
    this.#ackedAt = { now: this.#platform.now(), wall: this.#platform.wallNow() };
    this.#trouble = false;
    this.#backoff.succeeded();
    this.#limitDeadline(this.#deadline);
    this.#tell();
    this.#heard.renewed();
  }

  #limitDeadline(deadline) {
    this.#deadline = Math.min(this.#deadline, deadline);
    this.#callOffDeadline();
    this.#callOffDeadline = this.#timers.after(this.#deadline - this.#platform.now(), () => this.#tell());
  }

  /** A longer one on a hidden page, whose timers may be delayed by a minute. */
  #wantedLease() {
    const base = this.#baseLeaseMs;
    if (!this.#hiddenLeaseMs || !isHidden(this.#platform)) return base;
    return Math.max(this.#hiddenLeaseMs, base);
  }

  #untilHeartbeat() {
    return this.#leaseMs * this.#heartbeatShare * (1 - 0.2 * this.#platform.random());
  }

  #tell() {
    const { status } = this;
    if (status === this.#told) return;
    this.#told = status;
    this.#heard.status(status);
  }
}
