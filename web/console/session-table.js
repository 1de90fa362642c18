import { h, replace, said } from "./dom.js";
import { endOf, endText } from "./ends.js";
import { count, duration, instant, time } from "./format.js";
import { toPerson, toRoom } from "./route.js";

/** A table does not hold more without becoming slow; the window of the timeline chooses which. */
const MOST = 200;

/** The same sessions as the timeline's, to read; `of` is the other side: the person, or the room. */
export class SessionTable {
  #body = h("tbody");
  #summary = h("summary", { text: "As a table" });
  #more = h("p", { class: "muted", hidden: true });
  #of;
  #now = 0;
  #sessions = [];

  constructor(of) {
    this.#of = of;
    const columns = [of === "person" ? "Person" : "Room", "Device", "Lifetime", "Epoch", "Joined", "Ended", "How", "Stayed"];
    this.element = h(
      "details",
      { class: "table", ontoggle: () => this.#draw() },
      this.#summary,
      h(
        "div",
        { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Sessions" },
        h("table", {}, h("thead", {}, h("tr", {}, columns.map((text) => h("th", { scope: "col", text })))), this.#body),
      ),
      this.#more,
    );
  }

  show(sessions, now) {
    this.#sessions = sessions;
    this.#now = now;
    this.#summary.textContent = `As a table (${count(sessions.length, "session")} in the window)`;
    this.#draw();
  }

  #draw() {
    if (!this.element.open) return this.#body.replaceChildren();
    const newest = [...this.#sessions].sort((a, b) => b.joinedAtMs - a.joinedAtMs).slice(0, MOST);
    replace(this.#body, newest.map((session) => this.#row(session)));
    this.#more.hidden = this.#sessions.length <= MOST;
    this.#more.textContent = `The newest ${MOST}; choose a shorter window to see others.`;
  }

  #row(session) {
    const { userId, roomId, deviceId, generation, epoch, joinedAtMs, endedAtMs, by, reason } = session;
    const [href, name] = this.#of === "person" ? [toPerson(userId), userId] : [toRoom(roomId), roomId];
    const note = [by && `by ${by}`, reason].filter(Boolean).join(": ");
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href }, said(name))),
      h("td", {}, deviceId === null ? h("span", { class: "muted", text: "unnamed" }) : said(deviceId)),
      h("td", { text: String(generation) }),
      h("td", { text: String(epoch) }),
      h("td", { text: instant(joinedAtMs) }),
      h("td", { text: endedAtMs === null ? "" : time(endedAtMs) }),
      h("td", {}, endText(endOf(session)), note && h("div", { class: "muted" }, said(note))),
      h("td", { text: duration((endedAtMs ?? this.#now) - joinedAtMs) }),
    );
  }
}

export function inWindow(sessions, { from, to }, now) {
  return sessions.filter((session) => session.joinedAtMs <= to && (session.endedAtMs ?? now) >= from);
}
