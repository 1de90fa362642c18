import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { skip, Stage } from "./help/pages.js";

suite("editors with Yjs", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("see each other's selections, also where the text moved, and no more once one is closed", async (t) => {
    const visit = stage.visit(t);
    const context = await visit.newContext();
    const open = async (userId) => {
      const page = visit.watch(await context.newPage());
      await page.goto(visit.address(userId, { page: "editor" }));
      await page.waitForFunction(() => window.room?.epoch);
      return page;
    };
    const alice = await open("alice");
    await alice.locator("#text").fill("the quick brown fox");
    const bob = await open("bob");
    const select = (page, from, to) => page.locator("#text").evaluate((area, [from, to]) => (area.focus(), area.setSelectionRange(from, to)), [from, to]);
    const sees = async (page, expected) =>
      eventually(`it sees ${JSON.stringify(expected)}`, async () => JSON.stringify(await page.evaluate(() => window.selections())) === JSON.stringify(expected));
    await eventually("bob has the text", async () => (await bob.locator("#text").inputValue()) === "the quick brown fox");
    await bob.bringToFront();
    await select(bob, 4, 9);
    await sees(alice, { bob: "quick" });
    await alice.bringToFront();
    await select(alice, 10, 15);
    await sees(bob, { alice: "brown" });
    await alice.evaluate(() => window.awareness.doc.getText("text").insert(0, "see "));
    await eventually("bob has it", async () => (await bob.locator("#text").inputValue()).startsWith("see "));
    await sees(bob, { alice: "brown" });
    await sees(alice, { bob: "quick" });
    // What the room carries is what Yjs calls a state, as it is.
    const states = await alice.evaluate(() => [...window.awareness.getStates().values()].map(({ user }) => user.name).sort());
    assert.deepEqual(states, ["alice", "bob"]);
    await alice.close();
    await sees(bob, {});
    assert.equal(await bob.evaluate(() => window.awareness.getStates().size), 1);
  });
});
