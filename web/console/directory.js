/**
 * The rooms there are, in the service's order. They come in pages of 1,000; a page is replaced by each fresh
 * answer about it, and the one that is looked at is kept up by events.
 */
export class Directory {
  /** Each with where the next one begins, as the service names it; null at the end. */
  #pages = [];
  #list = null;

  /** Where each page begins; null is the start. */
  get pages() {
    return this.#pages.map((_, at) => this.#begin(at));
  }

  /** All rooms that are known, each once. */
  get list() {
    this.#list ??= unique(this.#pages.flatMap(({ rooms }) => rooms));
    return this.#list;
  }

  /** Where the first page begins that is not known; null where all are. */
  get missing() {
    return this.#pages.at(-1)?.next ?? null;
  }

  /** Where the page begins that an item of the list is of. */
  pageOf(index) {
    let seen = 0;
    const at = this.#pages.findIndex(({ rooms }) => (seen += rooms.length) > index);
    return this.#begin(at < 0 ? Math.max(0, this.#pages.length - 1) : at);
  }

  /** A fresh answer about the page that begins there; dropped where no page does any more. */
  replace(after, rooms, next) {
    const at = this.#at(after);
    if (at < 0) return;
    this.#pages[at] = { rooms: [...rooms], next };
    if (next === null) this.#pages.length = at + 1;
    this.#list = null;
  }

  /** A room was opened, or has another count. */
  put(after, room) {
    const { rooms } = this.#pages[this.#at(after)] ?? { rooms: [] };
    const at = rooms.findIndex(({ roomId }) => roomId === room.roomId);
    if (at >= 0) {
      if (rooms[at].generation > room.generation) return;
      rooms[at] = room;
    } else {
      const place = rooms.findIndex(({ roomId }) => inOrder(room.roomId, roomId) < 0);
      rooms.splice(place < 0 ? rooms.length : place, 0, room);
    }
    this.#list = null;
  }

  remove(after, { roomId, generation }) {
    const { rooms } = this.#pages[this.#at(after)] ?? { rooms: [] };
    const at = rooms.findIndex((room) => room.roomId === roomId && room.generation <= generation);
    if (at < 0) return;
    rooms.splice(at, 1);
    this.#list = null;
  }

  #begin(at) {
    return at === 0 ? null : this.#pages[at - 1].next;
  }

  #at(after) {
    if (after === null) return 0;
    const before = this.#pages.findIndex(({ next }) => next === after);
    return before < 0 ? -1 : before + 1;
  }
}

/** As the service orders ids: by their bytes in UTF-8, which is by code points. */
export function inOrder(one, other) {
  const [a, b] = [one[Symbol.iterator](), other[Symbol.iterator]()];
  for (;;) {
    const [left, right] = [a.next(), b.next()];
    if (left.done || right.done) return left.done ? (right.done ? 0 : -1) : 1;
    if (left.value !== right.value) return left.value.codePointAt(0) - right.value.codePointAt(0);
  }
}

/** A page that moved can repeat rooms of the one before. */
function unique(rooms) {
  const seen = new Set();
  return rooms.filter(({ roomId }) => !seen.has(roomId) && seen.add(roomId));
}
