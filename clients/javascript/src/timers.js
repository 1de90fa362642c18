/** What `setTimeout` can wait, 24 days; a longer wait would be none at all. */
const LONGEST_MS = 2 ** 31 - 1;
/** From here on browsers delay the timers of hidden pages, but not those of workers. */
const THROTTLED_MS = 1000;
const WORKER = "onmessage=e=>setTimeout(()=>postMessage(e.data[0]),e.data[1])";

/** Timers that a hidden page keeps: each runs on the page and in a worker, and the first to fire wins. */
export class Timers {
  #platform;
  #worker;
  #workerUrl;
  #pending = new Map();
  #last = 0;

  constructor(platform) {
    this.#platform = platform;
  }

  /** Runs it once after so long, or 24 days; what is returned calls it off. */
  after(ms, run) {
    const id = ++this.#last;
    const wait = Math.min(ms, LONGEST_MS);
    const fire = () => this.#cancel(id) && run();
    this.#pending.set(id, { fire, timer: this.#platform.setTimeout(fire, wait) });
    if (wait >= THROTTLED_MS) this.#ofWorker()?.postMessage([id, wait]);
    return () => this.#cancel(id);
  }

  close() {
    for (const id of [...this.#pending.keys()]) this.#cancel(id);
    this.#worker?.terminate();
    this.#worker = null;
    if (this.#workerUrl) URL.revokeObjectURL(this.#workerUrl);
  }

  #cancel(id) {
    const pending = this.#pending.get(id);
    if (!pending) return false;
    this.#platform.clearTimeout(pending.timer);
    return this.#pending.delete(id);
  }

  #ofWorker() {
    if (this.#worker !== undefined || !this.#platform.document || !this.#platform.Worker) return this.#worker;
    this.#worker = null;
    try {
      const url = (this.#workerUrl = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
      const worker = new this.#platform.Worker(url);
      worker.onmessage = ({ data }) => this.#pending.get(data)?.fire();
      // A page's policy may forbid workers: its own timers go on.
      worker.onerror = () => (this.#worker = null);
      this.#worker = worker;
    } catch {
      // As above; some browsers throw at once.
    }
    return this.#worker;
  }
}
