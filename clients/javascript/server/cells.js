/** A cell that did not do what it was asked for; `cell` is its name, `status` 0 where it did not answer. */
export class CellError extends Error {
  name = "CellError";

  constructor(cell, status, { code, error } = {}) {
    super(`cell ${cell}: ${error ?? `status ${status}`}`);
    Object.assign(this, { cell, status, code });
  }
}

/**
 * Several cells asked as one, each under its own address. Whatever is merged is of all of them or fails: a
 * list without a cell that is down would show its people as gone.
 */
export class Cells {
  #cells;
  #timeoutMs;

  /** `cells` is `{one: {url, key}, …}`, by the names of the map; `key` is a server key. */
  constructor({ cells, timeoutMs = 10_000 }) {
    this.#cells = Object.entries(cells).map(([name, { url, key }]) => ({ name, url: url.replace(/\/+$/, ""), key }));
    this.#timeoutMs = timeoutMs;
  }

  /** The rooms that exist, in order of id. */
  rooms({ prefix } = {}) {
    return this.#merged("/rooms", { prefix }, "rooms", byRoom);
  }

  /** Where a person is, in order of the room's id. */
  userRooms(userId) {
    return this.#merged(`/users/${encodeURIComponent(userId)}/rooms`, {}, "rooms", byRoom);
  }

  /** A person's sessions, the newest join first. A room that moved has its history in two cells, told once. */
  async *userSessions(userId, { from, to } = {}) {
    const seen = new Set();
    const path = `/users/${encodeURIComponent(userId)}/sessions`;
    for await (const session of this.#merged(path, { from, to }, "sessions", (a, b) => b.joinedAtMs - a.joinedAtMs)) {
      const key = JSON.stringify([session.roomId, session.epoch]);
      if (!seen.has(key)) yield session;
      seen.add(key);
    }
  }

  /** Where each of these people is, in the order of the question. */
  async whereabouts(userIds) {
    const answers = await this.#each((cell) => this.#call(cell, "POST", "/whereabouts", { userIds }));
    return userIds.map((userId, at) => {
      const found = answers.map(({ users }) => users[at]);
      const seen = found.map(({ lastSeenMs }) => lastSeenMs).filter((ms) => ms != null);
      return {
        userId,
        rooms: found.flatMap(({ rooms }) => rooms).sort(byRoom),
        lastSeenMs: seen.length > 0 ? Math.max(...seen) : null,
      };
    });
  }

  /**
   * What changed in each cell after its position in `positions` (`{}` for the oldest kept): `{changes, positions}`,
   * each change with the `cell` that tells it. Keep the positions once the changes are dealt with. Those of a cell are in
   * order; between cells there is none. A cell whose position has expired fails with its name and `position_expired`.
   */
  async changes(positions = {}, { limit, waitMs, ...filter } = {}) {
    const pages = await this.#each(async (cell) => {
      const query = { ...filter, limit, waitMs, after: positions[cell.name] };
      const { changes, next } = await this.#call(cell, "GET", `/changes${queryOf(query)}`, undefined, waitMs);
      return { changes: changes.map((change) => ({ cell: cell.name, ...change })), next };
    });
    const nexts = pages.map(({ next }, at) => [this.#cells[at].name, next]);
    return { changes: pages.flatMap(({ changes }) => changes), positions: Object.fromEntries(nexts) };
  }

  /** Puts a person out of all rooms. What one cell did stands where another fails: ask again. */
  async removeUser(userId, { blockForMs } = {}) {
    const path = `/users/${encodeURIComponent(userId)}/sessions${queryOf({ blockForMs })}`;
    await this.#each((cell) => this.#call(cell, "DELETE", path));
  }

  /** Makes a person's history nobody's. Not while a move is under way, or again when it has ended. */
  async eraseUser(userId) {
    await this.#each((cell) => this.#call(cell, "DELETE", `/users/${encodeURIComponent(userId)}/history`));
  }

  /** All of them have tried before one that failed is told. */
  async #each(ask) {
    const answers = await Promise.allSettled(this.#cells.map(ask));
    const failed = answers.find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
    return answers.map(({ value }) => value);
  }

  /** The items of all cells in one order, a page of each at a time. */
  async *#merged(path, query, field, compare) {
    const lists = this.#cells.map((cell) => ({ cell, items: [], next: undefined }));
    for (;;) {
      const empty = lists.filter(({ items, next }) => items.length === 0 && next !== null);
      await Promise.all(
        empty.map(async (list) => {
          const page = await this.#call(list.cell, "GET", path + queryOf({ ...query, after: list.next }));
          list.items = page[field];
          list.next = page.next;
        }),
      );
      // A page may be empty and go on.
      if (lists.some(({ items, next }) => items.length === 0 && next !== null)) continue;
      const [first] = lists.filter(({ items }) => items.length > 0).sort((a, b) => compare(a.items[0], b.items[0]));
      if (!first) return;
      yield first.items.shift();
    }
  }

  async #call({ name, url, key }, method, path, body, waitMs = 0) {
    const headers = { ...(body && { "content-type": "application/json" }), ...(key && { authorization: `Bearer ${key}` }) };
    const signal = AbortSignal.timeout(this.#timeoutMs + waitMs);
    let response;
    try {
      response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body), signal });
      const answer = response.status === 204 ? {} : await response.json();
      if (response.ok) return answer;
      throw new CellError(name, response.status, answer);
    } catch (error) {
      if (error instanceof CellError) throw error;
      throw new CellError(name, response?.status ?? 0, { code: "unreachable", error: error.message });
    }
  }
}

/** Ids are in order of their bytes, and of UTF-8 that is the order of code points. */
function byRoom(a, b) {
  return Buffer.compare(Buffer.from(a.roomId), Buffer.from(b.roomId));
}

function queryOf(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}
