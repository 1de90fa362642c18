import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { inTurns, openConsole } from "./help/console.js";
import { skip, Stage } from "./help/pages.js";

const ROOMS = 10_000;
const PEOPLE = 5000;
/** In the document at a time; a row has some six elements. */
const MOST_ELEMENTS = 700;
/** Of which nobody says that the page hangs, on a machine that is busy with other tests; alone it is 50 ms at most. */
const LONGEST_TASK_MS = 300;

/** Scrolls from end to end and back; how long tasks of the page took meanwhile, by a trace, and its frames. */
async function scrolled(stage, page, list = ".virtual") {
  await page.evaluate(() => {
    window.frames_ = [];
    const next = (before) => requestAnimationFrame((now) => (window.frames_.push(now - before), next(now)));
    requestAnimationFrame(next);
  });
  const browser = stage.browser.playwright;
  await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] });
  const most = await page.locator(list).evaluate(async (list) => {
    let most = 0;
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (const step of [700, 4000, 23_000, -23_000, -4000, -700]) {
      for (let n = 0; n < 40; n++) {
        list.scrollTop += step;
        await frame();
        most = Math.max(most, document.getElementsByTagName("*").length);
      }
    }
    return most;
  });
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const renderers = new Set(
    traceEvents.filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents
    .filter(({ name, pid, tid, dur }) => name === "RunTask" && dur && renderers.has(`${pid} ${tid}`))
    .map(({ dur }) => dur / 1000);
  const frames = (await page.evaluate(() => window.frames_)).sort((a, b) => a - b);
  const share = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  assert.ok(tasks.length > 100 && frames.length > 200, "the trace has nothing of the page");
  return {
    most,
    longestTask: Math.max(...tasks),
    said: `longest task ${Math.max(...tasks).toFixed(0)} ms, frames p50 ${share(frames, 0.5).toFixed(1)} ms, p99 ${share(frames, 0.99).toFixed(1)} ms, longest ${frames.at(-1).toFixed(0)} ms, ${most} elements at most`,
  };
}

suite("the console with much in it", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start({ settings: { LEASEHOLD_SWEEP_INTERVAL_MS: "60s" } });
    const join = (roomId, userId) =>
      stage.service.ask("POST", `/rooms/${roomId}/join`, { userId, leaseMs: 300_000, metadata: { name: `Person ${userId}` }, cursor: { x: 0.5, y: 0.5 } });
    const number = (n) => String(n).padStart(5, "0");
    await inTurns(ROOMS - 1, 50, (n) => join(`room-${number(n)}`, "alice"));
    await inTurns(PEOPLE, 50, (n) => join("town-hall", `u-${number(n)}`));
  });
  after(() => stage.end());

  test("stays smooth with 10,000 rooms, which all are in the list", async (t) => {
    const visit = stage.visit(t);
    const page = await openConsole(visit, "#/rooms");
    await page.getByText("10,000 rooms, 14,999 people").waitFor({ timeout: 30_000 });
    const { most, longestTask, said } = await scrolled(stage, page);
    t.diagnostic(said);
    assert.ok(most < MOST_ELEMENTS, said);
    assert.ok(longestTask < LONGEST_TASK_MS, said);

    await page.getByRole("list", { name: "Rooms" }).getByRole("link").first().focus();
    await page.keyboard.press("End");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^town-hall/);
    assert.equal(await page.evaluate(() => document.activeElement.parentElement.getAttribute("aria-posinset")), "10000");
    // Far from the first thousand it is kept up as well.
    await stage.service.ask("POST", "/rooms/town-hall-2/join", { userId: "bob", leaseMs: 300_000 });
    await page.getByRole("link", { name: "town-hall-2" }).waitFor();
  });

  test("stays smooth in a room of 5,000, of whom somebody always moves", async (t) => {
    const visit = stage.visit(t);
    const page = await openConsole(visit, "#/rooms/town-hall");
    await page.getByText("5,000 people").first().waitFor({ timeout: 30_000 });
    let n = 0;
    const moving = setInterval(() => {
      const userId = `u-${String(n++ % PEOPLE).padStart(5, "0")}`;
      stage.service.ask("POST", "/rooms/town-hall/cursor", { userId, epoch: 1, cursor: { x: Math.random(), y: Math.random() } });
    }, 50);
    t.after(() => clearInterval(moving));
    const { most, longestTask, said } = await scrolled(stage, page);
    t.diagnostic(said);
    assert.ok(most < MOST_ELEMENTS + 700, said);
    assert.ok(longestTask < LONGEST_TASK_MS, said);

    // What is typed finds those who are out of sight.
    await page.getByRole("searchbox").fill("person u-04321");
    await page.getByRole("button", { name: "Person u-04321" }).click();
    await page.getByRole("dialog").getByText("u-04321", { exact: true }).waitFor();
  });

  test("stays smooth in a history of 5,000 sessions", async (t) => {
    const visit = stage.visit(t);
    const page = await openConsole(visit, "#/rooms/town-hall/history");
    await page.getByText("1 lifetime and 5,000 sessions in the window").waitFor({ timeout: 30_000 });
    const { most, longestTask, said } = await scrolled(stage, page, ".lanes");
    t.diagnostic(said);
    assert.ok(most < MOST_ELEMENTS, said);
    assert.ok(longestTask < LONGEST_TASK_MS, said);

    await page.getByRole("group", { name: "Sessions" }).getByRole("button").first().focus();
    for (let n = 0; n < 30; n++) await page.keyboard.press("ArrowDown");
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^u-\d{5}, epoch 1/);
    const slider = page.getByRole("slider", { name: "Time window" });
    await slider.focus();
    for (let n = 0; n < 10; n++) await page.keyboard.press("+");
    assert.match(await slider.getAttribute("aria-valuetext"), /^1\.0 s from /);
  });
});
