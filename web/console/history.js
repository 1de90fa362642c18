import { get, list, path } from "./api.js";
import { h, setText } from "./dom.js";
import { endText } from "./ends.js";
import { count } from "./format.js";
import { notice, sentence, title } from "./parts.js";
import { WINDOWS, lately, outages, padded, windowOf } from "./past.js";
import { roomTabs } from "./room-tabs.js";
import { SessionTable, inWindow } from "./session-table.js";
import { Timeline } from "./timeline.js";

const REFRESH_MS = 10_000;
/** The sessions of more lifetimes at once are too many requests for one look. */
const MOST_LIFETIMES = 30;
const MOST_SESSIONS = 5000;

/** Who was in a room when, and how that ended. */
export function historyView({ id: roomId, query, signal, replaceQuery }) {
  const problem = notice();
  const summary = h("p", { class: "muted", role: "status", text: "reading the history" });
  const table = new SessionTable("person");
  const timeline = new Timeline({
    laneOf: ({ userId, deviceId }) => ({
      key: JSON.stringify([userId, deviceId]),
      label: deviceId === null ? userId : `${userId} · ${deviceId}`,
    }),
    onWindow: windowSet,
  });
  /** By generation: its sessions, and whether more of them may come. */
  const known = new Map();
  let lifetimes = [];
  let gaps = { spans: [], mayRead: true };
  let bounds = { from: 0, to: 1 };
  let now = 1;

  async function refresh(isFirst) {
    try {
      const [answer, { found }] = await Promise.all([
        get(path("rooms", roomId, "participants") + "?view=count", { signal }),
        list(path("rooms", roomId, "generations"), "generations", { most: 1000, signal }),
      ]);
      now = answer.asOfMs;
      lifetimes = found;
      if (found.length === 0) return setText(summary, "Nobody was ever in this room, or what was is purged.");
      const newest = found[0].closedAtMs ?? now;
      bounds = padded({ from: found.at(-1).openedAtMs, to: newest });
      gaps = await outages(bounds, signal);
      show(isFirst ? (windowOf(query) ?? lately(3_600_000, bounds)) : undefined);
      await fetchSessions();
    } catch (error) {
      if (!signal.aborted) problem.show(sentence(error));
    }
  }

  function windowSet(window) {
    replaceQuery({ from: Math.round(window.from), to: Math.round(window.to) });
    tell();
    clearTimeout(windowSet.timer);
    windowSet.timer = setTimeout(() => !signal.aborted && fetchSessions(), 150);
  }

  function overlapping() {
    const { from, to } = timeline.window;
    return lifetimes.filter(({ openedAtMs, closedAtMs }) => openedAtMs <= to && (closedAtMs ?? now) >= from);
  }

  /** Of the lifetimes in the window; those that are over do not change any more. */
  async function fetchSessions() {
    const wanted = overlapping().slice(0, MOST_LIFETIMES);
    const missing = wanted.filter(({ generation, closedAtMs }) => closedAtMs === null || !known.get(generation)?.isOver);
    try {
      for (const { generation, closedAtMs } of missing) {
        const address = path("rooms", roomId, "generations", String(generation), "sessions");
        const { found, more } = await list(address, "sessions", { most: MOST_SESSIONS, signal });
        known.set(generation, { sessions: found, more, isOver: closedAtMs !== null });
        show();
      }
    } catch (error) {
      if (!signal.aborted) problem.show(sentence(error));
    }
    tell();
  }

  function show(window) {
    const sessions = lifetimes.toReversed().flatMap(({ generation }) => known.get(generation)?.sessions ?? []);
    const bands = lifetimes.map(({ generation, openedAtMs, closedAtMs, closeReason, peakMembers }) => ({
      from: openedAtMs,
      to: closedAtMs ?? now,
      label: `Lifetime ${generation} · ${closeReason ? `ended: ${endText(closeReason)}` : "open"} · at most ${count(peakMembers ?? 0, "person", "people")}`,
    }));
    timeline.show({ lifetimes: bands, outages: gaps.spans, sessions, bounds, now }, window);
    tell();
  }

  function tell() {
    const lives = overlapping();
    const shown = lives.slice(0, MOST_LIFETIMES).flatMap(({ generation }) => known.get(generation)?.sessions ?? []);
    const sessions = inWindow(shown, timeline.window, now);
    table.show(sessions, now);
    const parts = [`${count(lifetimes.length, "lifetime")} in all`, `${count(lives.length, "lifetime")} and ${count(sessions.length, "session")} in the window`];
    if (lives.length > MOST_LIFETIMES) parts.push(`sessions of the newest ${MOST_LIFETIMES} only`);
    if (lives.some(({ generation }) => known.get(generation)?.more)) parts.push(`the first ${MOST_SESSIONS} of each lifetime only`);
    if (lives.some(({ purgedUntilMs }) => purgedUntilMs)) parts.push("part of it is purged");
    if (!gaps.mayRead) parts.push("outages need an admin");
    setText(summary, parts.join(" · "));
  }

  const refreshing = setInterval(() => !document.hidden && refresh(false), REFRESH_MS);
  signal.addEventListener("abort", () => {
    clearInterval(refreshing);
    timeline.close();
  });
  refresh(true);

  return {
    title: `History of ${roomId}`,
    element: h(
      "div",
      { class: "view" },
      h("header", { class: "view-head" }, title(roomId)),
      h(
        "div",
        { class: "tools" },
        roomTabs(roomId, "history"),
        summary,
        h(
          "div",
          { class: "buttons end", role: "group", "aria-label": "Time window" },
          WINDOWS.map(([text, length]) => h("button", { type: "button", text, onclick: () => timeline.look(lately(length, bounds)) })),
        ),
      ),
      problem.element,
      h("div", { class: "panel pad" }, timeline.element),
      table.element,
    ),
  };
}
