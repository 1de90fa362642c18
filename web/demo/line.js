import { platform } from "../client/platform.js";

/** The page's line to the service: notes what is asked and answered, and can be dropped. */
export class Line {
  isDown = false;
  #open = new Set();
  #note;
  /** What the client is to use of its surroundings. */
  platform = { ...platform, fetch: (url, init) => this.#fetch(url, init) };

  /** `note` hears of each request with its answer; status 0 is none. */
  constructor(note) {
    this.#note = note;
  }

  drop() {
    this.isDown = true;
    for (const cut of this.#open) cut.abort();
    this.#open.clear();
  }

  restore() {
    this.isDown = false;
  }

  async #fetch(url, init) {
    const kind = new URL(url).pathname.split("/").at(-1);
    const asked = { kind, sentAt: performance.now(), body: init.body ? JSON.parse(init.body) : {} };
    const cut = new AbortController();
    try {
      if (this.isDown) throw new TypeError("the network is dropped");
      this.#open.add(cut);
      const signal = init.signal ? AbortSignal.any([init.signal, cut.signal]) : cut.signal;
      const response = await platform.fetch(url, { ...init, signal });
      const isStream = kind === "events" && response.ok;
      // A stream stays open until the client ends it.
      if (isStream) init.signal?.addEventListener("abort", () => this.#open.delete(cut));
      else this.#open.delete(cut);
      const answer = isStream || response.status === 204 ? {} : await response.clone().json().catch(() => ({}));
      this.#note({ ...asked, status: response.status, answer });
      return response;
    } catch (error) {
      this.#open.delete(cut);
      // What the client gave up itself, for something newer, is no news.
      if (!init.signal?.aborted) this.#note({ ...asked, status: 0, answer: {} });
      throw error;
    }
  }
}
