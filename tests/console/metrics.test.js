import assert from "node:assert/strict";
import { test } from "node:test";
import { ceiling, line } from "../../web/console/chart.js";
import { byLabel, gauge, parse, quantile, rates } from "../../web/console/metrics.js";

const TEXT = `# HELP rooms with a live member
# TYPE leasehold_active_rooms gauge
leasehold_active_rooms 16

leasehold_refusals_total{code="expired"} 3
leasehold_refusals_total{code="room_full",more="a \\"b\\", c\\\\d\\ne"} 4 1796282291000
leasehold_feed_lag_seconds 1.5e-3
b_bucket{le="0.1"} 5
b_bucket{le="+Inf"} 6
`;

test("the text of Prometheus is read with its labels, whatever is in them", () => {
  const samples = parse(TEXT);
  assert.equal(samples.length, 6);
  assert.equal(gauge(samples, "leasehold_active_rooms"), 16);
  assert.equal(gauge(samples, "leasehold_feed_lag_seconds"), 0.0015);
  assert.equal(gauge(samples, "leasehold_absent"), null);
  assert.equal(samples[2].labels.more, 'a "b", c\\d\ne');
  assert.deepEqual([...byLabel(samples, "leasehold_refusals_total", "code")], [["expired", 3], ["room_full", 4]]);
});

test("a rate is of what came since, and a counter that was reset began from nothing", () => {
  const before = new Map([["a", 10], ["b", 100]]);
  const after = new Map([["a", 20], ["b", 5], ["c", 5]]);
  assert.deepEqual([...rates(before, after, 5)], [["a", 2], ["b", 1], ["c", 1]]);
});

test("a quantile is of what was observed between two readings", () => {
  const before = new Map([["0.1", 1000], ["0.5", 1000], ["1", 1000], ["+Inf", 1000]]);
  const after = new Map([["+Inf", 1100], ["1", 1100], ["0.5", 1090], ["0.1", 1050]]);
  assert.equal(quantile(before, after, 0.5), 0.1);
  assert.ok(Math.abs(quantile(before, after, 0.25) - 0.05) < 1e-9);
  assert.ok(Math.abs(quantile(before, after, 0.99) - 0.95) < 1e-9);
  assert.equal(quantile(after, after, 0.5), null);
  // All that is known of what is beyond the last bound is that it is beyond.
  assert.equal(quantile(new Map(), new Map([["1", 0], ["+Inf", 3]]), 0.5), 1);
});

test("a chart's scale is round and above what it shows, and a line has gaps where nothing is known", () => {
  assert.deepEqual([[], [null], [0], [3, 7], [83], [4000]].map(ceiling), [1, 1, 1, 7.5, 100, 5000]);
  assert.equal(line([0, null, 10, 10], 10, 4), "M0.0,64.0h0M200.0,0.0h0L300.0,0.0");
});
