/**
 * The database's clock as this page can know it: instants of leases are its, and this machine's may be wrong.
 * An answer is always a little late, so of several the one that shows the latest time is nearest to the truth.
 */
export class ServerClock {
  #now;
  #offset = null;
  #observedAt = 0;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** An answer or event with its `asOfMs` has just arrived. */
  observe(asOfMs) {
    const now = this.#now();
    const offset = asOfMs - now;
    // What is known for a minute may be out of date: clocks drift, and the database's may be set.
    if (this.#offset === null || offset > this.#offset || now - this.#observedAt > 60_000) {
      this.#offset = offset;
      this.#observedAt = now;
    }
  }

  /** Null before anything was heard. */
  now() {
    return this.#offset === null ? null : this.#now() + this.#offset;
  }
}

/** How much of a lease is left, from 1 to 0. */
export function leaseLeft({ lastSeenMs, expiresAtMs }, now) {
  const length = expiresAtMs - lastSeenMs;
  if (now === null || length <= 0) return 0;
  return Math.min(1, Math.max(0, (expiresAtMs - now) / length));
}
