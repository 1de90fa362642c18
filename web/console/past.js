import { list } from "./api.js";

/** Leases stand still in them; a credential that may not read of them is shown none, and told so. */
export async function outages({ from, to }, signal) {
  try {
    const { found } = await list(`/outages?from=${Math.floor(from)}&to=${Math.ceil(to)}`, "outages", { most: 1000, signal });
    // Where the clock was set back an outage ends before it began.
    const spans = found.map(({ beganAtMs, endedAtMs }) => ({
      from: Math.min(beganAtMs, endedAtMs),
      to: Math.max(beganAtMs, endedAtMs),
    }));
    return { spans, mayRead: true };
  } catch (error) {
    if (error.status !== 403) throw error;
    return { spans: [], mayRead: false };
  }
}

/** Buttons for windows that end now, or have all. */
export const WINDOWS = [
  ["15 min", 15 * 60_000],
  ["1 h", 3_600_000],
  ["1 day", 86_400_000],
  ["All", Infinity],
];

export function lately(length, { from, to }) {
  return { from: Math.max(from, to - length), to };
}

/** What there is, with a little room on either side. */
export function padded({ from, to }) {
  const room = Math.max(1000, (to - from) * 0.02);
  return { from: from - room, to: to + room };
}

/** The window that an address names; null where it names none. */
export function windowOf({ from, to }) {
  const window = { from: Number(from), to: Number(to) };
  return window.from < window.to ? window : null;
}
