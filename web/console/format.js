/** How numbers, instants and durations are written. */

const number = new Intl.NumberFormat("en");

export function count(value, one, many = one + "s") {
  return `${number.format(value)} ${value === 1 ? one : many}`;
}

export function whole(value) {
  return number.format(Math.round(value));
}

/** For people: two units at most, the larger first. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const parts = [
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const first = parts.findIndex(([, size]) => seconds >= size);
  const [unit, size] = parts[first];
  const [nextUnit, nextSize] = parts[first + 1];
  const rest = Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${nextUnit}` : ""}`;
}

const pad = (value) => String(value).padStart(2, "0");

/** The time of day in this browser's zone. */
export function time(ms) {
  const at = new Date(ms);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

export function day(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

export function instant(ms) {
  return ms === null || ms === undefined ? "" : `${day(ms)} ${time(ms)}`;
}

/** A figure of a chart, in the unit that it is kept in. */
export function figure(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (unit === "s") return duration(value * 1000);
  if (unit === "/s") return `${value >= 10 ? whole(value) : value.toFixed(value === 0 ? 0 : 1)} /s`;
  return whole(value);
}

/** What a person is called, by themselves or by who vouches for them; their id where nobody says. */
export function nameOf({ userId, info, metadata }) {
  for (const name of [info?.name, metadata?.name]) {
    if (typeof name === "string" && name.trim() !== "") return name;
  }
  return userId;
}

/** A hue for a person, the same on every page. */
export function hueOf(userId) {
  let hash = 0;
  for (const character of userId) hash = (hash * 31 + character.codePointAt(0)) >>> 0;
  return hash % 360;
}
