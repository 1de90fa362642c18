/** Parts that several views have. */

import { h, setText } from "./dom.js";

/** The heading of a view, which the focus goes to. */
export function title(text, ...after) {
  return h("h1", { tabindex: "-1" }, h("bdi", { text }), ...after);
}

/** Whether what is shown is kept up. */
export function live() {
  const element = h("p", { class: "live", "data-live": "waiting", text: "connecting" });
  const part = {
    element,
    isLive: false,
    set(isLive) {
      part.isLive = isLive;
      element.dataset.live = isLive ? "yes" : "no";
      setText(element, isLive ? "live" : "not kept up: the service does not answer");
    },
  };
  return part;
}

/** What went wrong, where that is to be said. */
export function notice() {
  const element = h("p", { class: "notice", role: "alert", hidden: true });
  return {
    element,
    show(text, ...more) {
      element.replaceChildren(text, ...more.filter(Boolean));
      element.hidden = false;
    },
    clear() {
      element.hidden = true;
    },
  };
}

/** Something that nobody has to look for: said by screen readers, and shown for a while. */
export function announce(text) {
  const place = document.getElementById("announcements");
  setText(place, text);
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => setText(place, ""), 6000);
}

/** What a refusal or a failure says. */
export function sentence(error) {
  const text = error.message || String(error);
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
