/**
 * Elements, made from values that are anybody's: ids, metadata and reasons become text and attributes, and
 * nothing here reads markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An element: `on…` are listeners, `class`, `text`, what is false or null is left out, the rest are attributes. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same in SVG. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Words of people and programs elsewhere: they cannot turn the direction of what is beside them. */
export function said(text, attributes = {}) {
  return h("bdi", { ...attributes, text });
}

/** Sets the text where it is another one, so that nothing is laid out in vain. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Puts these in place of what is there. Not while the keyboard is in it, which would lose its place, unless it
 * was the person there who changed it: then they go on from the heading.
 */
export function replace(element, children, isOwnDoing = false) {
  const hadFocus = element.contains(document.activeElement);
  if (hadFocus && !isOwnDoing) return;
  element.replaceChildren(...children);
  if (hadFocus) document.querySelector("h1")?.focus();
}

/** Labels and values, one a row. */
export function facts(pairs) {
  const rows = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    rows.map(([label, value]) => h("div", {}, h("dt", { text: label }), h("dd", {}, value))),
  );
}
