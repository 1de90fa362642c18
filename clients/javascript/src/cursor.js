import { verdict } from "./outcome.js";

/** Requests of one page under way at once; the oldest gives way to a newer one. */
const UNDER_WAY = 2;

/** Sends where the pointer is: the latest position wins, so many a second at most, and the last one arrives. */
export class CursorSender {
  #session;
  #problem;
  #connection;
  #roomId;
  #gapMs;
  #cursor;
  #unsent = false;
  #sentAt = -Infinity;
  #underWay = [];
  #overtaken = false;
  #callOff = null;

  constructor(connection, session, problem, { roomId, cursorsPerSecond, cursor }) {
    this.#problem = problem;
    this.#connection = connection;
    this.#session = session;
    this.#roomId = roomId;
    this.#gapMs = 1000 / cursorsPerSecond;
    this.#cursor = cursor;
  }

  /** What a join takes along; from then on it need not be sent. */
  get latest() {
    this.#unsent = false;
    return this.#cursor;
  }

  move(cursor) {
    this.#cursor = cursor;
    this.#unsent = true;
    this.flush();
  }

  /** Sends what is not sent yet, now or as soon as it may. */
  flush() {
    if (!this.#unsent || this.#callOff || this.#session().status !== "connected") return;
    const { platform, timers } = this.#connection;
    const wait = this.#sentAt + this.#gapMs - platform.now();
    if (wait <= 0) return void this.#send();
    this.#callOff = timers.after(wait, () => {
      this.#callOff = null;
      this.flush();
    });
  }

  close() {
    this.#callOff?.();
    this.#unsent = false;
    for (const request of this.#underWay) request.abort();
  }

  async #send() {
    const session = this.#session();
    const { epoch } = session;
    const sentAt = (this.#sentAt = this.#connection.platform.now());
    const request = new AbortController();
    this.#unsent = false;
    if (this.#underWay.length > 0) this.#overtaken = true;
    // Never behind a slow one: what it would say is old.
    if (this.#underWay.push(request) > UNDER_WAY) this.#underWay[0].abort();
    const fields = { ...session.identity, cursor: this.#cursor ?? null };
    const outcome = await this.#connection.request(this.#roomId, "cursor", fields, { signal: request.signal });
    this.#underWay.splice(this.#underWay.indexOf(request), 1);
    session.answered(outcome, epoch, sentAt);
    if (outcome.status === 400) this.#problem(outcome.body);
    if (this.#underWay.length > 0) return;
    // Of two under way the older may have arrived last; and what failed has not arrived.
    const again = this.#overtaken || verdict(outcome) === "again";
    this.#overtaken = false;
    if (again && session.epoch !== null) {
      this.#unsent = true;
      if (verdict(outcome) === "done") this.flush();
    }
  }
}
