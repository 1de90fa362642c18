import { Backoff } from "./backoff.js";
import { UNANSWERED, verdict } from "./outcome.js";
import { until } from "./platform.js";
import { roomPath } from "./requests.js";

const OPEN_MS = 10_000;
/** A socket on which nothing came for so long is asked something, and given up without an answer. */
const QUIET_MS = 20_000;
const PROBE_MS = 5000;

/** Hears of rooms and asks over one WebSocket. What is asked while there is none waits for the next. */
export class SocketTransport {
  #connection;
  #requests;
  #view;
  #backoff;
  #rooms = new Set();
  #attempt = null;
  #waiting = new Set();
  #lastId = 0;
  #callOff = () => {};

  constructor(connection, requests, view) {
    this.#connection = connection;
    this.#requests = requests;
    this.#view = view;
    this.#backoff = new Backoff(connection.platform);
  }

  async request(roomId, type, fields, { timeoutMs = 10_000, signal, wanted } = {}) {
    // Who leaves waits for no other socket: it may be the refusal of one that ends the membership.
    if (type === "leave" && !this.#attempt?.open) return this.#requests.send("POST", `${roomPath(roomId)}/leave`, fields);
    // Who is to renew has waited as long as it may.
    if (type === "heartbeat" || type === "join") this.retry();
    return this.#ask({ type, roomId, ...fields }, timeoutMs, signal, wanted);
  }

  follow(rooms) {
    const wanted = new Set(rooms);
    const { open } = this.#attempt ?? {};
    if (open) {
      for (const roomId of this.#rooms) if (!wanted.has(roomId)) this.#send({ type: "unsubscribe", roomId });
      for (const roomId of wanted) if (!this.#rooms.has(roomId)) this.#subscribe(roomId, this.#attempt);
    }
    this.#rooms = wanted;
    if (!this.#attempt) this.#dial();
  }

  retry() {
    if (!this.#attempt && this.#rooms.size > 0) this.#dial();
  }

  wake() {
    this.retry();
    this.#probe(this.#attempt);
  }

  /** Until it is woken. */
  suspend() {
    this.#callOff();
    this.#drop(this.#attempt);
    this.#silence();
  }

  close() {
    this.#rooms = new Set();
    this.#callOff();
    this.#drop(this.#attempt);
    for (const wait of [...this.#waiting]) wait.abort();
  }

  async #dial() {
    this.#callOff();
    const attempt = (this.#attempt = { open: false, answers: new Map(), callOffs: new Set(), ended: new AbortController() });
    this.#later(attempt, OPEN_MS, () => attempt.open || this.#lost(attempt));
    try {
      const token = await until(attempt.ended.signal, this.#connection.tokens.get());
      const query = token ? `?access_token=${encodeURIComponent(token)}` : "";
      const socket = new this.#connection.platform.WebSocket(this.#requests.url.replace(/^http/, "ws") + this.#connection.at + "/socket" + query);
      attempt.socket = socket;
      socket.onopen = () => this.#opened(attempt);
      socket.onmessage = ({ data }) => this.#take(attempt, JSON.parse(data));
      socket.onclose = socket.onerror = () => this.#lost(attempt);
    } catch {
      this.#lost(attempt);
    }
  }

  #opened(attempt) {
    if (this.#attempt !== attempt) return attempt.socket.close();
    attempt.open = true;
    for (const roomId of this.#rooms) this.#subscribe(roomId, attempt);
    for (const wait of [...this.#waiting]) wait.ready();
    this.#watch(attempt);
    this.#renew(attempt);
    // A session is held by the socket on which it is renewed.
    for (const roomId of this.#rooms) this.#connection.told(roomId, "held");
  }

  #take(attempt, message) {
    if (this.#attempt !== attempt) return;
    this.#backoff.succeeded();
    attempt.heardAt = this.#connection.platform.now();
    const { type, requestId, roomId } = message;
    if (type === "answer") attempt.answers.get(requestId)?.(message);
    else if (type === "unsubscribed") this.#connection.refused(roomId, message);
    else this.#connection.told(roomId, type, message);
  }

  /** Does not wait for the socket to say that it is closed: a dead one may never. */
  #lost(attempt) {
    if (this.#attempt !== attempt) return;
    const { open } = attempt;
    this.#drop(attempt);
    const wait = this.#backoff.failed();
    const dial = () => {
      if (this.#rooms.size > 0 && !this.#attempt) this.#callOff = this.#connection.timers.after(wait, () => this.#dial());
    };
    this.#silence();
    // Why a socket did not open a page cannot see; a request can.
    if (open) dial();
    else this.#connection.judge().then(dial);
  }

  #silence() {
    for (const roomId of this.#rooms) this.#connection.told(roomId, "silence");
  }

  #drop(attempt) {
    if (!attempt) return;
    this.#attempt = null;
    attempt.ended.abort();
    for (const callOff of attempt.callOffs) callOff();
    const { socket } = attempt;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
      // One that is still opening reports an error when closed.
      socket.onopen = () => socket.close();
      socket.onerror = () => {};
      if (attempt.open) socket.close();
    }
  }

  /** Never rejects, as with requests of their own. */
  async #ask(message, timeoutMs, signal, wanted) {
    const limit = new AbortController();
    const abort = () => limit.abort();
    const callOff = this.#connection.timers.after(timeoutMs, abort);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const attempt = await this.#whenOpen(limit.signal);
      if (wanted?.() === false) return UNANSWERED;
      const requestId = ++this.#lastId;
      const ended = () => limit.abort();
      attempt.ended.signal.addEventListener("abort", ended);
      const answer = new Promise((resolve) => attempt.answers.set(requestId, resolve));
      attempt.socket.send(JSON.stringify({ ...message, requestId }));
      try {
        const { status, body = {} } = await until(limit.signal, answer);
        return { status, body, retryAfterMs: body.retryAfterMs };
      } finally {
        attempt.answers.delete(requestId);
        attempt.ended.signal.removeEventListener("abort", ended);
      }
    } catch {
      return UNANSWERED;
    } finally {
      callOff();
      signal?.removeEventListener("abort", abort);
    }
  }

  async #whenOpen(signal) {
    if (this.#attempt?.open) return this.#attempt;
    const wait = {};
    const opened = new Promise((resolve, reject) => Object.assign(wait, { ready: resolve, abort: reject }));
    this.#waiting.add(wait);
    try {
      await until(signal, opened);
    } finally {
      this.#waiting.delete(wait);
    }
    return this.#attempt;
  }

  async #subscribe(roomId, attempt) {
    const outcome = await this.#ask({ type: "subscribe", roomId, view: this.#view }, 10_000, attempt.ended.signal);
    const next = verdict(outcome);
    if (this.#attempt !== attempt || !this.#rooms.has(roomId) || next === "done") return;
    if (next === "stop") return this.#connection.refused(roomId, outcome.body);
    this.#later(attempt, this.#backoff.failed(outcome.retryAfterMs), () => this.#subscribe(roomId, attempt));
  }

  #send(message) {
    this.#attempt.socket.send(JSON.stringify(message));
  }

  #later(attempt, ms, run) {
    const callOff = this.#connection.timers.after(ms, () => {
      attempt.callOffs.delete(callOff);
      run();
    });
    attempt.callOffs.add(callOff);
  }

  #watch(attempt) {
    attempt.heardAt = this.#connection.platform.now();
    this.#later(attempt, QUIET_MS, () => {
      if (this.#connection.platform.now() - attempt.heardAt >= QUIET_MS) this.#probe(attempt);
      this.#watch(attempt);
    });
  }

  /** Only an unanswered question shows that it is dead. */
  async #probe(attempt) {
    const [roomId] = this.#rooms;
    if (!attempt?.open || attempt.probing) return;
    attempt.probing = true;
    const outcome = await this.#ask({ type: "subscribe", roomId, view: this.#view }, PROBE_MS);
    attempt.probing = false;
    if (outcome.status === 0) this.#lost(attempt);
  }

  /** Shows a fresh credential before the end of the one that the socket goes by. */
  #renew(attempt) {
    const { tokens } = this.#connection;
    if (tokens.remainingMs === Infinity) return;
    this.#later(attempt, Math.max(1000, tokens.remainingMs), async () => {
      try {
        const token = await until(attempt.ended.signal, tokens.get());
        await this.#ask({ type: "authenticate", token }, 10_000, attempt.ended.signal);
      } catch {
        // The callback failed, and is asked again; in the worst case the socket ends and the next has a fresh one.
      }
      if (this.#attempt === attempt) this.#renew(attempt);
    });
  }
}
