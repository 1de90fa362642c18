import { ask } from "./api.js";
import { Chart } from "./chart.js";
import { h, setText } from "./dom.js";
import { duration } from "./format.js";
import { byLabel, gauge, parse, quantile, rates } from "./metrics.js";
import { live, title } from "./parts.js";

/** The service reads the figures of its database no more often. */
const EVERY_MS = 5000;
const MOST_LINES = 6;
/** Five minutes. */
const LENGTH = 60;

const of = (name) => (now) => new Map([["", gauge(now, name)]]);

const rateBy = (name, label) => (now, before, seconds) =>
  before ? rates(byLabel(before, name, label), byLabel(now, name, label), seconds) : new Map();

function heartbeats(now, before) {
  const name = "leasehold_heartbeat_duration_seconds_bucket";
  const [earlier, later] = [byLabel(before ?? [], name, "le"), byLabel(now, name, "le")];
  if (!before) return new Map();
  return new Map([
    ["half within", quantile(earlier, later, 0.5)],
    ["99 of 100 within", quantile(earlier, later, 0.99)],
  ]);
}

/** What is watched in production, as docs/operations.md explains it. */
const SIGNALS = [
  { heading: "Rooms", unit: "", text: "with somebody in them", read: of("leasehold_active_rooms") },
  { heading: "Members", unit: "", text: "once per room and person", read: of("leasehold_active_members") },
  {
    heading: "Heartbeat latency",
    unit: "s",
    text: "from a heartbeat's arrival to its answer, on this instance",
    read: heartbeats,
  },
  {
    heading: "Stale sessions",
    unit: "/s",
    text: "heartbeats, cursors and leaves of sessions that are not current, by how they ended",
    read: rateBy("leasehold_stale_sessions_total", "code"),
  },
  {
    heading: "Refusals",
    unit: "/s",
    text: "answers with an error code, on this instance",
    read: rateBy("leasehold_refusals_total", "code"),
  },
  {
    heading: "Oldest lease",
    unit: "s",
    text: "since the member that was seen longest ago was seen; it grows where nothing sweeps",
    read: of("leasehold_oldest_lease_age_seconds"),
  },
  {
    heading: "Sweep lag",
    unit: "s",
    text: "since a sweep last found nothing more to do",
    read: of("leasehold_sweep_age_seconds"),
  },
  {
    heading: "Feed lag",
    unit: "s",
    text: "for how long an open transaction has held the feed of changes back",
    read: of("leasehold_feed_lag_seconds"),
  },
];

/** Kept while the page is open, so that who comes back finds the minutes before. */
const kept = SIGNALS.map(() => []);
let before = null;

/** How the service does, over the last minutes. */
export function signalsView({ signal }) {
  const status = live();
  const age = h("p", { class: "muted" });
  const charts = SIGNALS.map((each) => new Chart(each));

  async function read() {
    try {
      const samples = parse(await ask("GET", "/metrics", { signal }));
      take(samples);
      status.set(true);
      setText(age, `figures of the database ${duration((gauge(samples, "leasehold_figures_age_seconds") ?? 0) * 1000)} old`);
    } catch {
      if (signal.aborted) return;
      kept.forEach((values) => keep(values, new Map()));
      status.set(false);
    }
    show();
  }

  function show() {
    charts.forEach((chart, at) => chart.show(seriesOf(kept[at]), { length: LENGTH, everyMs: EVERY_MS }));
  }

  read();
  const reading = setInterval(read, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(reading));
  show();

  return {
    title: "Signals",
    element: h(
      "div",
      { class: "view" },
      h("header", { class: "view-head" }, title("Signals"), status.element),
      h("div", { class: "tools" }, age),
      h("div", { class: "charts" }, charts.map((chart) => chart.element)),
    ),
  };
}

function take(samples) {
  const now = performance.now();
  const seconds = before ? (now - before.at) / 1000 : 0;
  SIGNALS.forEach(({ read }, at) => keep(kept[at], read(samples, before?.samples ?? null, seconds)));
  before = { samples, at: now };
}

function keep(values, value) {
  values.push(value);
  if (values.length > LENGTH) values.shift();
}

/**
 * Each name as a line, with gaps where it was not there. Of several those that were ever above 0, the most that
 * can be told apart.
 */
function seriesOf(values) {
  const most = new Map();
  for (const each of values) for (const [name, value] of each) most.set(name, Math.max(most.get(name) ?? 0, value));
  const names = [...most.keys()].filter((name) => most.size === 1 || most.get(name) > 0);
  const shown = names.sort((a, b) => most.get(b) - most.get(a)).slice(0, MOST_LINES).sort();
  return new Map(shown.map((name) => [name, values.map((each) => each.get(name) ?? null)]));
}
