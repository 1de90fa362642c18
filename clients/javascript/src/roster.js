/** What changes with every renewal and is no news. */
const UNREMARKABLE = new Set(["lastSeenMs", "expiresAtMs"]);

/**
 * Who is in a room, kept from its events. Each method answers with what changed, as
 * `{type: "joined" | "updated" | "left", …}`; entries are frozen, and keep their identity while nothing
 * about them changes.
 */
export class Roster {
  #people = new Map();
  #list = Object.freeze([]);
  #count = 0;
  /** Of which lifetime, and after how many of its changes. */
  generation = 0;
  version = 0;

  /** In order of arrival. */
  get list() {
    this.#list ??= Object.freeze(
      [...this.#people.values()].sort((a, b) => a.arrivedAtMs - b.arrivedAtMs || (a.userId < b.userId ? -1 : 1)),
    );
    return this.#list;
  }

  get count() {
    return this.#count;
  }

  apply(type, event) {
    if (type === "snapshot") return this.#replace(event);
    if (!this.#inOrder(event)) return [];
    if (type === "count") {
      this.#count = event.memberCount;
      return [];
    }
    if (type === "room_closed") return this.#replace({ participants: [] }, event.reason);
    const changes = type === "left" ? this.#remove(event) : this.#put(event.participant);
    this.#count = this.#people.size;
    return changes;
  }

  /** The first of a connection is the truth: what was missed before it shows as differences. */
  #replace({ generation, version, participants, memberCount = participants.length }, reason = null) {
    this.generation = generation ?? this.generation;
    this.version = version ?? this.version;
    const present = new Set(participants.map((participant) => participant.userId));
    const gone = [...this.#people.values()].filter(({ userId }) => !present.has(userId));
    const changes = gone.flatMap(({ userId, epoch }) => this.#remove({ userId, epoch, reason }));
    changes.push(...participants.flatMap((participant) => this.#put(participant)));
    this.#count = memberCount;
    return changes;
  }

  /** Whether it is not older than what is known. */
  #inOrder({ generation, version }) {
    // Of a room in which nobody is.
    if (generation === null) return true;
    if (generation < this.generation) return false;
    if (generation === this.generation && version < this.version) return false;
    this.generation = generation;
    this.version = version;
    return true;
  }

  #put(participant) {
    const known = this.#people.get(participant.userId);
    if (known && same(known, participant)) return [];
    freeze(participant);
    this.#people.set(participant.userId, participant);
    this.#list = null;
    return [{ type: known ? "updated" : "joined", participant }];
  }

  #remove({ userId, epoch, reason }) {
    const participant = this.#people.get(userId);
    if (!participant || participant.epoch > epoch) return [];
    this.#people.delete(userId);
    this.#list = null;
    return [{ type: "left", userId, reason, participant }];
  }
}

function same(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => UNREMARKABLE.has(key) || same(a[key], b[key]));
}

function freeze(value) {
  if (typeof value !== "object" || !value) return;
  Object.values(value).forEach(freeze);
  Object.freeze(value);
}
