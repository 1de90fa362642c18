import { h, s } from "./dom.js";
import { duration, instant } from "./format.js";
import { TimeScale, moved, resized, zoomed } from "./time-scale.js";

const HEIGHT = 40;

/** All that there is in small, with the window into it: dragged by its body or ends, or moved with the keys. */
export class Overview {
  #bounds = { from: 0, to: 1 };
  #window = { from: 0, to: 1 };
  #svg = s("svg", { class: "overview-picture", height: HEIGHT, "aria-hidden": "true" });
  #body = this.#slider("window", "Time window", "body");
  #from = this.#slider("handle", "Start of the window", "from");
  #to = this.#slider("handle", "End of the window", "to");
  #lifetimes = [];
  #outages = [];
  #onWindow;

  constructor(onWindow) {
    this.#onWindow = onWindow;
    this.element = h("div", { class: "overview" }, this.#svg, this.#body, this.#from, this.#to);
  }

  show({ bounds, window, lifetimes, outages }) {
    this.#bounds = bounds;
    this.#window = window;
    this.#lifetimes = lifetimes;
    this.#outages = outages;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const scale = new TimeScale(this.#bounds, width);
    this.#svg.setAttribute("width", width);
    this.#svg.replaceChildren(
      ...this.#lifetimes.map((lifetime) => this.#band(scale, lifetime.from, lifetime.to, "band", 10, HEIGHT - 20)),
      ...this.#outages.map((outage) => this.#band(scale, outage.from, outage.to, "outage", 0, HEIGHT)),
    );
    const { from, to } = this.#window;
    const [left, right] = [scale.x(from), scale.x(to)];
    this.#body.style.transform = `translateX(${left}px)`;
    this.#body.style.width = `${Math.max(2, right - left)}px`;
    this.#from.style.transform = `translateX(${left}px)`;
    this.#to.style.transform = `translateX(${right}px)`;
    const now = (element, value, text) => {
      element.setAttribute("aria-valuenow", Math.round(value));
      element.setAttribute("aria-valuemin", Math.round(this.#bounds.from));
      element.setAttribute("aria-valuemax", Math.round(this.#bounds.to));
      element.setAttribute("aria-valuetext", text);
    };
    now(this.#from, from, instant(from));
    now(this.#to, to, instant(to));
    now(this.#body, (from + to) / 2, `${duration(to - from)} from ${instant(from)}`);
  }

  #band(scale, from, to, name, y, height) {
    const span = scale.span(from, to, 1);
    return span ? s("rect", { class: name, ...span, y, height }) : s("g");
  }

  #slider(name, label, part) {
    return h("div", {
      class: `overview-${name}`,
      role: "slider",
      tabindex: "0",
      "aria-label": label,
      "aria-orientation": "horizontal",
      "data-part": part,
      onpointerdown: (event) => this.#drag(event, part),
      onkeydown: (event) => this.#key(event, part),
    });
  }

  #drag(start, part) {
    const element = start.currentTarget;
    const before = this.#window;
    element.setPointerCapture(start.pointerId);
    element.focus();
    start.preventDefault();
    const perPixel = (this.#bounds.to - this.#bounds.from) / this.element.clientWidth;
    const move = (event) => {
      const by = (event.clientX - start.clientX) * perPixel;
      if (part === "body") this.#set(moved(before, by, this.#bounds));
      else this.#set(resized(before, part, before[part] + by, this.#bounds));
    };
    const end = () => element.removeEventListener("pointermove", move);
    element.addEventListener("pointermove", move);
    for (const type of ["pointerup", "pointercancel"]) element.addEventListener(type, end, { once: true });
  }

  #key(event, part) {
    const { from, to } = this.#window;
    const length = to - from;
    const step = length * (event.shiftKey ? 0.5 : 0.1);
    const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -length, PageUp: length }[event.key];
    const whole = this.#bounds.to - this.#bounds.from;
    const edge = { Home: -whole, End: whole }[event.key];
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    if (factor && part === "body") this.#set(zoomed(this.#window, factor, (from + to) / 2, this.#bounds));
    else if (by === undefined && edge === undefined) return;
    else if (part === "body") this.#set(moved(this.#window, by ?? edge, this.#bounds));
    else this.#set(resized(this.#window, part, this.#window[part] + (by ?? edge), this.#bounds));
    event.preventDefault();
  }

  #set(window) {
    this.#window = window;
    this.draw();
    this.#onWindow(window);
  }
}
