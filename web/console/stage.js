import { s, setText } from "./dom.js";
import { hueOf, nameOf } from "./format.js";

const WIDTH = 320;
const HEIGHT = 200;
const MARGIN = 14;
/** More than so many at once tell nothing. */
const MOST = 150;

/** A cursor's place as two numbers, by whatever names pages commonly give them; null where it has none. */
export function placeOf(cursor) {
  for (const [x, y] of [
    ["x", "y"],
    ["column", "line"],
    ["left", "top"],
  ]) {
    if (Number.isFinite(cursor?.[x]) && Number.isFinite(cursor?.[y])) return [cursor[x], cursor[y]];
  }
  return null;
}

/** From 0 to the largest value, or to 1 where all are shares; below 0 where one is. */
export function extent(values) {
  const low = Math.min(0, ...values);
  const high = Math.max(...values, 0);
  return [low < 0 ? -roundUp(-low) : 0, high <= 1 ? 1 : roundUp(high)];
}

/** So that the scale does not move with every cursor. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

/** Everybody's cursor on one small plane. */
export class Stage {
  #dots = new Map();
  #layer = s("g");
  #caption;

  constructor(caption) {
    this.#caption = caption;
    this.element = s(
      "svg",
      { class: "stage", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Cursors" },
      s("rect", { class: "stage-ground", x: 0.5, y: 0.5, width: WIDTH - 1, height: HEIGHT - 1, rx: 6 }),
      this.#layer,
    );
  }

  show(participants) {
    const placed = participants.map((each) => [each, placeOf(each.cursor)]).filter(([, place]) => place);
    const shown = placed.slice(0, MOST);
    const [left, right] = extent(shown.map(([, [x]]) => x));
    const [top, bottom] = extent(shown.map(([, [, y]]) => y));
    const present = new Set();
    for (const [participant, [x, y]] of shown) {
      present.add(participant.userId);
      const dot = this.#dot(participant);
      const across = MARGIN + ((x - left) / (right - left)) * (WIDTH - 2 * MARGIN);
      const down = MARGIN + ((y - top) / (bottom - top)) * (HEIGHT - 2 * MARGIN);
      dot.style.transform = `translate(${across.toFixed(1)}px, ${down.toFixed(1)}px)`;
      dot.classList.toggle("flipped", across > WIDTH * 0.7);
      setText(dot.lastChild, shown.length > 24 ? "" : clipped(nameOf(participant)));
    }
    for (const [userId, dot] of this.#dots) {
      if (present.has(userId)) continue;
      this.#dots.delete(userId);
      dot.remove();
    }
    const without = participants.filter(({ cursor }) => cursor).length - placed.length;
    setText(this.#caption, caption(placed.length, shown.length, without));
    this.element.setAttribute("aria-label", `Cursors of ${shown.length} people`);
  }

  #dot({ userId }) {
    let dot = this.#dots.get(userId);
    if (!dot) {
      dot = s("g", { class: "dot" }, s("circle", { r: 5 }), s("text", { x: 9, y: 4 }));
      dot.style.setProperty("--hue", hueOf(userId));
      this.#dots.set(userId, dot);
      this.#layer.append(dot);
    }
    return dot;
  }
}

function clipped(name) {
  const characters = [...name];
  return characters.length > 14 ? characters.slice(0, 13).join("") + "…" : name;
}

function caption(placed, shown, without) {
  const parts = [];
  if (placed > shown) parts.push(`${shown} of ${placed} cursors`);
  else parts.push(placed === 0 ? "Nobody shows a cursor with a place." : `${placed} on the stage`);
  if (without > 0) parts.push(`${without} without a place`);
  return parts.join(", ");
}
