import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

suite("two pages", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("see each other's cursors", async (t) => {
    const visit = stage.visit(t);
    const [alice, bob] = [await visit.open("alice"), await visit.open("bob")];
    await eventually("both see both", async () => (await look(alice)).people.length === 2 && (await look(bob)).people.length === 2);
    await alice.evaluate(async () => {
      for (let n = 1; n <= 40; n++) {
        room.moveCursor({ n, at: Date.now() });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    });
    const moves = async () => (await heard(bob, "updated")).filter(({ detail }) => detail.participant.cursor);
    await eventually("the last one", async () => (await moves()).at(-1)?.detail.participant.cursor.n === 40);
    const delays = (await moves()).map(({ at, detail }) => at - detail.participant.cursor.at).sort((a, b) => a - b);
    t.diagnostic(`delay of ${delays.length} cursors: p50 ${delays[Math.floor(delays.length * 0.5)]} ms, p95 ${delays[Math.floor(delays.length * 0.95)]} ms`);
    assert.ok(delays.length > 20);
  });
});
