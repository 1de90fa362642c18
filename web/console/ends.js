import { h, s } from "./dom.js";

/** How sessions end, in the order of the legend; each is told apart by its pattern as well as its colour. */
export const ENDS = [
  ["live", "still here", () => []],
  ["left", "left", () => []],
  ["expired", "expired", () => [s("path", { d: "M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6" })]],
  ["superseded", "superseded by a later join", () => [s("circle", { cx: 2, cy: 2, r: 1.2 }), s("circle", { cx: 6, cy: 6, r: 1.2 })]],
  ["removed", "removed", () => [s("path", { d: "M0,0 L8,8 M8,0 L0,8" })]],
  ["room_closed", "room closed", () => [s("path", { d: "M2,0 V8 M6,0 V8" })]],
  ["moved", "room moved to another cell", () => [s("path", { d: "M0,2 H8 M0,6 H8" })]],
];

export function endOf({ endReason }) {
  return endReason ?? "live";
}

export function endText(end) {
  return ENDS.find(([name]) => name === end)?.[1] ?? end;
}

/** What a bar that ended so is filled with. */
export const patternOf = (end) => `url(#end-${end})`;

/** All fills, for the document that refers to them. */
export function patterns() {
  return s(
    "defs",
    {},
    ENDS.map(([end, , marks]) =>
      s(
        "pattern",
        { id: `end-${end}`, width: 8, height: 8, patternUnits: "userSpaceOnUse", class: `end end-${end}` },
        s("rect", { width: 8, height: 8, class: "ground" }),
        s("g", { class: "marks" }, marks()),
      ),
    ),
    s(
      "pattern",
      { id: "outage", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("rect", { width: 6, height: 6, class: "outage-ground" }),
      s("rect", { width: 2, height: 6, class: "outage-mark" }),
    ),
  );
}

/** What the patterns mean, with how many sessions ended so. */
export function legend(counts, hasOutages) {
  const swatch = (fill) => s("svg", { class: "swatch", viewBox: "0 0 24 12", "aria-hidden": "true" }, s("rect", { width: 24, height: 12, rx: 2, fill }));
  const shown = ENDS.filter(([end]) => counts.get(end) > 0);
  return [
    ...shown.map(([end, text]) => h("li", {}, swatch(patternOf(end)), `${text} (${counts.get(end)})`)),
    hasOutages && h("li", {}, swatch("url(#outage)"), "nobody served: leases stood still"),
  ].filter(Boolean);
}
