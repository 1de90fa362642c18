/** Server-sent events with the credential in a header, which a browser's own `EventSource` cannot send. */

import { Backoff } from "../client/backoff.js";
import { EventStream } from "../client/event-stream.js";
import { platform } from "../client/platform.js";
import { Refused, open } from "./api.js";

/** The service shows that it lives every 15 seconds. */
const SILENT_MS = 40_000;

/**
 * Follows a stream until the signal is aborted, and comes back after failures. `onEvent` is told each event,
 * `onLive` whether what it knows is kept up, `onRefused` why it stopped for good.
 */
export async function follow(path, { signal, onEvent, onLive, onRefused }) {
  const backoff = new Backoff(platform);
  while (!signal.aborted) {
    try {
      await read(path, signal, backoff, (type, data) => {
        if (type === "stale") return onLive(false);
        onEvent(type, JSON.parse(data));
        if (type === "snapshot") onLive(true);
      });
    } catch (error) {
      if (error instanceof Refused && error.status >= 400 && error.status < 500 && error.status !== 429) {
        if (!signal.aborted) onRefused(error);
        return;
      }
    }
    if (signal.aborted) return;
    onLive(false);
    await pause(backoff.failed(), signal);
  }
}

/** One stream from its opening to its end. */
async function read(path, signal, backoff, onEvent) {
  const attempt = new AbortController();
  const silence = () => setTimeout(() => attempt.abort(), SILENT_MS);
  let doubt = silence();
  try {
    const reader = await open(path, AbortSignal.any([signal, attempt.signal]));
    const events = new EventStream((type, data) => !signal.aborted && onEvent(type, data));
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(doubt);
      doubt = silence();
      events.push(value);
      backoff.succeeded();
    }
  } finally {
    clearTimeout(doubt);
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });
}
