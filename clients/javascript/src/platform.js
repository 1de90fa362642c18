/** What the client uses of its surroundings; a test puts others in their place. */
export const platform = {
  fetch: (url, init) => fetch(url, init),
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (id) => clearTimeout(id),
  /** Milliseconds that never jump; they may stand still while the machine sleeps. */
  now: () => performance.now(),
  /** Milliseconds that go on while the machine sleeps; they may jump. */
  wallNow: () => Date.now(),
  random: () => Math.random(),
  // Of a page; elsewhere undefined.
  document: globalThis.document,
  window: globalThis.window,
  Worker: globalThis.Worker,
  WebSocket: globalThis.WebSocket,
};

/** An id that nobody guesses; `crypto.randomUUID` is missing on pages without TLS. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The promise's outcome, or a rejection once the signal is aborted, whichever is first. */
export function until(signal, promise) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject();
    signal.addEventListener("abort", reject);
    promise.then(resolve, reject);
  });
}
