import { Awareness } from "y-protocols/awareness";

/**
 * The awareness of a Yjs document, carried by a room: for the bindings of editors, which know this
 * interface. A client's state travels as its cursor in the room, so the room is best the document's own.
 *
 * Nothing here times out: whoever is in the room is aware, and the lease says who is.
 */
export class RoomAwareness extends Awareness {
  #room;
  #sent;
  #ownId;
  #unfollow;

  constructor(room, doc) {
    super(doc);
    // The base would remove, after 30 seconds, whoever did not move.
    clearInterval(this._checkInterval);
    this.#room = room;
    this.#ownId = doc.clientID;
    const renamed = () => this.#follow();
    doc.on("afterTransactionCleanup", renamed);
    const offs = [
      () => doc.off("afterTransactionCleanup", renamed),
      room.on("participants", () => this.#take()),
      room.on("ended", () => this.#replace(new Map())),
    ];
    this.#unfollow = () => offs.forEach((off) => off());
    this.#send();
    this.#take();
  }

  /** Yjs gives a document another one where two have the same. */
  get clientID() {
    return this.doc.clientID;
  }

  set clientID(_ofTheBase) {}

  setLocalState(state) {
    super.setLocalState(state);
    // The base calls this before there is a room.
    if (#room in this) this.#send();
  }

  destroy() {
    this.#unfollow?.();
    super.destroy();
  }

  #send() {
    const state = this.getLocalState();
    const cursor = state && { clientId: this.clientID, state };
    const text = JSON.stringify(cursor);
    if (text === this.#sent) return;
    this.#sent = text;
    this.#room.moveCursor(cursor);
  }

  /** The local state goes on under the document's new id. */
  #follow() {
    const [from, to] = [this.#ownId, this.clientID];
    if (from === to) return;
    this.#ownId = to;
    const state = this.states.get(from);
    this.states.delete(from);
    const clock = (this.meta.get(from)?.clock ?? 0) + 1;
    this.meta.set(from, { clock, lastUpdated: Date.now() });
    this.#tell({ added: [], updated: [], removed: [from] }, "local");
    if (state) this.setLocalState(state);
    this.#take();
  }

  #take() {
    const states = new Map();
    for (const participant of this.#room.participants) {
      const sessions = participant.devices ?? [participant];
      for (const { cursor, epoch, deviceId } of sessions) {
        const { clientId, state } = cursor ?? {};
        const own = participant.userId === this.#room.userId && (deviceId ? deviceId === this.#room.deviceId : epoch === this.#room.epoch);
        // Of two sessions of one client the newer is first.
        if (own || !state || !Number.isInteger(clientId) || clientId === this.clientID || states.has(clientId)) continue;
        states.set(clientId, state);
      }
    }
    this.#replace(states);
  }

  #replace(states) {
    const added = [];
    const updated = [];
    const removed = [...this.states.keys()].filter((id) => id !== this.clientID && !states.has(id));
    for (const id of removed) this.#set(id, null);
    for (const [id, state] of states) {
      const known = this.states.get(id);
      if (known && JSON.stringify(known) === JSON.stringify(state)) continue;
      (known ? updated : added).push(id);
      this.#set(id, state);
    }
    if (added.length + updated.length + removed.length > 0) this.#tell({ added, updated, removed }, "leasehold");
  }

  #set(id, state) {
    if (state === null) this.states.delete(id);
    else this.states.set(id, state);
    this.meta.set(id, { clock: (this.meta.get(id)?.clock ?? 0) + 1, lastUpdated: Date.now() });
  }

  #tell(changes, origin) {
    this.emit("change", [changes, origin]);
    this.emit("update", [changes, origin]);
  }
}
