export function median(values) {
  const sorted = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of every field by itself, over samples of one shape. */
export function medianSample(samples) {
  return Object.fromEntries(
    Object.keys(samples[0]).map((field) => [field, median(samples.map((sample) => sample[field]))]),
  );
}
