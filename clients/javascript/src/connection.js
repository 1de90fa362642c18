import { followPage, isHidden } from "./page.js";
import { verdict } from "./outcome.js";
import { Requests, roomPath } from "./requests.js";
import { StreamTransport } from "./stream.js";
import { Timers } from "./timers.js";
import { Tokens } from "./tokens.js";

/** As many rooms as one stream may have. */
const MAX_ROOMS = 100;
/** How often it is looked whether the machine slept, and by how much the looks must be apart then. */
const LOOK_MS = 2000;
const SLEPT_MS = 5000;

const open = new Set();

/** The connection that rooms with the same service, credential, transport and view share. */
export function connectionFor(options, platform) {
  // Of cells each has its rooms: a proxy finds it by the room's own address.
  const at = options.cells ? roomPath(options.roomId) : "";
  const key = [platform, options.url, options.token, options.transport, options.view, at];
  for (const connection of open) {
    if (connection.rooms.size < MAX_ROOMS && key.every((part, at) => part === connection.key[at])) return connection;
  }
  return new Connection(key, options, platform);
}

/** What rooms share: one stream or socket, one credential, one look at the page. */
export class Connection {
  #requests;
  #transport;
  #unfollow;
  #away = false;
  /** By room: whoever shows or is in it on this page. */
  rooms = new Map();

  constructor(key, { url, token, transport = StreamTransport, view }, platform) {
    this.key = key;
    this.platform = platform;
    this.timers = new Timers(platform);
    this.tokens = new Tokens(token, platform);
    this.#requests = new Requests({ url: url.replace(/\/+$/, ""), tokens: this.tokens, platform, timers: this.timers });
    this.#transport = new transport(this, this.#requests, view);
    this.#unfollow = followPage(platform, {
      wake: () => this.#wake(),
      away: () => this.#suspend(),
      back: () => this.#wake(true),
    });
    open.add(this);
    this.#look(platform.now(), platform.wallNow());
  }

  /** The path of its only room where the service is of cells, and nothing otherwise. */
  get at() {
    return this.key.at(-1);
  }

  add(roomId, room) {
    const sharing = this.rooms.get(roomId) ?? new Set();
    this.rooms.set(roomId, sharing.add(room));
    // Whoever comes later finds what is known already.
    const [other] = sharing;
    if (other !== room) queueMicrotask(() => other.snapshot && room.told("snapshot", other.snapshot));
    this.#transport.follow(this.rooms.keys());
  }

  remove(roomId, room) {
    const sharing = this.rooms.get(roomId);
    if (!sharing?.delete(room) || sharing.size > 0) return;
    this.rooms.delete(roomId);
    if (this.rooms.size > 0) return this.#transport.follow(this.rooms.keys());
    open.delete(this);
    this.#unfollow();
    this.#transport.close();
    this.timers.close();
  }

  /** A request about a session in a room: `join`, `heartbeat`, `cursor` or `leave`. */
  request(roomId, type, fields, options) {
    return this.#transport.request(roomId, type, fields, options);
  }

  /** Finds out which rooms may not be read where a stream or socket was refused, and tells them why. */
  async judge() {
    const each = [...this.rooms.keys()].map(async (roomId) => {
      const outcome = await this.#requests.send("GET", `${roomPath(roomId)}/participants?view=count`);
      if (verdict(outcome) === "stop") this.refused(roomId, outcome.body);
    });
    await Promise.all(each);
  }

  farewell(roomId, fields) {
    this.#requests.farewell(`${roomPath(roomId)}/leave`, fields);
  }

  reconnect() {
    this.#transport.retry();
  }

  /** From the transport. */
  told(roomId, type, event) {
    for (const room of [...(this.rooms.get(roomId) ?? [])]) room.told(type, event);
  }

  refused(roomId, reason) {
    for (const room of [...(this.rooms.get(roomId) ?? [])]) room.refused(reason);
  }

  #each(method) {
    for (const sharing of [...this.rooms.values()]) for (const room of [...sharing]) room[method]();
  }

  /** The page goes, and may come back: what stays open would keep it out of the browser's cache. */
  #suspend() {
    this.#away = true;
    this.#each("suspend");
    this.#transport.suspend();
  }

  #wake(back) {
    // Browsers tell that a page is hidden also after it went.
    if (this.#away && !back && isHidden(this.platform)) return;
    this.#away = false;
    this.#each("wake");
    this.#transport.wake();
  }

  /** No event tells that a machine slept: the clocks do. */
  #look(now, wall) {
    this.timers.after(LOOK_MS, () => {
      const { platform } = this;
      const apart = Math.max(platform.now() - now, platform.wallNow() - wall);
      if (apart > SLEPT_MS) this.#wake();
      this.#look(platform.now(), platform.wallNow());
    });
  }
}
