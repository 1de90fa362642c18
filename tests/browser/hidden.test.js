import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

/** Longer than the default lease of 15 seconds, and than the minute between a hidden page's timers. */
const HIDDEN_MS = 75_000;
/** Chromium begins with that minute after five others; here it need not be waited for. */
const SOON = "--enable-features=IntensiveWakeUpThrottling:grace_period_seconds/2";

suite("pages that are hidden", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start({ flags: [SOON] });
  });
  after(() => stage.end());

  test("for longer than a lease have never left, and are connected when they are seen again", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/Creating a worker from 'blob:|worker-src/);
    const within = stage.browser.tabs;
    const witness = await visit.open("witness");
    const hidden = {
      usual: await visit.open("usual", { within }),
      socket: await visit.open("socket", { within, socket: true }),
      // By the longer lease alone.
      "without-worker": await visit.open("without-worker", { within, policy: { "worker-src": "'none'" } }),
      // By the worker's timers alone.
      "without-lease": await visit.open("without-lease", { within, hiddenLeaseMs: 0 }),
    };
    const everybody = ["witness", ...Object.keys(hidden)];
    await eventually("everybody is seen", async () => `${(await look(witness)).people}` === `${everybody}`);
    for (const page of Object.values(hidden)) await page.evaluate(countTicks);
    const front = visit.watch(await within.newPage());
    await front.goto(stage.site.address("empty"));
    await front.bringToFront();
    await pass(HIDDEN_MS);

    const ticks = await Promise.all(Object.values(hidden).map((page) => page.evaluate(() => window.hiddenTicks)));
    t.diagnostic(`timers of a second fired ${ticks} times in ${HIDDEN_MS / 1000} s`);
    // Otherwise the browser did not hide them as it does at home, and nothing is shown.
    for (const count of ticks) assert.ok(count < HIDDEN_MS / 1000 / 3, `${count}`);
    for (const [userId, page] of Object.entries(hidden)) {
      await page.bringToFront();
      await eventually(`${userId} is seen again`, () => page.evaluate(() => document.visibilityState === "visible"));
      const { status, epoch, live, people } = await look(page);
      assert.deepEqual([status, epoch, live, people], ["connected", 1, true, everybody], userId);
      assert.deepEqual(await heard(page, "left"), [], userId);
      assert.deepEqual((await heard(page, "status")).map(({ detail }) => detail), ["connected"], userId);
    }
    assert.deepEqual(await heard(witness, "left"), []);
    const { sessions } = await visit.ask("GET", "/generations/1/sessions");
    assert.deepEqual(sessions.map(({ endedAtMs }) => endedAtMs ?? null), everybody.map(() => null));
  });
});

/** Runs in the page: how often a timer of a second fires while it is hidden. */
function countTicks() {
  window.hiddenTicks = 0;
  setInterval(() => document.visibilityState === "hidden" && window.hiddenTicks++, 1000);
}
