/** Instants on a line: where each is, which are worth a mark, and how a window moves within what there is. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY),
];
/** Nothing shorter can be told apart. */
export const SHORTEST_MS = SECOND;

export class TimeScale {
  constructor({ from, to }, width) {
    this.from = from;
    this.to = to;
    this.width = width;
  }

  x(instant) {
    return ((instant - this.from) / (this.to - this.from)) * this.width;
  }

  instant(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** What is drawn of a span: at least so wide that it is seen; null where it is out of the window. */
  span(from, to, least = 2) {
    if (to < this.from || from > this.to) return null;
    const left = Math.max(0, this.x(from));
    const right = Math.min(this.width, this.x(to));
    return { x: Math.min(left, this.width - least), width: Math.max(least, right - left) };
  }

  /** Round instants in the zone of this browser, `apart` pixels from each other at least. */
  ticks(apart = 90, zoneMinutes = new Date(this.from).getTimezoneOffset()) {
    const least = ((this.to - this.from) / this.width) * apart;
    const step = STEPS.find((each) => each >= least) ?? STEPS.at(-1);
    const zone = zoneMinutes * MINUTE;
    const ticks = [];
    for (let at = Math.ceil((this.from - zone) / step) * step + zone; at <= this.to; at += step) ticks.push(at);
    return { step, ticks: ticks.slice(0, 200) };
  }
}

/** How a mark is written, by how far marks are apart. */
export function tickText(instant, step) {
  const at = new Date(instant);
  const two = (value) => String(value).padStart(2, "0");
  if (step >= DAY) return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return step < MINUTE ? `${clock}:${two(at.getSeconds())}` : clock;
}

/** The window within what there is, not shorter than can be told apart. */
export function within({ from, to }, bounds) {
  const whole = bounds.to - bounds.from;
  const length = Math.min(whole, Math.max(SHORTEST_MS, to - from));
  const start = Math.min(Math.max(from, bounds.from), bounds.to - length);
  return { from: start, to: start + length };
}

export function moved({ from, to }, by, bounds) {
  return within({ from: from + by, to: to + by }, bounds);
}

/** One end elsewhere, and the other where it is. */
export function resized({ from, to }, end, instant, bounds) {
  if (end === "from") return { from: Math.max(bounds.from, Math.min(instant, to - SHORTEST_MS)), to };
  return { from, to: Math.min(bounds.to, Math.max(instant, from + SHORTEST_MS)) };
}

/** Longer or shorter, around an instant that stays where it is. */
export function zoomed({ from, to }, factor, around, bounds) {
  return within({ from: around - (around - from) * factor, to: around + (to - around) * factor }, bounds);
}
