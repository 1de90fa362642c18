import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

const LEASE_MS = 3000;
/** Several leases: what a laptop's night is to the default one. */
const ASLEEP_MS = 15_000;

suite("a page that sleeps", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("is gone within its lease, joins once when it wakes, and never believes the old session", async (t) => {
    const visit = stage.visit(t);
    // How it learns that its session is over.
    visit.expect(/409/);
    const bob = await visit.open("bob");
    const alice = await visit.open("alice", { leaseMs: LEASE_MS });
    await eventually("bob sees alice", async () => (await look(bob)).people.includes("alice"));
    await eventually("alice is there", async () => (await look(alice)).status === "connected");
    const { epoch } = await look(alice);

    // Nothing of the page runs any more, timers and answers wait: as on a machine that sleeps.
    const session = await alice.context().newCDPSession(alice);
    const stopped = new Promise((resolve) => session.once("Debugger.paused", resolve));
    await session.send("Debugger.enable");
    await session.send("Debugger.pause");
    await stopped;
    await pass(ASLEEP_MS);
    const [gone] = await heard(bob, "left");
    assert.deepEqual([gone.detail.userId, gone.detail.reason], ["alice", "expired"]);
    await session.send("Debugger.resume");
    await session.send("Debugger.disable");

    await eventually("alice is back", async () => {
      const { status, epoch: now } = await look(alice);
      assert.ok(status !== "connected" || now > epoch, "wrongly connected");
      return status === "connected";
    });
    // A second join would have come by now.
    await pass(2 * LEASE_MS);
    assert.equal((await look(alice)).epoch, epoch + 1);
    assert.deepEqual((await look(bob)).people, ["bob", "alice"]);
    assert.equal((await heard(bob, "left")).length, 1);
  });
});
