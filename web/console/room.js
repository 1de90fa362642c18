import { watchRoom } from "../client.js";
import { BASE, credential, get, list as listOf, path } from "./api.js";
import { ServerClock } from "./clock.js";
import { h, replace, said, setText } from "./dom.js";
import { count, instant } from "./format.js";
import { Leases } from "./leases.js";
import { closeRoom, liftBlock, lockRoom } from "./moderation.js";
import { live, notice, sentence, title } from "./parts.js";
import { People } from "./people.js";
import { roomTabs } from "./room-tabs.js";
import { Stage } from "./stage.js";

/** The figures of the room itself, and who may not join: no event tells of them. */
const REFRESH_MS = 5000;
const TICK_MS = 250;

/** One room as it is now. */
export function roomView({ id: roomId, signal, onUnauthorized }) {
  const clock = new ServerClock();
  const leases = new Leases(roomId, clock);
  const status = live();
  const problem = notice();
  const head = h("p", { class: "muted" });
  const lockState = h("span", { class: "pill warn", text: "locked", hidden: true });
  const lock = h("button", { type: "button", text: "Lock…", onclick: () => act(lockRoom(roomId, isLocked)) });
  const close = h("button", { type: "button", class: "danger", text: "Close…", onclick: () => act(closeRoom(roomId)) });
  const blocks = h("ul", { class: "plain", "aria-label": "Blocks" });
  const noBlocks = h("p", { class: "muted", text: "Nobody is kept out." });
  const caption = h("p", { class: "muted" });
  const stage = new Stage(caption);
  let isLocked = false;

  const people = new People({ roomId, clock, leases, onDone: refresh });
  const watch = watchRoom({ url: BASE, roomId, token: credential.get() });
  watch.on("live", (isLive) => {
    status.set(isLive);
    people.isLive = isLive;
    people.show(watch.participants);
  });
  watch.on("participants", () => drawSoon());
  watch.on("ended", ({ code, error }) => {
    status.set(false);
    if (code === "unauthorized") onUnauthorized();
    else problem.show(error ? sentence({ message: error }) : "The room may not be read.");
  });

  let drawing = false;
  /** Once a frame, however many events there were. */
  function drawSoon() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (signal.aborted) return;
      people.show(watch.participants);
      stage.show(watch.participants);
    });
  }

  async function act(decision) {
    if (await decision) refresh(true);
  }

  async function refresh(isOwnDoing) {
    await Promise.all([refreshHead(), refreshBlocks(isOwnDoing)]);
  }

  async function refreshHead() {
    if (watch.live && watch.count === 0) return showHead(null);
    try {
      showHead(await get(path("rooms", roomId), { signal }));
    } catch (error) {
      if (error.status === 404) showHead(null);
    }
  }

  function showHead(room) {
    isLocked = room?.locked === true;
    const facts = room && [`lifetime ${room.generation}`, `open since ${instant(room.openedAtMs)}`, count(room.version, "change")];
    setText(head, facts?.join(" · ") ?? "Nobody is in it; the next join opens its next lifetime.");
    lockState.hidden = !isLocked;
    setText(lock, isLocked ? "Unlock…" : "Lock…");
  }

  async function refreshBlocks(isOwnDoing) {
    try {
      const { found } = await listOf(path("rooms", roomId, "blocks"), "blocks", { most: 100, signal });
      replace(blocks, found.slice(0, 100).map(block), isOwnDoing);
      setText(noBlocks, found.length ? "" : "Nobody is kept out.");
    } catch (error) {
      if (!signal.aborted) setText(noBlocks, error.status === 403 ? "Only an admin of the room sees who is kept out." : sentence(error));
    }
  }

  function block({ userId, blockedUntilMs, by, reason }) {
    const who = userId === null ? h("strong", { text: "everybody" }) : said(userId, { class: "mono" });
    const notes = [`until ${instant(blockedUntilMs)}`, by && `by ${by}`, reason].filter(Boolean).join(" · ");
    const label = userId === null ? "Lift the closing" : `Lift the block of ${userId}`;
    return h(
      "li",
      { class: "block" },
      h("div", {}, who, h("div", { class: "muted" }, said(notes))),
      h("button", { type: "button", text: "Lift…", "aria-label": label, onclick: () => act(liftBlock(roomId, userId)) }),
    );
  }

  const ticking = setInterval(() => people.tick(), TICK_MS);
  const refreshing = setInterval(() => !document.hidden && refresh(), REFRESH_MS);
  signal.addEventListener("abort", () => {
    clearInterval(ticking);
    clearInterval(refreshing);
    watch.close();
    people.close();
  });
  leases.keep({ signal, inSight: () => people.inSight, count: () => watch.count });
  refresh();

  return {
    title: roomId,
    element: h(
      "div",
      { class: "view fill" },
      h("header", { class: "view-head" }, title(roomId), lockState, status.element),
      h("div", { class: "tools" }, roomTabs(roomId, "live"), head, h("div", { class: "buttons end" }, lock, close)),
      problem.element,
      h(
        "div",
        { class: "columns fill" },
        people.element,
        h(
          "div",
          { class: "side" },
          h("section", { class: "panel pad", "aria-labelledby": "stage-h" }, h("h2", { id: "stage-h", text: "Cursors" }), stage.element, caption),
          h("section", { class: "panel pad", "aria-labelledby": "blocks-h" }, h("h2", { id: "blocks-h", text: "Kept out" }), noBlocks, blocks),
        ),
      ),
    ),
  };
}
