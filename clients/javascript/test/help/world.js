import { joinRoom, watchRoom } from "../../src/index.js";

/** A page with a clock of its own and a service that answers as the test says. */
export class World {
  time = 1000;
  wall = 1_800_000_000_000;
  timers = new Map();
  requests = [];
  streams = [];
  sockets = [];
  epoch = 0;
  answers = {};
  lastTimer = 0;
  randomness = 0.5;

  constructor({ page = true } = {}) {
    const world = this;
    if (page) {
      this.document = Object.assign(new EventTarget(), { visibilityState: "visible" });
      this.window = new EventTarget();
      this.storage = new Map();
      this.window.sessionStorage = storage(this.storage);
    }
    this.platform = {
      now: () => world.time,
      wallNow: () => world.wall,
      random: () => world.randomness,
      setTimeout: (run, ms) => {
        const id = ++world.lastTimer;
        // As the real one does with what it cannot count.
        world.timers.set(id, { run, at: world.time + (ms > 2 ** 31 - 1 ? 1 : Math.max(0, ms)) });
        return id;
      },
      clearTimeout: (id) => world.timers.delete(id),
      fetch: (url, init = {}) => world.#fetch(url, init),
      document: this.document,
      window: this.window,
    };
    this.platform.WebSocket = class extends FakeSocket {
      constructor(url) {
        super(url, world);
      }
    };
  }

  join(options = {}) {
    const room = joinRoom({ url: "http://service", roomId: "r", userId: "alice", platform: this.platform, ...options });
    return this.#record(room);
  }

  watch(options = {}) {
    return this.#record(watchRoom({ url: "http://service", roomId: "r", platform: this.platform, ...options }));
  }

  /** Everything that a handle told, in order. */
  #record(room) {
    room.heard = [];
    for (const type of ["joined", "updated", "left", "status", "live", "ended", "participants", "problem"]) {
      room.on(type, (detail) => room.heard.push({ type, detail }));
    }
    return room;
  }

  /** Lets promises settle. */
  async settle() {
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
  }

  /** Lets time pass for the page and the world. */
  async pass(ms) {
    const end = this.time + ms;
    await this.settle();
    for (;;) {
      const due = [...this.timers].filter(([, { at }]) => at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      const [id, { run, at }] = due;
      this.#goTo(Math.max(at, this.time));
      this.timers.delete(id);
      run();
      await this.settle();
    }
    this.#goTo(end);
  }

  #goTo(time) {
    const comments = Math.floor(time / 15_000) - Math.floor(this.time / 15_000);
    this.wall += time - this.time;
    this.time = time;
    // As the service shows that a stream lives.
    if (comments > 0) for (const stream of this.openStreams) if (!stream.silent) stream.write(": still here\n\n");
  }

  /** The machine sleeps: the world goes on, the steady clock stands still. */
  sleep(ms) {
    this.wall += ms;
  }

  /** The page is stopped: both clocks go on, no timer runs. */
  freeze(ms) {
    this.#goTo(this.time + ms);
  }

  async show(visibilityState) {
    this.document.visibilityState = visibilityState;
    this.document.dispatchEvent(new Event("visibilitychange"));
    await this.settle();
  }

  async fire(target, type, fields = {}) {
    this[target].dispatchEvent(Object.assign(new Event(type), fields));
    await this.settle();
  }

  /** The requests of one kind: `join`, `heartbeat`, `cursor`, `leave`, `events` or `participants`. */
  of(kind) {
    return this.requests.filter((request) => request.kind === kind);
  }

  /** What tells of rooms and has not been ended by either side. */
  get openStreams() {
    return this.streams.filter((stream) => !stream.closed);
  }

  #fetch(url, init) {
    const { pathname, searchParams } = new URL(url);
    const kind = pathname.split("/").at(-1);
    const request = {
      kind,
      url,
      path: pathname,
      rooms: searchParams.getAll("room"),
      at: this.time,
      body: init.body && JSON.parse(init.body),
      token: init.headers?.authorization?.replace("Bearer ", ""),
      keepalive: init.keepalive,
      headers: init.headers,
      signal: init.signal,
    };
    this.requests.push(request);
    const answer = this.answers[kind]?.(request) ?? this.#usual(request);
    return Promise.resolve(answer);
  }

  /** How the service answers where the test says nothing else. */
  #usual(request) {
    if (request.kind === "join") return reply(200, this.joined(request.body));
    if (request.kind === "events") return this.stream(request);
    return request.kind === "participants" ? reply(200, { memberCount: 0 }) : reply(204);
  }

  joined(fields) {
    const leaseMs = fields.leaseMs ?? 15_000;
    return { ...fields, epoch: ++this.epoch, generation: 1, leaseMs, heartbeatMs: leaseMs / 3 };
  }

  /** The same for a message on a socket. */
  answerMessage(message) {
    return message.type === "join" ? { status: 200, body: this.joined(message) } : { status: 204 };
  }

  stream(request, snapshot = (roomId) => ({ roomId, generation: 1, version: 1, participants: [] })) {
    const stream = new FakeStream(request.signal);
    this.streams.push(stream);
    for (const roomId of request.rooms) stream.tell("snapshot", snapshot(roomId));
    return stream.response;
  }
}

export class FakeStream {
  closed = false;
  silent = false;

  constructor(signal) {
    const body = new ReadableStream({
      start: (controller) => (this.controller = controller),
      cancel: () => (this.closed = true),
    });
    this.response = new Response(body, { headers: { "content-type": "text/event-stream" } });
    signal?.addEventListener("abort", () => {
      if (this.closed) return;
      this.closed = true;
      this.controller.error(new Error("aborted"));
    });
  }

  tell(type, data) {
    this.write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  write(text) {
    if (!this.closed) this.controller.enqueue(new TextEncoder().encode(text));
  }

  end() {
    this.closed = true;
    this.controller.close();
  }

  cut() {
    this.closed = true;
    this.controller.error(new Error("the network is gone"));
  }
}

/** A socket that answers requests as the fake service does, until it is told to be silent. */
export class FakeSocket {
  sent = [];
  silent = false;
  closed = false;

  constructor(url, world) {
    this.url = url;
    this.world = world;
    world.sockets.push(this);
    queueMicrotask(() => (world.onSocket ?? ((socket) => socket.open()))(this));
  }

  open() {
    if (!this.closed) this.onopen?.();
  }

  send(text) {
    const message = JSON.parse(text);
    this.sent.push(message);
    if (this.silent) return;
    const answer = this.world.onMessage?.(message, this) ?? this.world.answerMessage(message);
    queueMicrotask(() => this.tell({ type: "answer", requestId: message.requestId, ...answer }));
    if (message.type === "subscribe") queueMicrotask(() => this.tell({ type: "snapshot", roomId: message.roomId, generation: 1, version: 1, participants: [] }));
  }

  tell(message) {
    if (!this.closed && !this.silent) this.onmessage?.({ data: JSON.stringify(message) });
  }

  close() {
    this.closed = true;
  }

  /** From the other side. */
  drop() {
    this.closed = true;
    this.onclose?.();
  }
}

export function reply(status, body, headers = {}) {
  return new Response(body === undefined ? null : JSON.stringify(body), { status, headers });
}

export function stale(code) {
  return reply(409, { error: "stale session", code });
}

/** An answer that comes when the test says so. */
export function held() {
  let answer;
  const promise = new Promise((resolve) => (answer = resolve));
  return { promise, answer };
}

export function person(userId, fields = {}) {
  return { userId, arrivedAtMs: 1, epoch: 1, status: "connected", cursor: null, metadata: null, info: null, ...fields };
}

/** A token that holds for so long, as the signer's clock has it. */
export function tokenFor(seconds, name, issuedAt = 1_700_000_000) {
  const payload = Buffer.from(JSON.stringify({ iat: issuedAt, exp: issuedAt + seconds, name })).toString("base64url");
  return `head.${payload}.${name}`;
}

function storage(map) {
  return {
    getItem: (key) => map.get(key) ?? null,
    setItem: (key, value) => map.set(key, value),
    removeItem: (key) => map.delete(key),
  };
}
