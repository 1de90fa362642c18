const FIRST_MS = 250;
const LONGEST_MS = 10_000;
/** So long it must have gone well for the next failure to count as the first. */
const STABLE_MS = 10_000;

/** How long to wait after failures: exponential, with full jitter, bounded in length and not in number. */
export class Backoff {
  #platform;
  #failures = 0;
  #wellSince = null;

  constructor(platform) {
    this.#platform = platform;
  }

  succeeded() {
    this.#wellSince ??= this.#platform.now();
  }

  /** The wait before the next attempt, never less than the server asked for. */
  failed(retryAfterMs = 0, longestMs = LONGEST_MS) {
    if (this.#wellSince !== null && this.#platform.now() - this.#wellSince >= STABLE_MS) this.#failures = 0;
    this.#wellSince = null;
    const ceiling = Math.min(longestMs, LONGEST_MS, FIRST_MS * 2 ** this.#failures++);
    return retryAfterMs + this.#platform.random() * ceiling;
  }
}
