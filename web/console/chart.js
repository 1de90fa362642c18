import { h, s, setText } from "./dom.js";
import { duration, figure } from "./format.js";

const WIDTH = 300;
const HEIGHT = 64;

/** So much room above the largest value that the line does not touch the edge; a scale that is round. */
export function ceiling(values) {
  const most = Math.max(0, ...values.filter((value) => value !== null));
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 5, 7.5, 10].find((step) => step * power >= most) * power;
}

/** The path of a line through values that are evenly apart, with gaps where one is missing. */
export function line(values, most, length) {
  let isDown = false;
  const parts = values.map((value, at) => {
    if (value === null) return ((isDown = false), "");
    const x = ((at + length - values.length) / Math.max(1, length - 1)) * WIDTH;
    const place = `${x.toFixed(1)},${(HEIGHT - (value / most) * HEIGHT).toFixed(1)}`;
    const part = isDown ? `L${place}` : `M${place}h0`;
    isDown = true;
    return part;
  });
  return parts.join("");
}

/** One signal over the last minutes: its lines, what they are now, and between what they were. */
export class Chart {
  #value = h("p", { class: "chart-now" });
  #picture = s("svg", { class: "chart", viewBox: `0 -2 ${WIDTH} ${HEIGHT + 4}`, preserveAspectRatio: "none", role: "img" });
  #scale = h("p", { class: "chart-scale muted" });
  #legend = h("ul", { class: "chart-legend" });
  #heading;
  #unit;

  constructor({ heading, text, unit }) {
    this.#heading = heading;
    this.#unit = unit;
    this.element = h(
      "section",
      { class: "panel pad chart-card" },
      h("div", { class: "chart-head" }, h("h2", { text: heading }), this.#value),
      this.#picture,
      this.#scale,
      this.#legend,
      h("p", { class: "muted", text }),
    );
  }

  /** `series` by name, each a list of values, the newest last; `length` of a full chart, `everyMs` between. */
  show(series, { length, everyMs }) {
    const named = [...series];
    const values = named.flatMap(([, each]) => each);
    const most = ceiling(values);
    const last = (each) => each.at(-1) ?? null;
    this.#picture.replaceChildren(
      s("line", { class: "grid", x1: 0, x2: WIDTH, y1: 0, y2: 0 }),
      s("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
      ...named.map(([, each], at) => s("path", { class: `series series-${at % 6}`, d: line(each, most, length) })),
    );
    setText(this.#value, figure(this.#headline(named.map(([, each]) => last(each))), this.#unit));
    setText(this.#scale, `0 to ${figure(most, this.#unit)}, the last ${duration(length * everyMs)}`);
    this.#legend.replaceChildren(
      ...(named.length > 1 || named[0]?.[0] ? named : []).map(([name, each], at) =>
        h(
          "li",
          {},
          s("svg", { class: "swatch", viewBox: "0 0 24 12", "aria-hidden": "true" }, s("path", { class: `series series-${at % 6}`, d: "M0,6L24,6" })),
          h("span", { text: name }),
          h("span", { class: "chart-value", text: figure(last(each), this.#unit) }),
        ),
      ),
    );
    const said = named.map(([name, each]) => `${name} ${figure(last(each), this.#unit)}`.trim()).join(", ");
    this.#picture.setAttribute("aria-label", `${this.#heading}: ${said || "none"}`);
  }

  /** Of rates by code all together, of others the largest. */
  #headline(values) {
    const known = values.filter((value) => value !== null);
    if (this.#unit === "/s") return known.reduce((all, value) => all + value, 0);
    return known.length ? Math.max(...known) : null;
  }
}

