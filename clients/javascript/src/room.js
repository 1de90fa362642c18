import { CursorSender } from "./cursor.js";
import { Session } from "./session.js";
import { Watch } from "./watch.js";

/** A room that this page is in. */
export class Room extends Watch {
  #connection;
  #session;
  #cursor;
  #ready = {};

  constructor(connection, options) {
    super(connection, options.roomId);
    this.#connection = connection;
    this.userId = options.userId;
    this.deviceId = options.deviceId;
    /** Resolves with the answer to the first join; rejects where there will be none. */
    this.ready = new Promise((resolve, reject) => (this.#ready = { resolve, reject }));
    // Whoever does not ask need not handle it.
    this.ready.catch(() => {});
    const problem = (problem) => this.emit("problem", problem);
    this.#cursor = new CursorSender(connection, () => this.#session, problem, options);
    this.#session = new Session(connection, options, {
      status: (status) => this.emit("status", status),
      joined: (answer) => this.#ready.resolve(answer),
      renewed: () => this.#cursor.flush(),
      problem,
      ended: (end, told) => this.#ended(end, told),
      cursor: () => this.#cursor.latest,
    });
  }

  get status() {
    return this.#session.status;
  }

  get epoch() {
    return this.#session.epoch;
  }

  get end() {
    return this.#session.end;
  }

  /** One's own entry among the participants. */
  get self() {
    return this.participants.find(({ userId }) => userId === this.userId);
  }

  /** Shows where one's pointer is; null takes it away. */
  moveCursor(cursor) {
    if (!this.isClosed) this.#cursor.move(cursor);
  }

  setMetadata(metadata) {
    if (!this.isClosed) this.#session.setMetadata(metadata);
  }

  /** Leaves for good; resolves once the service has heard of it, or cannot be told. */
  async leave() {
    this.#cursor.close();
    this.#ready.reject(new Error("left"));
    await this.#session.leave();
    super.close();
  }

  close() {
    return this.leave();
  }

  reconnect() {
    if (this.isClosed) return;
    this.#session.wake();
    super.reconnect();
  }

  told(type, event) {
    if (type === "held") return this.#session.confirm();
    const own = event?.userId === this.userId;
    if (type !== "stale" || !event.userId) super.told(type, event);
    // Why, the session's own next answer says.
    if (type === "room_closed" || (own && type !== "removed")) this.#session.confirm(event.epoch);
  }

  /** The room may not be read, or not any more: who may not look is not in it either. */
  refused(reason) {
    this.#session.stop({ code: "refused", ...reason });
  }

  wake() {
    this.#session.wake();
  }

  suspend() {
    this.#session.suspend();
  }

  #ended(end, told) {
    this.#cursor.close();
    this.#ready.reject(Object.assign(new Error(end.error ?? end.code), end));
    this.emit("ended", end);
    told.then(() => super.close());
  }
}
