import { h } from "./dom.js";
import { inSight, toShow } from "./window.js";

/** Keys that move between rows, and by how many for rows in sight. */
const MOVES = {
  ArrowDown: () => 1,
  ArrowUp: () => -1,
  PageDown: (page) => page,
  PageUp: (page) => -page,
  Home: () => -Infinity,
  End: () => Infinity,
};

/**
 * A list of any length of which only the rows in sight are in the document. `create` makes a row's element,
 * which has one control; `update` shows an item in it.
 */
export class VirtualList {
  #rowHeight;
  #create;
  #update;
  #keyOf;
  #items = [];
  /** By key, so that a row and the focus in it stay with their item wherever that goes. */
  #rows = new Map();
  #spare = [];
  #body;
  #active = null;
  #drawing = false;
  #resize;

  constructor({ label, rowHeight, create, update, keyOf, onSight = () => {} }) {
    this.#rowHeight = rowHeight;
    this.#create = create;
    this.#update = update;
    this.#keyOf = keyOf;
    this.onSight = onSight;
    this.#body = h("div", { class: "rows", role: "list", "aria-label": label });
    this.element = h(
      "div",
      { class: "virtual", onscroll: () => this.#drawSoon(), onkeydown: (event) => this.#move(event) },
      this.#body,
    );
    this.element.addEventListener("focusin", ({ target }) => this.#activate(keyOfRow(target)));
    this.#resize = new ResizeObserver(() => this.#drawSoon());
    this.#resize.observe(this.element);
  }

  set items(items) {
    this.#items = items;
    this.#body.style.height = `${items.length * this.#rowHeight}px`;
    this.#drawSoon();
  }

  /** The items that are in sight, with their elements. */
  *drawn() {
    for (const { item, row } of this.#rows.values()) yield [item, row];
  }

  close() {
    this.#resize.disconnect();
  }

  get #view() {
    const { scrollTop, clientHeight } = this.element;
    return { scrollTop, height: clientHeight, rowHeight: this.#rowHeight };
  }

  /** Once a frame, however often it is asked for. */
  #drawSoon() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  }

  #draw() {
    const { first, last } = inSight({ ...this.#view, length: this.#items.length });
    const wanted = new Map();
    for (let index = first; index < last; index++) wanted.set(this.#keyOf(this.#items[index]), index);
    // Where the focus is it stays in the document, or the keyboard would start from the top again.
    const focused = this.#body.contains(document.activeElement) ? keyOfRow(document.activeElement) : null;
    if (focused !== null && !wanted.has(focused)) {
      const index = this.#items.findIndex((item) => this.#keyOf(item) === focused);
      if (index >= 0) wanted.set(focused, index);
    }
    for (const [key, { row }] of this.#rows) {
      if (wanted.has(key)) continue;
      this.#rows.delete(key);
      this.#spare.push(row);
      row.remove();
    }
    if (!wanted.has(this.#active)) this.#active = first < last ? this.#keyOf(this.#items[first]) : null;
    for (const [key, index] of wanted) this.#show(key, index);
    this.onSight(first, last);
  }

  #show(key, index) {
    let shown = this.#rows.get(key);
    if (!shown) {
      const row = this.#spare.pop() ?? this.#create();
      row.setAttribute("role", "listitem");
      row.dataset.key = key;
      shown = { row, index: -1, item: null };
      this.#rows.set(key, shown);
      this.#body.append(row);
    }
    const { row } = shown;
    if (shown.index !== index) {
      row.style.transform = `translateY(${index * this.#rowHeight}px)`;
      row.setAttribute("aria-posinset", index + 1);
    }
    row.setAttribute("aria-setsize", this.#items.length);
    control(row).tabIndex = key === this.#active ? 0 : -1;
    shown.index = index;
    shown.item = this.#items[index];
    this.#update(row, shown.item);
  }

  #activate(key) {
    if (key === null || key === this.#active) return;
    this.#active = key;
    for (const [each, { row }] of this.#rows) control(row).tabIndex = each === key ? 0 : -1;
  }

  #move(event) {
    const step = MOVES[event.key]?.(Math.max(1, Math.floor(this.#view.height / this.#rowHeight) - 1));
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey || this.#items.length === 0) return;
    event.preventDefault();
    const from = this.#rows.get(this.#active)?.index ?? 0;
    const index = Math.min(this.#items.length - 1, Math.max(0, from + step));
    this.element.scrollTop = toShow(index, this.#view);
    this.#activate(this.#keyOf(this.#items[index]));
    this.#draw();
    control(this.#rows.get(this.#active)?.row)?.focus({ preventScroll: true });
  }
}

function keyOfRow(element) {
  return element.closest("[role=listitem]")?.dataset.key ?? null;
}

function control(row) {
  return row?.querySelector("a, button");
}
