import { Backoff } from "./backoff.js";
import { EventStream } from "./event-stream.js";
import { verdict } from "./outcome.js";
import { retryAfterMs, roomPath } from "./requests.js";

/** Rooms that come and go in the same moment are one new stream. */
const GATHER_MS = 10;
const ANSWER_MS = 10_000;
/** The service shows that it lives every 15 seconds. */
const SILENT_MS = 35_000;
const LOOK_MS = 15_000;
/** For what arrived while the page slept to be read. */
const GRACE_MS = 2000;

/** Hears of rooms from one stream of server-sent events, and asks with requests of their own. */
export class StreamTransport {
  #connection;
  #requests;
  #view;
  #backoff;
  #rooms = [];
  #attempt = null;
  #heardAt = 0;
  #callOff = () => {};
  #callOffLook = () => {};
  #callOffRenewal = () => {};
  #callOffGrace = null;

  constructor(connection, requests, view) {
    this.#connection = connection;
    this.#requests = requests;
    this.#view = view;
    this.#backoff = new Backoff(connection.platform);
  }

  request(roomId, type, fields, options) {
    return this.#requests.send("POST", `${roomPath(roomId)}/${type}`, fields, options);
  }

  follow(rooms) {
    const wanted = [...rooms].sort();
    if (wanted.join("\n") === this.#rooms.join("\n")) return;
    this.#rooms = wanted;
    this.#dialIn(GATHER_MS);
  }

  /** Waits no longer where it waits to try again. */
  retry() {
    if (!this.#attempt && this.#rooms.length > 0) this.#dialIn(0);
  }

  wake() {
    this.retry();
    this.#doubt();
  }

  /** Until it is woken. */
  suspend() {
    this.#hangUp();
    this.#silence();
  }

  close() {
    this.#rooms = [];
    this.#hangUp();
  }

  #silence() {
    for (const roomId of this.#rooms) this.#connection.told(roomId, "silence");
  }

  #hangUp() {
    const attempt = this.#attempt;
    this.#attempt = null;
    attempt?.abort();
    for (const callOff of [this.#callOff, this.#callOffLook, this.#callOffRenewal]) callOff();
    this.#callOffGrace?.();
    this.#callOffGrace = null;
  }

  #dialIn(ms) {
    this.#callOff();
    this.#callOff = this.#connection.timers.after(ms, () => this.#dial());
  }

  async #dial() {
    this.#hangUp();
    if (this.#rooms.length === 0) return;
    const attempt = (this.#attempt = new AbortController());
    this.#heardAt = this.#connection.platform.now();
    const { wait, refused } = await this.#follow(attempt);
    attempt.abort();
    // Another attempt, or none, is wanted by now.
    if (this.#attempt !== attempt) return;
    this.#hangUp();
    this.#silence();
    if (refused) await this.#connection.judge();
    if (this.#attempt === null && this.#rooms.length > 0) this.#dialIn(wait);
  }

  /** One stream from its opening to its end; answers what is to follow. */
  async #follow(attempt) {
    const callOffAnswer = this.#connection.timers.after(ANSWER_MS, () => attempt.abort());
    const stream = new EventStream((type, data) => this.#take(attempt, type, data));
    let begun = false;
    try {
      const response = await this.#requests.open(this.#path(), attempt.signal);
      callOffAnswer();
      if (!response.ok) {
        const refused = verdict({ status: response.status, body: {} }) === "stop";
        return { wait: this.#backoff.failed(retryAfterMs(response)), refused };
      }
      const reader = response.body.getReader();
      this.#watch();
      this.#renew();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#attempt !== attempt) break;
        this.#heardAt = this.#connection.platform.now();
        stream.push(value);
        // Only now: a connection that is taken and then cut has not succeeded.
        if (!begun) this.#backoff.succeeded();
        begun = true;
      }
    } catch {
      // Cut off, by either side: tried again as after any other end.
    } finally {
      callOffAnswer();
    }
    return { wait: this.#backoff.failed(stream.retryMs * this.#connection.platform.random()) };
  }

  #path() {
    const query = this.#connection.at ? [] : this.#rooms.map((roomId) => `room=${encodeURIComponent(roomId)}`);
    if (this.#view) query.push(`view=${this.#view}`);
    return `${this.#connection.at}/events?${query.join("&")}`;
  }

  #take(attempt, type, data) {
    if (this.#attempt !== attempt) return;
    const event = JSON.parse(data);
    this.#connection.told(event.roomId, type, event);
  }

  /** Doubts a stream from which nothing came for long. */
  #watch() {
    const look = () => {
      this.#doubt();
      this.#callOffLook = this.#connection.timers.after(LOOK_MS, look);
    };
    this.#callOffLook = this.#connection.timers.after(LOOK_MS, look);
  }

  /** It may be this page that slept: only who says nothing now either is given up. */
  #doubt() {
    const { platform, timers } = this.#connection;
    if (!this.#attempt || this.#callOffGrace || platform.now() - this.#heardAt < SILENT_MS) return;
    const heardAt = this.#heardAt;
    this.#callOffGrace = timers.after(GRACE_MS, () => {
      this.#callOffGrace = null;
      if (this.#heardAt === heardAt) this.#dialIn(0);
    });
  }

  /** A stream ends with the credential that opened it: a new one is there before. */
  #renew() {
    const { tokens, timers } = this.#connection;
    if (tokens.remainingMs === Infinity) return;
    this.#callOffRenewal = timers.after(Math.max(1000, tokens.remainingMs), () => this.#dialIn(0));
  }
}
