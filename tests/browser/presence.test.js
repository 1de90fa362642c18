import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { eventually } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

/** For what must happen within a lease; the rule is tested, not the number. */
const LEASE_MS = 3000;
/** What a lease that ends may take to show. */
const SHOWN_MS = 250;

suite("pages", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  async function areThere(people, ...pages) {
    const all = async () => Promise.all(pages.map(async (page) => (await look(page)).people));
    await eventually(`everybody sees ${people}`, async () => (await all()).every((seen) => `${seen}` === `${people}`));
  }

  test("see each other's cursors", async (t) => {
    const visit = stage.visit(t);
    const alice = await visit.open("alice");
    const bob = await visit.open("bob");
    await areThere(["alice", "bob"], alice, bob);
    await alice.evaluate(async () => {
      for (let n = 1; n <= 40; n++) {
        room.moveCursor({ n, at: Date.now() });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    });
    const moves = async () => (await heard(bob, "updated")).filter(({ detail }) => detail.participant.cursor);
    await eventually("the last one", async () => (await moves()).at(-1)?.detail.participant.cursor.n === 40);
    const delays = (await moves()).map(({ at, detail }) => at - detail.participant.cursor.at).sort((a, b) => a - b);
    const share = (part) => delays[Math.floor(delays.length * part)];
    t.diagnostic(`delay of ${delays.length} cursors: p50 ${share(0.5)} ms, p95 ${share(0.95)} ms`);
    assert.ok(delays.length > 20);
  });

  test("of which one is killed see it reconnecting, and gone within its lease", async (t) => {
    const visit = stage.visit(t);
    const bob = await visit.open("bob");
    const alice = await visit.open("alice", { leaseMs: LEASE_MS });
    await areThere(["bob", "alice"], bob, alice);
    const events = await visit.follow();
    const session = await alice.context().newCDPSession(alice);
    session.send("Page.crash").catch(() => {});
    await eventually("alice has left", async () => (await heard(bob, "left")).length === 1);
    const [{ detail }] = await heard(bob, "left");
    assert.deepEqual([detail.userId, detail.reason], ["alice", "expired"]);
    await eventually("so does who follows", () => events.at(-1).type === "left");
    // All by the service's own clock; its history has when the lease ended.
    const { sessions } = await visit.ask("GET", "/generations/1/sessions");
    const { lastSeenMs, endedAtMs } = sessions.find(({ userId }) => userId === "alice");
    assert.equal(endedAtMs, lastSeenMs + LEASE_MS);
    const [reconnecting, left] = events.slice(-2);
    assert.equal(reconnecting.participant.status, "reconnecting");
    const late = [reconnecting.asOfMs - lastSeenMs - LEASE_MS / 2, left.asOfMs - endedAtMs];
    t.diagnostic(`shown ${late.join(" and ")} ms after it was so`);
    for (const ms of late) assert.ok(ms >= 0 && ms <= SHOWN_MS, `${late}`);
  });

  test("that are loaded again stay, although the leave of the old page arrives late", async (t) => {
    const visit = stage.visit(t);
    const way = await visit.slowWay(({ method, url }) => method === "POST" && url.endsWith("/leave"));
    const bob = await visit.open("bob");
    const alice = await visit.open("alice", { url: way.url });
    await areThere(["bob", "alice"], alice, bob);
    const before = await look(alice);
    await alice.reload();
    await eventually("alice has joined again", async () => (await look(alice)).epoch === 2);
    const now = await look(alice);
    assert.equal(now.deviceId, before.deviceId);
    assert.equal(way.heldNow, 1);
    await way.letGo();
    assert.deepEqual(way.late.map(({ body, status }) => [body.epoch, status]), [[1, 204]]);
    await areThere(["bob", "alice"], alice, bob);
    assert.deepEqual(await heard(bob, "left"), []);
    const [, { epoch, status }] = await visit.participants();
    assert.deepEqual([epoch, status], [2, "connected"]);
  });

  test("of the same person are one person, and closing one keeps the other", async (t) => {
    const visit = stage.visit(t);
    const bob = await visit.open("bob");
    const first = await visit.open("alice");
    const second = await visit.open("alice", { beside: first });
    await areThere(["bob", "alice"], bob, first, second);
    const devices = async () => (await visit.participants())[1]?.devices?.length ?? 1;
    assert.equal(await devices(), 2);
    await first.close();
    await eventually("one device", async () => (await devices()) === 1);
    await areThere(["bob", "alice"], bob, second);
    assert.deepEqual(await heard(bob, "left"), []);
    assert.equal((await look(second)).status, "connected");
  });

  test("leave as they are closed, long before their lease ends", async (t) => {
    const visit = stage.visit(t);
    const bob = await visit.open("bob");
    const alice = await visit.open("alice", { leaseMs: 60_000 });
    await areThere(["bob", "alice"], bob, alice);
    await alice.close();
    await areThere(["bob"], bob);
    assert.deepEqual((await heard(bob, "left")).map(({ detail }) => detail.reason), ["left"]);
  });

  test("that are duplicated are two devices, those that are loaded again one", async (t) => {
    const visit = stage.visit(t);
    const first = await visit.open("alice");
    const before = await look(first);
    await first.reload();
    await eventually("it has joined again", async () => (await look(first)).epoch === 2);
    assert.equal((await look(first)).deviceId, before.deviceId);
    const opened = first.waitForEvent("popup");
    // Which gets a copy of what the tab has stored, as a duplicated tab does.
    await first.evaluate(() => void window.open(location.href));
    const second = visit.watch(await opened);
    await second.waitForFunction(() => window.room?.epoch);
    assert.notEqual((await look(second)).deviceId, before.deviceId);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal((await look(first)).status, "connected");
    const [{ devices }] = await visit.participants();
    assert.equal(devices.length, 2);
  });

  test("that one leaves and comes back to join again", async (t) => {
    const visit = stage.visit(t);
    const bob = await visit.open("bob");
    const alice = await visit.open("alice", { within: stage.browser.tabs });
    await areThere(["bob", "alice"], bob, alice);
    await alice.evaluate(() => (window.sameAsBefore = true));
    await alice.goto(stage.site.address("empty"));
    await areThere(["bob"], bob);
    await alice.goBack({ waitUntil: "commit" });
    assert.equal(await alice.evaluate(() => window.sameAsBefore), true, "the browser did not keep the page");
    await areThere(["bob", "alice"], bob, alice);
    const { epoch, status, live } = await look(alice);
    assert.deepEqual([epoch, status, live], [2, "connected", true]);
  });

  test("whose policy forbids workers keep their membership by their own timers", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/Creating a worker from 'blob:|worker-src/);
    const alice = await visit.open("alice", { leaseMs: LEASE_MS, policy: { "worker-src": "'none'" } });
    await new Promise((resolve) => setTimeout(resolve, 2 * LEASE_MS));
    const { epoch, status } = await look(alice);
    assert.deepEqual([epoch, status], [1, "connected"]);
    assert.deepEqual((await heard(alice, "status")).map(({ detail }) => detail), ["connected"]);
  });
});
