import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

suite("components of React", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("join once under StrictMode, share it with others of the page, and the last one leaves", async (t) => {
    const visit = stage.visit(t);
    const bob = await visit.open("bob");
    await eventually("bob sees himself", async () => (await look(bob)).people.length === 1);
    const events = await visit.follow();
    const alice = visit.watch(await (await visit.newContext()).newPage());
    const asked = [];
    alice.on("request", (request) => request.method() === "POST" && asked.push(new URL(request.url()).pathname.split("/").at(-1)));
    await alice.goto(visit.address("alice", { page: "react" }));
    const shown = () => alice.locator("p").allTextContents();
    const all = (count) => Array(count).fill("connected: bob,alice");
    await eventually("the first shows both", async () => `${await shown()}` === `${all(1)}`);
    await alice.evaluate(() => window.show("first", "second"));
    await eventually("the second shows both", async () => `${await shown()}` === `${all(2)}`);
    await alice.evaluate(() => window.show("second"));
    // A leave, or a join that is one too many, would have come by now.
    await pass(1000);
    assert.deepEqual(await shown(), all(1));
    assert.deepEqual(asked.filter((kind) => kind !== "heartbeat"), ["join"]);
    assert.deepEqual(events.filter(({ type }) => type !== "snapshot").map(({ type, participant }) => [type, participant.userId, participant.epoch]), [["joined", "alice", 1]]);

    await alice.evaluate(() => window.show());
    await eventually("bob is alone", async () => `${(await look(bob)).people}` === "bob", 3000);
    assert.deepEqual((await heard(bob, "left")).map(({ detail }) => [detail.userId, detail.reason]), [["alice", "left"]]);
    await pass(500);
    assert.deepEqual(asked.filter((kind) => kind !== "heartbeat"), ["join", "leave"]);
  });
});
