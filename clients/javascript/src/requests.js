import { UNANSWERED } from "./outcome.js";
import { until } from "./platform.js";

/** Requests to one service with the credential of one connection. */
export class Requests {
  #tokens;
  #platform;
  #timers;

  constructor({ url, tokens, platform, timers }) {
    this.url = url;
    this.#tokens = tokens;
    this.#platform = platform;
    this.#timers = timers;
  }

  /**
   * Never rejects: answers `{status, body, retryAfterMs}`, with status 0 for no answer. `wanted` is asked
   * once the token is there.
   */
  async send(method, path, body, { timeoutMs = 10_000, signal, wanted } = {}) {
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    const callOff = this.#timers.after(timeoutMs, abort);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      for (let first = true; ; first = false) {
        const token = await until(attempt.signal, this.#tokens.get());
        if (wanted?.() === false) return UNANSWERED;
        const init = { method, headers: headers(token, body), signal: attempt.signal };
        if (body) init.body = JSON.stringify(body);
        const response = await until(attempt.signal, this.#platform.fetch(this.url + path, init));
        const text = await until(attempt.signal, response.text());
        // A token that ended is no refusal, the fresh one's is.
        if (response.status === 401 && first && this.#tokens.refused(token)) continue;
        return { status: response.status, body: parse(text), retryAfterMs: retryAfterMs(response) };
      }
    } catch {
      return UNANSWERED;
    } finally {
      callOff();
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Opens a stream; rejects where that fails. */
  async open(path, signal) {
    const token = await until(signal, this.#tokens.get());
    const init = { headers: headers(token), signal, cache: "no-store" };
    return until(signal, this.#platform.fetch(this.url + path, init));
  }

  /** Sends what must go out before the page is gone: at once, and whatever the answer. */
  farewell(path, body) {
    const token = this.#tokens.current;
    const init = { method: "POST", headers: headers(token, body), body: JSON.stringify(body), keepalive: true };
    // Without a header that needs a question first, which a page that goes may not live to ask.
    if (!token) init.headers["content-type"] = "text/plain";
    this.#platform.fetch(this.url + path, init).catch(() => {});
  }
}

function headers(token, body) {
  const headers = {};
  if (token) headers.authorization = "Bearer " + token;
  if (body) headers["content-type"] = "application/json";
  return headers;
}

export function roomPath(roomId) {
  return `/rooms/${encodeURIComponent(roomId)}`;
}

/** 0 where there is none, or a proxy's date. */
export function retryAfterMs(response) {
  return response.headers.get("retry-after") * 1000 || 0;
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
