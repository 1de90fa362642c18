import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { eventually, KEY, SECRET } from "../../clients/javascript/test/help/service.js";
import { mintToken } from "../../clients/javascript/server/index.js";
import { faults, openConsole, overhang } from "./help/console.js";
import { skip, Stage } from "./help/pages.js";

const LEASE = 300_000;
const VIEWS = (room, person) => [
  "#/rooms",
  `#/rooms/${encodeURIComponent(room)}`,
  `#/rooms/${encodeURIComponent(room)}/history`,
  "#/people",
  `#/people/${person}`,
  "#/signals",
  "#/webhooks",
];

suite("the console", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  const join = (visit, userId, more = {}) => visit.ask("POST", "/join", { userId, leaseMs: LEASE, ...more });
  const inRoom = (visit, part = "") => `#/rooms/${encodeURIComponent(visit.roomId)}${part}`;

  test("shows rooms and their counts as they change, and finds them by how they begin", async (t) => {
    const visit = stage.visit(t);
    await join(visit, "alice");
    const page = await openConsole(visit, "#/rooms");
    const row = page.getByRole("link", { name: visit.roomId });
    await row.getByText("1 person").waitFor();
    await join(visit, "bob");
    await row.getByText("2 people").waitFor();
    await page.getByRole("searchbox").fill("no such room");
    await page.getByText("No room has anybody in it.").waitFor();
    await page.getByRole("searchbox").fill(visit.roomId.slice(0, 5));
    await row.click();
    await page.getByRole("heading", { level: 1, name: visit.roomId }).waitFor();
    await page.goBack();
    assert.equal(await page.getByRole("searchbox").inputValue(), visit.roomId.slice(0, 5));
  });

  test("shows a room's people, with a lease that runs out and is renewed", async (t) => {
    const visit = stage.visit(t);
    const { epoch } = await visit.ask("POST", "/join", { userId: "alice", leaseMs: 40_000, metadata: { name: "Alice" } });
    const page = await openConsole(visit, inRoom(visit));
    const row = page.getByRole("button", { name: "Alice" });
    await row.waitFor();
    const left = () => row.locator(".bar i").evaluate((bar) => new DOMMatrix(getComputedStyle(bar).transform).a);
    await eventually("a part of the lease is over", async () => (await left()) < 0.9);
    await visit.ask("POST", "/heartbeat", { userId: "alice", epoch });
    await eventually("it is renewed", async () => (await left()) > 0.92);
    await join(visit, "bob");
    await page.getByRole("button", { name: "bob" }).waitFor();
  });

  test("says that nothing is kept up while the service is away, and catches up by itself", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/Failed to load resource|status of 503/);
    await join(visit, "alice");
    const room = await openConsole(visit, inRoom(visit));
    const rooms = await openConsole(visit, "#/rooms", { within: room.context() });
    const pages = [room, rooms];
    for (const page of pages) await page.getByText("live", { exact: true }).waitFor();
    await stage.service.halt();
    for (const page of pages) await page.getByText("not kept up").waitFor();
    await room.getByText("stands", { exact: true }).waitFor();
    await stage.service.serve();
    await join(visit, "bob");
    for (const page of pages) await page.getByText("live", { exact: true }).waitFor({ timeout: 60_000 });
    await room.getByRole("button", { name: "bob" }).waitFor();
    await rooms.getByRole("link", { name: visit.roomId }).getByText("2 people").waitFor();
  });

  test("removes somebody only after a confirmation, with the reason in the history", async (t) => {
    const visit = stage.visit(t);
    await join(visit, "alice");
    await join(visit, "mallory", { metadata: { name: "Mallory" } });
    const page = await openConsole(visit, inRoom(visit));
    const row = page.getByRole("button", { name: "Mallory" });
    await row.click();
    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByRole("dialog", { name: "Remove mallory?" }).getByRole("button", { name: "Cancel" }).click();
    assert.equal((await visit.participants()).length, 2);

    await row.click();
    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByLabel("Reason").fill("spam");
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await row.waitFor({ state: "detached" });
    await page.getByText("mallory was removed.").waitFor();
    const { sessions } = await visit.ask("GET", "/generations/1/sessions");
    const ended = sessions.find(({ userId }) => userId === "mallory");
    assert.deepEqual([ended.endReason, ended.reason], ["removed", "spam"]);
  });

  test("locks and closes a room, keeps people out and lifts that again", async (t) => {
    const visit = stage.visit(t);
    await join(visit, "alice");
    await join(visit, "mallory");
    const page = await openConsole(visit, inRoom(visit));
    // The room is asked for while it closes.
    visit.expect(/status of 404/);
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    await press("Lock…");
    await press("Lock");
    await page.getByText("locked", { exact: true }).waitFor();
    assert.equal((await visit.ask("GET", "")).locked, true);
    await press("Unlock…");
    await press("Unlock");
    await page.getByText("locked", { exact: true }).waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "mallory" }).click();
    await press("Block…");
    await press("Block");
    await press("Lift the block of mallory");
    assert.equal((await join(visit, "mallory")).code, "blocked");
    await press("Lift");
    await page.getByText("Nobody is kept out.").waitFor();
    assert.equal(await page.getByRole("list", { name: "Blocks" }).getByRole("listitem").count(), 0);
    assert.equal((await join(visit, "mallory")).epoch, 2);

    await press("Close…");
    await press("Close the room");
    await page.getByText("Nobody is here.").waitFor();
    assert.deepEqual(await visit.participants(), []);
  });

  test("takes whatever people call themselves as text", async (t) => {
    const visit = stage.visit(t);
    const markup = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>`;
    visit.roomId = `${visit.roomId} ${markup}`;
    await join(visit, markup, {
      deviceId: markup,
      metadata: { name: markup, toString: markup, __proto__: { harmed: 1 } },
      cursor: { x: 0.5, y: 0.5, label: markup },
    });
    await join(visit, "\u202egnol a fo eman eht si siht", { metadata: { name: "x".repeat(2000) }, cursor: { x: "1", y: {} } });
    await join(visit, "javascript:window.harmed=1", { metadata: { name: 7 } });
    await visit.ask("DELETE", `/participants/x?blockForMs=60000&by=${encodeURIComponent(markup)}&reason=${encodeURIComponent(markup)}`);
    for (const hash of VIEWS(visit.roomId, encodeURIComponent(markup))) {
      const page = await openConsole(visit, hash, { width: 375 });
      if (hash.includes(encodeURIComponent(markup))) await page.getByRole("heading", { level: 1 }).filter({ hasText: "onerror" }).waitFor();
      await page.waitForTimeout(700);
      assert.equal(await page.evaluate(() => window.harmed), undefined, hash);
      assert.equal(await page.locator("main img, main script, [onerror]").count(), 0, hash);
      assert.ok((await overhang(page)) <= 0, `${hash} is wider than a phone`);
      await page.close();
    }
  });

  test("moves the focus to the heading of a view, and names it in the title", async (t) => {
    const visit = stage.visit(t);
    await join(visit, "alice");
    const page = await openConsole(visit, "#/rooms");
    await page.getByRole("link", { name: "Signals" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "Signals" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Signals");
    assert.equal(await page.title(), "Signals · Leasehold console");
    await page.goBack();
    assert.equal(await page.title(), "Rooms · Leasehold console");
    await page.goto(`${stage.service.url}/console${inRoom(visit)}`);
    await page.reload();
    await page.getByRole("heading", { level: 1, name: visit.roomId }).waitFor();
  });

  test("draws a room's history, of which the keys and the pointer choose the window", async (t) => {
    const visit = stage.visit(t);
    const { epoch } = await join(visit, "alice");
    await join(visit, "alice");
    await join(visit, "bob", { deviceId: "phone" });
    await visit.ask("POST", "/leave", { userId: "alice", epoch: epoch + 1 });
    await visit.ask("DELETE", "/participants/bob?by=mod&reason=spam");
    await join(visit, "carol");
    await stage.service.halt();
    await new Promise((resolve) => setTimeout(resolve, 4500));
    await stage.service.serve();
    const page = await openConsole(visit, inRoom(visit, "/history"));
    const sessions = page.getByRole("group", { name: "Sessions" }).getByRole("button");
    await eventually("every session is a bar", async () => (await sessions.count()) === 4);
    for (const said of [/alice, epoch 1 .* superseded/, /alice, epoch 2 .* left/, /bob on phone.*removed.*by mod.*spam/, /carol.*still here/]) {
      assert.equal(await page.getByRole("button", { name: said }).count(), 1, String(said));
    }
    await page.getByText("nobody served: leases stood still").waitFor();
    assert.ok((await page.locator(".plane .outage").count()) > 0);
    assert.ok((await page.locator(".plane .band").count()) >= 2);

    await sessions.first().focus();
    await page.keyboard.press("ArrowRight");
    await page.getByText(/alice, epoch 2 .* left/).waitFor();

    const start = page.getByRole("slider", { name: "Start of the window" });
    const at = async () => Number(await start.getAttribute("aria-valuenow"));
    const before = await at();
    await start.press("ArrowRight");
    assert.ok((await at()) > before);
    const box = await start.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + 300, box.y + 10, { steps: 4 });
    await page.mouse.up();
    const dragged = await at();
    assert.ok(dragged > before + 1000);
    // It is part of the address.
    await page.reload();
    await eventually("the window is the same", async () => (await start.count()) === 1 && Math.abs((await at()) - dragged) < 5);
  });

  test("keeps nobody out by how it looks: axe finds no serious fault, and a phone's width holds all", async (t) => {
    const visit = stage.visit(t);
    await join(visit, "alice", { metadata: { name: "Alice" }, cursor: { x: 0.2, y: 0.4 } });
    await join(visit, "bob");
    await join(visit, "bob", { deviceId: "phone" });
    await visit.ask("DELETE", "/participants/carol?blockForMs=60000&reason=noise");
    const found = [];
    for (const scheme of ["light", "dark"]) {
      for (const hash of VIEWS(visit.roomId, "bob")) {
        const page = await openConsole(visit, hash, { scheme, width: scheme === "light" ? 375 : 1280 });
        await page.waitForTimeout(700);
        if (hash === inRoom(visit)) {
          await page.getByRole("button", { name: "bob" }).click();
          found.push(...(await faults(page)).map((fault) => `${scheme} person: ${fault}`));
          await page.getByRole("button", { name: "Block…" }).click();
          found.push(...(await faults(page)).map((fault) => `${scheme} question: ${fault}`));
          await page.getByRole("button", { name: "Cancel" }).click();
        }
        if (hash.endsWith("/history")) {
          await page.getByText("As a table").click();
          await page.getByRole("group", { name: "Sessions" }).getByRole("button").first().click();
        }
        found.push(...(await faults(page)).map((fault) => `${scheme} ${hash}: ${fault}`));
        assert.ok((await overhang(page)) <= 0, `${hash} at ${scheme}`);
        await page.close();
      }
    }
    assert.deepEqual(found, []);
  });
});

suite("the page to begin with", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start();
  });
  after(() => stage.end());

  test("leads on, and has commands for the address at which it was found", async (t) => {
    const visit = stage.visit(t);
    for (const [width, colorScheme] of [
      [375, "light"],
      [1280, "dark"],
    ]) {
      const context = await visit.newContext({ viewport: { width, height: 800 }, colorScheme });
      const page = visit.watch(await context.newPage());
      await page.goto(stage.service.url);
      assert.deepEqual(await faults(page), []);
      assert.ok((await overhang(page)) <= 0);
      const commands = await page.locator("pre").allTextContents();
      assert.ok(commands.length >= 3);
      for (const command of commands) assert.ok(command.includes(`curl ${stage.service.url}/rooms/kitchen/`), command);
      await page.getByRole("link", { name: "Console" }).click();
      await page.getByRole("heading", { level: 1, name: "Rooms" }).waitFor();
    }
  });
});

suite("the console of a service that asks for keys", { skip }, () => {
  let stage;
  before(async () => {
    stage = await Stage.start({ settings: { LEASEHOLD_SERVER_KEYS: KEY, LEASEHOLD_JWT_HS256_SECRET: SECRET } });
  });
  after(() => stage.end());

  test("asks for a key, keeps it in the tab and out of addresses, and forgets it", async (t) => {
    const visit = stage.visit(t);
    // What a refusal is to a browser.
    visit.expect(/status of 401/);
    await visit.ask("POST", "/join", { userId: "alice", leaseMs: LEASE });
    const page = await openConsole(visit, "#/rooms");
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    const field = page.getByLabel("Server key or token");
    await field.waitFor();
    assert.deepEqual(await faults(page), []);
    await field.fill("not a key");
    await field.press("Enter");
    await page.getByText("it is wrong, or has ended").waitFor();
    await field.fill(KEY);
    await field.press("Enter");
    await page.getByRole("link", { name: visit.roomId }).waitFor();

    await page.reload();
    await page.getByRole("link", { name: visit.roomId }).click();
    await page.getByRole("button", { name: "alice" }).waitFor();
    const encoded = encodeURIComponent(KEY);
    assert.ok(asked.length > 5);
    for (const address of [...asked, page.url()]) assert.ok(!address.includes(encoded) && !address.includes("access_token"), address);
    const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie]);
    assert.deepEqual(kept, ["{}", ""]);
    const other = await openConsole(visit, "#/rooms", { within: page.context() });
    await other.getByLabel("Server key or token").waitFor();

    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    await page.reload();
    await field.waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  });

  test("shows whoever may list only some rooms what to do, and asks again once a token has ended", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/status of 40[13]/);
    await visit.ask("POST", "/join", { userId: "alice", leaseMs: LEASE });
    const token = mintToken({ sub: "watcher", scope: "observer", roomPrefixes: ["room "] }, SECRET, { expiresInSeconds: 5 });
    const page = await openConsole(visit, "#/rooms");
    await page.getByLabel("Server key or token").fill(await token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Type a prefix that it may list").waitFor();
    await page.getByRole("searchbox").fill("town hall");
    assert.equal(await page.getByRole("link", { name: "Open town hall" }).getAttribute("href"), "#/rooms/town%20hall");
    await page.getByRole("searchbox").fill("room ");
    await page.getByRole("link", { name: visit.roomId }).waitFor();
    // The leeway for clocks is ten seconds.
    await page.getByText("The credential does not hold any more.").waitFor({ timeout: 40_000 });
  });
});
