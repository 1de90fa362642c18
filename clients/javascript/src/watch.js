import { Emitter } from "./emitter.js";
import { Roster } from "./roster.js";

/** A room that is looked at: who is in it, kept from its events. */
export class Watch {
  #emitter = new Emitter();
  #roster = new Roster();
  #connection;
  #live = false;
  #announcing = false;
  #closed = false;
  #end = null;

  constructor(connection, roomId) {
    this.#connection = connection;
    this.roomId = roomId;
  }

  /** Everybody who is there, in order of arrival; the same list until something changes. */
  get participants() {
    return this.#roster.list;
  }

  get count() {
    return this.#roster.count;
  }

  /** Whether `participants` and `count` are kept up; otherwise they are the last that is known. */
  get live() {
    return this.#live;
  }

  /** Why it stopped by itself, as `{code, error}`, or null. */
  get end() {
    return this.#end;
  }

  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  /** Tries at once where it waits to try again. */
  reconnect() {
    this.#connection.reconnect();
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#setLive(false);
    this.#connection.remove(this.roomId, this);
  }

  /** For whoever comes later to the same room. */
  get snapshot() {
    return this.#live && { ...this.#roster, participants: this.participants, memberCount: this.count };
  }

  told(type, event) {
    if (this.#closed || type === "held") return;
    // Another cell has the room: where there is a new stream, it is there.
    if (type === "silence" || type === "stale" || type === "misdirected") return this.#setLive(false);
    if (type === "removed") return this.refused(event);
    const changes = this.#roster.apply(type, event);
    if (type === "snapshot" || type === "count") this.#setLive(true);
    if (changes.length > 0 || type === "count") this.#announce();
    for (const change of changes) this.emit(change.type, change);
  }

  refused(reason) {
    this.#end = { code: "refused", ...reason };
    this.close();
    this.emit("ended", this.#end);
  }

  /** The page's coming and going concerns only who is in the room. */
  wake() {}
  suspend() {}

  emit(type, detail) {
    this.#emitter.emit(type, detail);
  }

  get isClosed() {
    return this.#closed;
  }

  /** Once for all changes of the moment. */
  #announce() {
    if (this.#announcing) return;
    this.#announcing = true;
    queueMicrotask(() => {
      this.#announcing = false;
      this.emit("participants", this.participants);
    });
  }

  #setLive(live) {
    if (live === this.#live) return;
    this.#live = live;
    this.emit("live", live);
  }
}
