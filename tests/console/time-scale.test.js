import assert from "node:assert/strict";
import { test } from "node:test";
import { SHORTEST_MS, TimeScale, moved, resized, tickText, within, zoomed } from "../../web/console/time-scale.js";

const bounds = { from: 0, to: 100_000 };

test("an instant and its place are each other's", () => {
  const scale = new TimeScale({ from: 1000, to: 3000 }, 500);
  assert.equal(scale.x(2000), 250);
  assert.equal(scale.instant(scale.x(2345)), 2345);
});

test("a span is drawn where it is in the window, wide enough to be seen, and not at all beyond", () => {
  const scale = new TimeScale({ from: 1000, to: 2000 }, 1000);
  assert.deepEqual(scale.span(0, 1500), { x: 0, width: 500 });
  assert.deepEqual(scale.span(1900, 9000), { x: 900, width: 100 });
  assert.deepEqual(scale.span(1500, 1500, 3), { x: 500, width: 3 });
  assert.deepEqual(scale.span(2000, 2000, 3), { x: 997, width: 3 });
  assert.equal(scale.span(0, 999), null);
  assert.equal(scale.span(2001, 3000), null);
});

test("marks are at round instants of the zone, and far enough apart", () => {
  const hour = 3_600_000;
  const { step, ticks } = new TimeScale({ from: 0, to: 10 * hour }, 1000).ticks(90, 0);
  assert.equal(step, hour);
  assert.deepEqual(ticks, Array.from({ length: 11 }, (_, n) => n * hour));
  const halfAway = new TimeScale({ from: 0, to: 10 * hour }, 1000).ticks(90, -330);
  assert.equal(halfAway.ticks[0], hour / 2);
  for (const length of [1, 60_000, 86_400_000, 400 * 86_400_000, 1e14]) {
    const few = new TimeScale({ from: 0, to: length }, 300).ticks(90, 0);
    assert.ok(few.ticks.length <= 200, `${length}`);
  }
  assert.match(tickText(0, 1000), /^\d\d:\d\d:\d\d$/);
  assert.match(tickText(0, hour), /^\d\d:\d\d$/);
  assert.match(tickText(0, 24 * hour), /^\d{4}-\d\d-\d\d$/);
});

test("a window stays within what there is, and can be told apart", () => {
  assert.deepEqual(within({ from: -500, to: 500 }, bounds), { from: 0, to: 1000 });
  assert.deepEqual(within({ from: 99_900, to: 100_900 }, bounds), { from: 99_000, to: 100_000 });
  assert.deepEqual(within({ from: -1, to: 1e9 }, bounds), bounds);
  assert.deepEqual(within({ from: 5000, to: 5000 }, bounds), { from: 5000, to: 5000 + SHORTEST_MS });
  assert.deepEqual(moved({ from: 1000, to: 3000 }, 1e9, bounds), { from: 98_000, to: 100_000 });
  assert.deepEqual(resized({ from: 1000, to: 3000 }, "from", 9000, bounds), { from: 2000, to: 3000 });
  assert.deepEqual(resized({ from: 1000, to: 3000 }, "to", 1e9, bounds), { from: 1000, to: 100_000 });
  assert.deepEqual(zoomed({ from: 10_000, to: 20_000 }, 0.5, 12_000, bounds), { from: 11_000, to: 16_000 });
});
