/** Replaced so long before its end, or a fifth of its life where that is shorter. */
const LEAD_MS = 60_000;

/** The credential of a connection: a fixed one, or one from a callback that is asked again before it ends. */
export class Tokens {
  #source;
  #platform;
  #isFixed;
  #current;
  #replaceAt = Infinity;
  #asking = null;

  constructor(source, platform) {
    this.#source = source;
    this.#platform = platform;
    this.#isFixed = typeof source !== "function";
    if (this.#isFixed) this.#current = source;
  }

  /** The last one known, without waiting: for what is sent while the page goes away. */
  get current() {
    return this.#current;
  }

  /** How long until it should be replaced. */
  get remainingMs() {
    return this.#replaceAt - this.#platform.now();
  }

  /** One that holds; rejects where the callback does, and the next call asks again. */
  async get() {
    if (this.#isFixed || (this.#current && this.remainingMs > 0)) return this.#current;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  /** The server refused this one. Whether there can be another. */
  refused(token) {
    if (token === this.#current && !this.#isFixed) this.#current = undefined;
    return !this.#isFixed;
  }

  async #ask() {
    const askedAt = this.#platform.now();
    const token = await this.#source();
    const life = lifetimeMs(token, this.#platform.wallNow());
    this.#replaceAt = askedAt + life - Math.min(LEAD_MS, life / 5);
    this.#current = token;
    return token;
  }
}

/** How long a fresh token holds, from its own two instants: the clock of this machine may be wrong. */
function lifetimeMs(token, wallNow) {
  try {
    const payload = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    const { exp, iat = wallNow / 1000 } = JSON.parse(atob(payload));
    return exp ? Math.max(1, exp - iat) * 1000 : Infinity;
  } catch {
    return Infinity;
  }
}
