import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { mintToken } from "../../clients/javascript/server/index.js";
import { eventually, KEY, SECRET } from "../../clients/javascript/test/help/service.js";
import { faults, overhang } from "./help/console.js";
import { skip, Stage } from "./help/pages.js";

/** Somebody opens the demo in the visit's room, in a browser of their own. */
async function openDemo(visit, { query = {}, ...options } = {}) {
  const context = await visit.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = visit.watch(await context.newPage());
  await page.goto(`${visit.stage.service.url}/demo?${new URLSearchParams({ room: visit.roomId, ...query })}`);
  return page;
}

const people = (page) => page.locator("#people .name").allTextContents();
const status = (page) => page.locator("#status").textContent();
const log = (page) => page.locator("#log li").allInnerTexts();

async function isConnected(...pages) {
  for (const page of pages) await eventually("it is connected", async () => (await status(page)) === "connected");
}

suite("the demo", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("shows people to each other by name, with the cursors that they move", async (t) => {
    const visit = stage.visit(t);
    const alice = await openDemo(visit, { query: { as: "brave-otter-17" } });
    const bob = await openDemo(visit, { query: { as: "calm-heron-4" } });
    for (const page of [alice, bob]) await eventually("both are there", async () => `${await people(page)}` === "Brave Otter,Calm Heron");
    await alice.locator("#name").fill("<b>Alice</b>");
    await eventually("the new name", async () => (await people(bob))[0] === "<b>Alice</b>");
    await alice.locator("#stage").hover({ position: { x: 100, y: 50 } });
    const { width, height } = await alice.locator("#stage").boundingBox();
    const seen = bob.locator("#stage .cursor:not(.own)");
    const place = () => seen.evaluate((cursor) => [cursor.style.left, cursor.style.top].map(parseFloat));
    await seen.waitFor();
    const [left, top] = await place();
    assert.ok(Math.abs(left - 10_000 / width) < 0.2 && Math.abs(top - 5000 / height) < 0.3, `${left} ${top}`);
    assert.equal(await seen.innerText(), "<b>Alice</b>");
    await alice.locator("#stage").focus();
    await alice.keyboard.press("ArrowRight");
    await eventually("the key's step", async () => Math.abs((await place())[0] - left - 3) < 0.2);
    // Whoever copies the address is somebody else.
    assert.equal(new URL(alice.url()).search, `?${new URLSearchParams({ room: visit.roomId })}`);
  });

  test("without a room in its address makes one up, and opens another window on it", async (t) => {
    const visit = stage.visit(t);
    const context = await visit.newContext();
    const first = visit.watch(await context.newPage());
    await first.goto(`${stage.service.url}/demo`);
    await isConnected(first);
    const opened = context.waitForEvent("page");
    await first.locator("#open-person").click();
    const second = visit.watch(await opened);
    await eventually("two people", async () => (await people(first)).length === 2 && (await people(second)).length === 2);
    assert.match(await first.locator("#room-name").textContent(), /^[a-z]+-room-\d+$/);
  });

  test("loses a reconnect race: the old epoch is told to stop, its goodbye changes nothing", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/status of 409/);
    const alice = await openDemo(visit);
    const bob = await openDemo(visit);
    await eventually("two people", async () => (await people(bob)).length === 2);
    await alice.locator("#race").click();
    await eventually("the race is over", async () => (await log(alice)).some((line) => line.includes("leave")));
    const told = (await log(alice)).join("\n");
    assert.match(told, /join · epoch 2\s+200/);
    assert.match(told, /heartbeat · epoch 1\s+409 superseded/);
    assert.match(told, /leave · epoch 1\s+204\s+It names epoch 1, and epoch 2 lives: it changes nothing/);
    await isConnected(alice);
    assert.equal((await people(bob)).length, 2);
    assert.ok(!(await log(bob)).some((line) => line.includes("goodbye")));
  });

  test("without network is reconnecting to others, then gone, and comes back with a higher epoch", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/status of 409/);
    const alice = await openDemo(visit, { query: { as: "brave-otter-17" } });
    const bob = await openDemo(visit);
    await eventually("two people", async () => (await people(bob)).length === 2);
    await alice.getByRole("button", { name: "Drop the network" }).click();
    const pill = bob.locator("#people li", { hasText: "Brave Otter" }).locator(".pill");
    await eventually("reconnecting", async () => (await pill.textContent()) === "reconnecting");
    await eventually("gone", async () => (await people(bob)).length === 1);
    await eventually("said why", async () => (await log(bob)).some((line) => /Brave Otter\s+expired/.test(line)));
    await eventually("lost", async () => (await status(alice)) === "lost");
    await alice.getByRole("button", { name: "Restore the network" }).click();
    await isConnected(alice);
    await eventually("back", async () => (await people(bob)).length === 2);
    assert.match((await log(alice)).join("\n"), /409 expired[^]*The page joins again/);
    assert.match(await alice.locator("#self-facts").textContent(), /^epoch 2 /);
  });

  test("closed without leaving stays until the lease ends, and is back by itself on the same device", async (t) => {
    const visit = stage.visit(t);
    const bob = await openDemo(visit);
    const alice = await openDemo(visit, { query: { as: "brave-otter-17" } });
    await eventually("two people", async () => (await people(bob)).length === 2);
    // A window with a past of its own, which browsers do not let a page close.
    await alice.goto(`${stage.service.url}/demo?${new URLSearchParams({ room: visit.roomId })}`);
    await isConnected(alice);
    const [{ epoch }] = (await visit.participants()).filter(({ userId }) => userId === "brave-otter-17");
    await alice.locator("#close").click();
    await alice.getByText("nobody was told").waitFor();
    assert.equal((await people(bob)).length, 2);
    await eventually("gone", async () => (await people(bob)).length === 1);
    assert.ok((await log(bob)).some((line) => /Brave Otter\s+expired/.test(line)));
    await alice.getByText("Come back").click();
    await eventually("back", async () => (await people(bob)).length === 2);
    const [again] = (await visit.participants()).filter(({ userId }) => userId === "brave-otter-17");
    assert.equal(again.epoch, epoch + 1);
  });

  test("frozen for longer than the lease joins again by itself; its second device keeps it there meanwhile", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/status of 409/);
    const alice = await openDemo(visit, { query: { as: "brave-otter-17" } });
    await isConnected(alice);
    const opened = alice.context().waitForEvent("page");
    await alice.locator("#open-device").click();
    const second = visit.watch(await opened);
    await isConnected(second);
    await eventually("two devices", async () => (await second.locator("#people .muted").textContent()).includes("2 devices"));
    const freezing = alice.locator("#freeze").click();
    await eventually("one device", async () => !(await second.locator("#people .muted").textContent()).includes("devices"), 15_000);
    assert.deepEqual(await people(second), ["Brave Otter"]);
    await freezing;
    await eventually("two devices again", async () => (await second.locator("#people .muted").textContent()).includes("2 devices"), 20_000);
    assert.ok(!(await log(second)).some((line) => line.includes("Brave Otter")), "somebody came or went");
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`keeps nobody out by how it looks: in the ${colorScheme} axe finds no serious fault, and a phone's width holds all`, async (t) => {
      const visit = stage.visit(t);
      const bob = await openDemo(visit);
      await bob.locator("#stage").hover();
      for (const viewport of [{ width: 1280, height: 800 }, { width: 375, height: 800 }]) {
        const alice = await openDemo(visit, { colorScheme, viewport });
        await isConnected(alice);
        await alice.locator("#stage .cursor").first().waitFor();
        assert.deepEqual(await faults(alice), []);
        assert.ok((await overhang(alice)) <= 0);
        await alice.goto(`${alice.url()}&closed`);
        assert.deepEqual(await faults(alice), []);
      }
    });
  }
});

suite("the demo where a token is needed", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start({ settings: { LEASEHOLD_JWT_HS256_SECRET: SECRET, LEASEHOLD_SERVER_KEYS: KEY } });
  });
  after(() => stage.end());

  test("says so, and joins with one that is pasted, as whom it is of", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/status of 401/);
    const page = await openDemo(visit);
    await page.getByText("This service asks for a token").waitFor();
    assert.deepEqual(await faults(page), []);
    assert.match(await page.locator("#credential code").textContent(), new RegExp(`--room '${visit.roomId}'`));
    await page.locator("#token").fill(mintToken({ sub: "carol", roomIds: [visit.roomId] }, SECRET, { expiresInSeconds: 60 }));
    await page.getByRole("button", { name: "Join" }).click();
    await isConnected(page);
    assert.deepEqual((await visit.participants()).map(({ userId }) => userId), ["carol"]);
    assert.equal(await page.locator("#credential").isVisible(), false);
  });
});
