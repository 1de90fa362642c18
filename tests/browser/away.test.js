import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

/** Longer than the default lease of 15 seconds: leases must stand still. */
const AWAY_MS = 20_000;

suite("pages whose service goes away, with its database", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  for (const [what, awayMs] of [["is restarted", 0], ["is away for longer than a lease", AWAY_MS]]) {
    test(`see nobody go or come where it ${what}`, async (t) => {
      const visit = stage.visit(t);
      // The browser itself says of each request that nobody answered it.
      visit.expect(/ERR_|WebSocket connection/);
      const people = ["alice", "bob"];
      const pages = [await visit.open("alice"), await visit.open("bob", { socket: true })];
      const all = async (is) => (await Promise.all(pages.map(look))).every(is);
      await eventually("everybody sees everybody", () => all(({ people: seen, live }) => live && `${[...seen].sort()}` === `${people}`));
      const before = await Promise.all(pages.map(look));
      for (const page of pages) await page.evaluate(() => window.heard.splice(0));

      await stage.service.halt();
      await eventually("each says that it does not know", () => all(({ live, status }) => !live || status !== "connected"));
      await pass(awayMs);
      await stage.service.serve();
      await eventually("each is back", () => all(({ live, status }) => live && status === "connected"), 20_000);
      // Whoever would be put out by an old lease is so by now.
      await pass(2000);

      assert.deepEqual(await Promise.all(pages.map(look)), before, "the same epochs, the same people");
      for (const page of pages) {
        assert.deepEqual(await heard(page, "left"), []);
        assert.deepEqual(await heard(page, "joined"), []);
        const statuses = (await heard(page, "status")).map(({ detail }) => detail);
        if (awayMs > 0) assert.ok(statuses.includes("lost"), `never wrongly connected: ${statuses}`);
      }
      const { sessions } = await visit.ask("GET", "/generations/1/sessions");
      assert.deepEqual(sessions.map(({ endedAtMs }) => endedAtMs ?? null), [null, null]);
    });
  }
});
