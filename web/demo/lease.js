const TONES = { connected: "good", connecting: "warn", reconnecting: "warn", lost: "bad", ended: "bad" };

/** What this page knows of its own membership: the status, and the lease as it runs out. */
export class Lease {
  #status;
  #bar;
  #facts;
  #running = null;

  constructor({ status, bar, facts }) {
    this.#status = status;
    this.#bar = bar;
    this.#facts = facts;
  }

  show({ status, epoch, deviceId, end }) {
    this.#status.textContent = status;
    this.#status.dataset.tone = TONES[status];
    const why = end ? `ended: ${end.code}` : epoch ? `epoch ${epoch}` : "no session";
    this.#facts.textContent = `${why} · device ${deviceId.slice(0, 6)}`;
    if (status === "lost" || status === "ended") this.#running?.cancel();
  }

  /** It runs anew from when that request was sent. */
  renewed(sentAt, leaseMs) {
    this.#running?.cancel();
    this.#running = this.#bar.animate([{ transform: "scaleX(1)" }, { transform: "scaleX(0)" }], { duration: leaseMs });
    this.#running.currentTime = performance.now() - sentAt;
  }
}
