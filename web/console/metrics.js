/** The Prometheus text of `/metrics`, and what the charts want of it. */

/** Samples as `{name, labels, value}`. */
export function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const read = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (read) samples.push({ name: read[1], labels: labels(read[2] ?? ""), value: number(read[3]) });
  }
  return samples;
}

function labels(text) {
  const found = {};
  for (const [, name, value] of text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
    found[name] = value.replace(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
  }
  return found;
}

function number(text) {
  return { "+Inf": Infinity, "-Inf": -Infinity }[text] ?? Number(text);
}

/** The value of a metric without labels; null where it is not there. */
export function gauge(samples, name) {
  return samples.find((sample) => sample.name === name)?.value ?? null;
}

/** The sum of a metric by one of its labels. */
export function byLabel(samples, name, label) {
  const sums = new Map();
  for (const sample of samples) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return sums;
}

/** How fast counters rose between two readings, each a second; one that was reset began from 0. */
export function rates(before, after, seconds) {
  const found = new Map();
  for (const [key, value] of after) {
    const known = before.get(key) ?? 0;
    found.set(key, (value >= known ? value - known : value) / seconds);
  }
  return found;
}

/** The upper bound below which a share of what was observed between two readings lies; null where nothing was. */
export function quantile(before, after, share) {
  const buckets = [...rates(before, after, 1)].map(([bound, value]) => [number(bound), value]).sort(([a], [b]) => a - b);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  let below = [0, 0];
  for (const [bound, value] of buckets) {
    if (value >= all * share) {
      if (bound === Infinity) return below[0];
      const within = value === below[1] ? 1 : (all * share - below[1]) / (value - below[1]);
      return below[0] + (bound - below[0]) * within;
    }
    below = [bound, value];
  }
  return null;
}
