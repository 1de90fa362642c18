import { h, s, setText } from "./dom.js";
import { endOf, endText, legend, patternOf, patterns } from "./ends.js";
import { duration, instant, time } from "./format.js";
import { Overview } from "./overview.js";
import { TimeScale, tickText, within, zoomed } from "./time-scale.js";
import { inSight, toShow } from "./window.js";

const LANE = 38;
const BAR = { y: 18, height: 14 };
/** The axis without, and with, the strip that names lifetimes. */
const AXIS = 24;
const STRIP = 20;

/**
 * Sessions as bars over time, one lane for each of `laneOf`, on the lifetimes of their room, with a window into
 * all that there is. Only the lanes in sight are in the document.
 */
export class Timeline {
  #laneOf;
  #onWindow;
  #overview = new Overview((window) => this.#setWindow(window));
  #axis = s("svg", { class: "axis", "aria-hidden": "true" });
  #picture = s("svg", { class: "picture", role: "group", "aria-label": "Sessions" });
  #scroll;
  #legend = h("ul", { class: "legend", "aria-label": "How sessions ended" });
  #details = h("p", { class: "details muted", text: "Choose a bar to see the session." });
  #data = { lifetimes: [], outages: [], sessions: [], bounds: { from: 0, to: 1 }, now: 1 };
  #window = { from: 0, to: 1 };
  #lanes = [];
  #active = null;
  #drawing = false;
  #resize;

  constructor({ laneOf, onWindow }) {
    this.#laneOf = laneOf;
    this.#onWindow = onWindow;
    this.#scroll = h("div", { class: "lanes", onscroll: () => this.#drawSoon(), onwheel: (event) => this.#zoom(event) }, this.#picture);
    this.#picture.addEventListener("keydown", (event) => this.#key(event));
    this.element = h(
      "div",
      { class: "timeline" },
      s("svg", { class: "patterns", width: 0, height: 0, "aria-hidden": "true" }, patterns()),
      this.#overview.element,
      h("div", { class: "plane" }, this.#axis, this.#scroll),
      this.#legend,
      this.#details,
    );
    this.#resize = new ResizeObserver(() => {
      this.#overview.draw();
      this.#drawSoon();
    });
    this.#resize.observe(this.element);
  }

  get window() {
    return this.#window;
  }

  /** `{lifetimes, outages, sessions, bounds, now}`; the window is kept within the bounds. */
  show(data, window = this.#window) {
    this.#data = data;
    this.#window = within(window, data.bounds);
    this.#arrange();
    this.#showOverview();
    this.#drawSoon();
  }

  /** Another window into the same. */
  look(window) {
    this.#setWindow(within(window, this.#data.bounds));
    this.#showOverview();
  }

  close() {
    this.#resize.disconnect();
  }

  #showOverview() {
    const { bounds, lifetimes, outages } = this.#data;
    this.#overview.show({ bounds, window: this.#window, lifetimes, outages });
  }

  #setWindow(window) {
    this.#window = window;
    this.#arrange();
    this.#drawSoon();
    this.#onWindow(window);
  }

  /** The lanes that have something in the window, in order of the first of it. */
  #arrange() {
    const { from, to } = this.#window;
    const lanes = new Map();
    const counts = new Map();
    for (const session of this.#data.sessions) {
      const until = session.endedAtMs ?? this.#data.now;
      if (until < from || session.joinedAtMs > to) continue;
      const { key, label } = this.#laneOf(session);
      if (!lanes.has(key)) lanes.set(key, { label, sessions: [] });
      lanes.get(key).sessions.push(session);
      const end = endOf(session);
      counts.set(end, (counts.get(end) ?? 0) + 1);
    }
    this.#lanes = [...lanes.values()];
    const outages = this.#data.outages.filter((outage) => outage.to >= from && outage.from <= to);
    this.#legend.replaceChildren(...legend(counts, outages.length > 0));
    this.#picture.setAttribute("height", Math.max(1, this.#lanes.length) * LANE);
  }

  #drawSoon() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  }

  #draw() {
    const width = this.#scroll.clientWidth;
    if (width === 0) return;
    const scale = new TimeScale(this.#window, width);
    const { first, last } = inSight({ ...this.#view, length: this.#lanes.length, around: 4 });
    const height = Math.max(this.#scroll.clientHeight, this.#lanes.length * LANE);
    const hadFocus = this.#picture.contains(document.activeElement);
    this.#picture.setAttribute("width", width);
    this.#picture.replaceChildren(
      ...this.#grounds(scale, height),
      ...this.#lanes.slice(first, last).flatMap((lane, at) => this.#lane(scale, lane, first + at, width)),
    );
    const bars = this.#picture.querySelectorAll(".session");
    const active = [...bars].find((bar) => bar.session === this.#active) ?? bars[0];
    active?.setAttribute("tabindex", "0");
    if (hadFocus) active?.focus({ preventScroll: true });
    this.#drawAxis(scale, width);
  }

  get #view() {
    return { scrollTop: this.#scroll.scrollTop, height: this.#scroll.clientHeight, rowHeight: LANE };
  }

  #grounds(scale, height) {
    const rect = (name, from, to) => {
      const span = scale.span(from, to, 1);
      return span && s("rect", { class: name, ...span, y: 0, height });
    };
    return [
      ...this.#data.lifetimes.map(({ from, to }) => rect("band", from, to)),
      ...scale.ticks().ticks.map((at) => s("line", { class: "grid", x1: scale.x(at), x2: scale.x(at), y1: 0, y2: height })),
      ...this.#data.outages.map(({ from, to }) => rect("outage", from, to)),
    ].filter(Boolean);
  }

  #lane(scale, { label, sessions }, index, width) {
    const top = index * LANE;
    return [
      s("line", { class: "rule", x1: 0, x2: width, y1: top + LANE - 0.5, y2: top + LANE - 0.5 }),
      ...sessions.map((session) => this.#bar(scale, session, top)),
      s("text", { class: "lane-label", x: 8, y: top + 13, "aria-hidden": "true", text: label }),
    ];
  }

  #bar(scale, session, top) {
    const end = endOf(session);
    const span = scale.span(session.joinedAtMs, session.endedAtMs ?? this.#data.now, 3);
    const bar = s("rect", {
      class: `session end-${end}`,
      ...span,
      ...BAR,
      y: top + BAR.y,
      rx: 2,
      fill: patternOf(end),
      role: "button",
      tabindex: "-1",
      "aria-label": this.#text(session),
      onclick: () => this.#choose(session),
      onfocus: () => this.#choose(session),
    });
    bar.session = session;
    bar.classList.toggle("chosen", session === this.#active);
    return bar;
  }

  #choose(session) {
    this.#active = session;
    setText(this.#details, this.#text(session));
    this.#details.classList.remove("muted");
    for (const bar of this.#picture.querySelectorAll(".session")) bar.classList.toggle("chosen", bar.session === session);
  }

  #text(session) {
    const { userId, deviceId, epoch, roomId, generation, joinedAtMs, endedAtMs, by, reason, lastSeenMs } = session;
    const until = endedAtMs ?? this.#data.now;
    const parts = [
      `${userId}${deviceId === null ? "" : ` on ${deviceId}`}, epoch ${epoch}`,
      `${roomId}, lifetime ${generation}`,
      `joined ${instant(joinedAtMs)}`,
      endedAtMs === null ? "still here" : `${endText(endOf(session))} ${time(endedAtMs)}`,
      `after ${duration(until - joinedAtMs)}`,
      lastSeenMs ? `last seen ${time(lastSeenMs)}` : null,
      by && `by ${by}`,
      reason && `“${reason}”`,
    ];
    return parts.filter(Boolean).join(" · ");
  }

  #drawAxis(scale, width) {
    const { step, ticks } = scale.ticks();
    const strip = this.#data.lifetimes.length ? STRIP : 0;
    this.#axis.setAttribute("width", width);
    this.#axis.setAttribute("height", strip + AXIS);
    const labels = this.#data.lifetimes.map(({ from, to, label }) => {
      const span = scale.span(from, to, 1);
      if (!span) return null;
      const room = Math.floor((span.width - 12) / 6.5);
      const text = label.length <= room ? label : `${label.slice(0, Math.max(0, room - 1))}…`;
      return s(
        "g",
        {},
        s("rect", { class: "band-head", ...span, y: 0, height: STRIP }),
        room > 4 && s("text", { class: "band-label", x: span.x + 6, y: 14, text }),
      );
    });
    const marks = ticks.map((at) => {
      const x = scale.x(at);
      const anchor = x < 30 ? "start" : x > width - 30 ? "end" : "middle";
      return s("text", { class: "tick", x: Math.min(Math.max(x, 2), width - 2), y: strip + 17, "text-anchor": anchor, text: tickText(at, step) });
    });
    this.#axis.replaceChildren(...labels.filter(Boolean), ...marks);
  }

  #zoom(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const scale = new TimeScale(this.#window, this.#scroll.clientWidth);
    const around = scale.instant(event.clientX - this.#scroll.getBoundingClientRect().left);
    this.look(zoomed(this.#window, event.deltaY > 0 ? 1.25 : 0.8, around, this.#data.bounds));
  }

  /** Along a lane, and to the lane above or below. */
  #key(event) {
    const lane = this.#lanes.findIndex(({ sessions }) => sessions.includes(this.#active));
    if (lane < 0) return;
    const at = this.#lanes[lane].sessions.indexOf(this.#active);
    const [toLane, to] = {
      ArrowRight: [lane, at + 1],
      ArrowLeft: [lane, at - 1],
      ArrowDown: [lane + 1, 0],
      ArrowUp: [lane - 1, 0],
    }[event.key] ?? [-1, 0];
    const session = this.#lanes[toLane]?.sessions[to];
    if (!session) return;
    event.preventDefault();
    this.#scroll.scrollTop = toShow(toLane, this.#view);
    this.#choose(session);
    this.#draw();
  }
}
