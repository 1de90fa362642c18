import { list, path } from "./api.js";
import { h, replace, said, setText } from "./dom.js";
import { count, instant, time } from "./format.js";
import { expelPerson } from "./moderation.js";
import { notice, sentence, title } from "./parts.js";
import { WINDOWS, lately, outages, padded, windowOf } from "./past.js";
import { toHistory, toPerson, toRoom } from "./route.js";
import { SessionTable, inWindow } from "./session-table.js";
import { Timeline } from "./timeline.js";

const REFRESH_MS = 5000;
const MOST_SESSIONS = 2000;

/** Where to ask for somebody. */
export function findView({ navigate }) {
  const field = h("input", { type: "search", id: "person", autocomplete: "off", spellcheck: "false", required: true });
  return {
    title: "People",
    element: h(
      "div",
      { class: "view" },
      h("header", { class: "view-head" }, title("People")),
      h(
        "form",
        {
          class: "panel pad find",
          onsubmit: (event) => {
            event.preventDefault();
            if (field.value) navigate(toPerson(field.value));
          },
        },
        h("label", { for: "person", text: "The person's id, as the rooms have it" }),
        h("div", { class: "buttons" }, field, h("button", { type: "submit", class: "primary", text: "Find" })),
        h("p", { class: "muted", text: "Where they are, where they were, and how each session ended." }),
      ),
    ),
  };
}

/** Where one person is, and was. */
export function personView({ id: userId, query, signal, replaceQuery }) {
  const problem = notice();
  const rooms = h("ul", { class: "plain", "aria-label": "Rooms that they are in" });
  const nowhere = h("p", { class: "muted", text: "" });
  const summary = h("p", { class: "muted", role: "status" });
  const table = new SessionTable("room");
  const timeline = new Timeline({
    laneOf: ({ roomId, deviceId }) => ({
      key: JSON.stringify([roomId, deviceId]),
      label: deviceId === null ? roomId : `${roomId} · ${deviceId}`,
    }),
    onWindow: windowSet,
  });
  let sessions = [];
  let more = false;
  let bounds = { from: 0, to: 1 };
  let now = Date.now();

  async function refresh(isFirst) {
    await Promise.all([refreshRooms(), refreshSessions(isFirst)]);
  }

  async function refreshRooms() {
    try {
      const { found } = await list(path("users", userId, "rooms"), "rooms", { most: 1000, signal });
      replace(rooms, found.slice(0, 100).map(room));
      setText(nowhere, found.length === 0 ? "They are in no room." : found.length > 100 ? `The first 100 of ${found.length}.` : "");
    } catch (error) {
      if (!signal.aborted) problem.show(sentence(error));
    }
  }

  function room({ roomId, generation, epoch, status, joinedAtMs, lastSeenMs }) {
    return h(
      "li",
      { class: "where" },
      h("a", { class: "name", href: toRoom(roomId) }, said(roomId)),
      h("span", { class: "pill", "data-status": status, text: status }),
      h("span", { class: "muted", text: `lifetime ${generation} · epoch ${epoch} · joined ${instant(joinedAtMs)} · last seen ${time(lastSeenMs)}` }),
      h("a", { href: toHistory(roomId), text: "history", "aria-label": `History of ${roomId}` }),
    );
  }

  async function refreshSessions(isFirst) {
    try {
      const answer = await list(path("users", userId, "sessions"), "sessions", { most: MOST_SESSIONS, signal });
      more = answer.more;
      sessions = answer.found.reverse();
      if (sessions.length === 0) return setText(summary, "The history knows nothing of them.");
      now = Math.max(Date.now(), ...sessions.map(({ endedAtMs, lastSeenMs }) => endedAtMs ?? lastSeenMs));
      const isHere = sessions.some(({ endedAtMs }) => endedAtMs === null);
      const last = isHere ? now : Math.max(...sessions.map(({ endedAtMs }) => endedAtMs));
      bounds = padded({ from: sessions[0].joinedAtMs, to: last });
      const gaps = await outages(bounds, signal);
      const window = isFirst ? (windowOf(query) ?? lately(86_400_000, bounds)) : undefined;
      timeline.show({ lifetimes: [], outages: gaps.spans, sessions, bounds, now }, window);
      tell();
    } catch (error) {
      if (!signal.aborted) problem.show(sentence(error));
    }
  }

  function windowSet(window) {
    replaceQuery({ from: Math.round(window.from), to: Math.round(window.to) });
    tell();
  }

  function tell() {
    const shown = inWindow(sessions, timeline.window, now);
    table.show(shown, now);
    const all = more ? `the newest ${sessions.length} sessions are known here` : `${count(sessions.length, "session")} in all`;
    setText(summary, `${all} · ${shown.length} in the window`);
  }

  async function expel() {
    if (await expelPerson(userId)) refresh(false);
  }

  const refreshing = setInterval(() => !document.hidden && refresh(false), REFRESH_MS);
  signal.addEventListener("abort", () => {
    clearInterval(refreshing);
    timeline.close();
  });
  refresh(true);

  return {
    title: userId,
    element: h(
      "div",
      { class: "view" },
      h(
        "header",
        { class: "view-head" },
        title(userId),
        h("div", { class: "buttons end" }, h("button", { type: "button", class: "danger", text: "Put out of all rooms…", onclick: expel })),
      ),
      problem.element,
      h("section", { class: "panel pad", "aria-labelledby": "where-h" }, h("h2", { id: "where-h", text: "Where they are" }), nowhere, rooms),
      h(
        "section",
        { class: "panel pad", "aria-labelledby": "was-h" },
        h(
          "div",
          { class: "tools" },
          h("h2", { id: "was-h", text: "Where they were" }),
          summary,
          h(
            "div",
            { class: "buttons end", role: "group", "aria-label": "Time window" },
            WINDOWS.map(([text, length]) => h("button", { type: "button", text, onclick: () => timeline.look(lately(length, bounds)) })),
          ),
        ),
        timeline.element,
      ),
      table.element,
    ),
  };
}
