import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerClock, leaseLeft } from "../../web/console/clock.js";
import { Directory, inOrder } from "../../web/console/directory.js";
import { address, parse } from "../../web/console/route.js";
import { extent, placeOf } from "../../web/console/stage.js";
import { inSight, toShow } from "../../web/console/window.js";

const room = (roomId, memberCount = 1, generation = 1) => ({ roomId, memberCount, generation });
const ids = (directory) => directory.list.map(({ roomId }) => roomId).join(" ");

test("only the rows in sight are drawn, with a few on either side", () => {
  const view = { rowHeight: 50, height: 500, length: 10_000, around: 5 };
  assert.deepEqual(inSight({ ...view, scrollTop: 0 }), { first: 0, last: 15 });
  assert.deepEqual(inSight({ ...view, scrollTop: 100_025 }), { first: 1995, last: 2016 });
  assert.deepEqual(inSight({ ...view, scrollTop: 499_500 }), { first: 9985, last: 10_000 });
  // The list became shorter under the scroll.
  assert.deepEqual(inSight({ ...view, scrollTop: 499_500, length: 3 }), { first: 3, last: 3 });
  assert.deepEqual(inSight({ ...view, scrollTop: 0, length: 0 }), { first: 0, last: 0 });
});

test("a row is scrolled to by no more than it takes", () => {
  const view = { scrollTop: 1000, height: 500, rowHeight: 50 };
  assert.deepEqual([25, 10, 40].map((index) => toShow(index, view)), [1000, 500, 1550]);
});

test("rooms are kept in the service's order by snapshots and events", () => {
  const directory = new Directory();
  directory.replace(null, [room("a"), room("c"), room("𝒳")], null);
  directory.put(null, room("b"));
  directory.put(null, room("\uffee"));
  assert.equal(ids(directory), "a b c \uffee 𝒳");
  directory.put(null, room("c", 7));
  assert.equal(directory.list[2].memberCount, 7);
  directory.put(null, room("c", 1, 3));
  // Late news of a lifetime that is over.
  directory.put(null, room("c", 9, 2));
  directory.remove(null, room("c", 0, 2));
  assert.deepEqual(directory.list[2], room("c", 1, 3));
  directory.remove(null, room("c", 0, 3));
  assert.equal(ids(directory), "a b \uffee 𝒳");
  assert.ok(inOrder("a", "ab") < 0 && inOrder("b", "ab") > 0 && inOrder("", "") === 0);
});

test("pages follow each other, and news of a page that begins elsewhere by now is dropped", () => {
  const directory = new Directory();
  assert.equal(directory.missing, null);
  directory.replace(null, [room("a"), room("b")], "after b");
  assert.equal(directory.missing, "after b");
  directory.replace("after b", [room("c"), room("d")], "after d");
  directory.replace("after d", [room("e")], null);
  assert.deepEqual(directory.pages, [null, "after b", "after d"]);
  assert.equal(ids(directory), "a b c d e");
  assert.deepEqual([0, 1, 2, 4, 99].map((index) => directory.pageOf(index)), [null, null, "after b", "after d", "after d"]);

  // The first page holds one room less, so that the second begins earlier.
  directory.replace(null, [room("a"), room("aa")], "after aa");
  directory.replace("after b", [room("x")], null);
  directory.put("after b", room("y"));
  assert.equal(ids(directory), "a aa c d e");
  directory.replace("after aa", [room("b"), room("c")], "after c");
  assert.equal(ids(directory), "a aa b c e");
  directory.replace("after aa", [room("b")], null);
  assert.equal(ids(directory), "a aa b");
});

test("a lease is measured by the service's clock, of which the earliest news is the nearest", () => {
  let now = 0;
  const clock = new ServerClock(() => now);
  assert.equal(clock.now(), null);
  clock.observe(1_000_000);
  now = 1000;
  assert.equal(clock.now(), 1_001_000);
  // This answer was 300 ms on its way.
  clock.observe(1_000_700);
  assert.equal(clock.now(), 1_001_000);
  clock.observe(1_001_200);
  assert.equal(clock.now(), 1_001_200);
  // Set back, or drifted: after a minute what was known holds no longer.
  now = 62_000;
  clock.observe(1_000_000);
  assert.equal(clock.now(), 1_000_000);

  const lease = { lastSeenMs: 10_000, expiresAtMs: 30_000 };
  assert.deepEqual([5000, 10_000, 25_000, 31_000].map((at) => leaseLeft(lease, at)), [1, 1, 0.25, 0]);
  assert.equal(leaseLeft(lease, null), 0);
});

test("an address within the console and what it names are each other's", () => {
  for (const route of [
    { view: "rooms", id: null, part: null, query: { prefix: "a&b=c#d" } },
    { view: "rooms", id: "a/b?c#d%", part: "history", query: { from: "1", to: "2" } },
    { view: "people", id: "<img src=x>", part: null, query: {} },
    { view: "signals", id: null, part: null, query: {} },
  ]) {
    assert.deepEqual(parse(address(route)), route);
  }
  for (const other of ["", "#", "#/nothing/here", "#/constructor"]) assert.equal(parse(other).view, "rooms");
  assert.equal(parse("#/people/%E0%A4%A").id, "%E0%A4%A");
});

test("a cursor has a place by several names, and none where it says anything else", () => {
  assert.deepEqual(placeOf({ x: 1, y: 2 }), [1, 2]);
  assert.deepEqual(placeOf({ line: 10, column: 4 }), [4, 10]);
  for (const none of [null, {}, { x: "1", y: 2 }, { x: null, y: 1 }, { x: 1 }, { x: NaN, y: 1 }]) assert.equal(placeOf(none), null);
  assert.deepEqual(extent([0.2, 0.9]), [0, 1]);
  assert.deepEqual(extent([3, 640]), [0, 1000]);
  assert.deepEqual(extent([-3, 5]), [-5, 5]);
  assert.deepEqual(extent([]), [0, 1]);
});
