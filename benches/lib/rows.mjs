// The rows of the report. A row says what was measured, against what, and whether that is enough.

function verdict(value, { least, below, most }) {
  if (least !== undefined) return value >= least;
  if (below !== undefined) return value < below;
  if (most !== undefined) return value <= most;
  return null;
}

function bound({ least, below, most }, unit) {
  if (least !== undefined) return `≥ ${least}${unit}`;
  if (below !== undefined) return `< ${below}${unit}`;
  if (most !== undefined) return `≤ ${most}${unit}`;
  return null;
}

/** Two samples of a load and the ratio of one of their fields, the rate unless said otherwise. */
export function ratioRow({ figure, ours, oursName, baseline, baselineName, field = "perSecond", ...bounds }) {
  const ratio = ours[field] / baseline[field];
  return {
    figure,
    ours: { name: oursName, ...ours },
    baseline: { name: baselineName, ...baseline },
    ratio,
    target: bound(bounds, " ×"),
    met: verdict(ratio, bounds),
  };
}

/** One value against a bound of its own. */
export function valueRow({ figure, value, unit, note, ...bounds }) {
  return {
    figure,
    ours: { value, unit, note },
    baseline: null,
    ratio: null,
    target: bound(bounds, unit === "%" ? " %" : ` ${unit}`),
    met: verdict(value, bounds),
  };
}
