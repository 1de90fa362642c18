import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { after, before, suite, test } from "node:test";
import { eventually, KEY, SECRET } from "../../clients/javascript/test/help/service.js";
import { heard, look, skip, Stage } from "./help/pages.js";

/** Each holds for so long, and is replaced a fifth of it before. */
const TOKEN_SECONDS = 10;

suite("pages with tokens that end", { skip }, () => {
  let stage;
  before(async () => {
    // One clock for all, so a token need not hold beyond its end.
    const settings = { LEASEHOLD_SERVER_KEYS: KEY, LEASEHOLD_JWT_HS256_SECRET: SECRET, LEASEHOLD_JWT_LEEWAY: "0s" };
    stage = await Stage.start({ settings });
  });
  after(() => stage.end());

  for (const socket of [undefined, true]) {
    test(`replace them in time, on ${socket ? "an open socket" : "a stream"}`, async (t) => {
      const visit = stage.visit(t);
      const page = await visit.open("alice", { socket, tokenSeconds: TOKEN_SECONDS });
      await eventually("alice is there", async () => (await look(page)).live && (await look(page)).status === "connected");
      const { epoch } = await look(page);
      await eventually("the third token", async () => (await look(page)).tokens >= 3, 4 * TOKEN_SECONDS * 1000);
      // The first has ended by now, and what was opened with it would be closed.
      await eventually("alice sees herself", async () => {
        const { live, people } = await look(page);
        return live && `${people}` === "alice";
      });
      assert.equal((await look(page)).epoch, epoch);
      const statuses = (await heard(page, "status")).map(({ detail }) => detail);
      assert.deepEqual(statuses, ["connected"]);
      assert.deepEqual(await heard(page, "left"), []);
      assert.deepEqual(await heard(page, "ended"), []);
    });
  }

  for (const socket of [undefined, true]) {
    test(`stop, say so and ask no more where the next one is refused, on ${socket ? "an open socket" : "a stream"}`, async (t) => {
      const visit = stage.visit(t);
      visit.expect(/status of 401|WebSocket connection/);
      const page = await visit.open("alice", { socket, tokenSeconds: TOKEN_SECONDS });
      await page.evaluate(() => (window.forged = true));
      await eventually("it stops", async () => (await look(page)).status === "ended", 3 * TOKEN_SECONDS * 1000);
      assert.deepEqual((await heard(page, "ended")).map(({ detail }) => detail.code), ["unauthorized"]);
      // What was under way is answered by then.
      await pass(500);
      const asked = [];
      page.on("request", (request) => asked.push(request.url()));
      page.on("websocket", (dialled) => asked.push(dialled.url()));
      await pass(3000);
      assert.deepEqual(asked, []);
      assert.equal((await look(page)).live, false);
    });
  }

  test("of another room stop, and say why", async (t) => {
    const visit = stage.visit(t);
    visit.expect(/403/);
    const page = visit.watch(await (await visit.newContext()).newPage());
    await page.goto(visit.address("mallory", { tokenSeconds: TOKEN_SECONDS, tokenRoomId: "elsewhere" }));
    await eventually("it stops", async () => (await look(page)).status === "ended");
    const [{ detail }] = await heard(page, "ended");
    assert.equal(detail.code, "forbidden");
    assert.deepEqual(await visit.participants(), []);
  });
});
