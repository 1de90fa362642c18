import { ask, list, path } from "./api.js";
import { confirm } from "./confirm.js";
import { facts, h, replace, said } from "./dom.js";
import { count, duration, instant } from "./format.js";
import { announce, notice, sentence, title } from "./parts.js";

const REFRESH_MS = 5000;

/** Who has changes delivered, and how that goes. */
export function webhooksView({ signal }) {
  const problem = notice();
  const all = h("ul", { class: "plain cards", "aria-label": "Webhooks" });
  const none = h("p", { class: "panel pad muted", hidden: true, text: "There is no webhook. PUT /webhooks/{name} makes one." });

  async function refresh(isOwnDoing) {
    try {
      const { found } = await list("/webhooks", "webhooks", { most: 1000, signal });
      problem.clear();
      none.hidden = found.length > 0;
      replace(all, found.map(card), isOwnDoing);
    } catch (error) {
      if (!signal.aborted) problem.show(sentence(error));
    }
  }

  function card(webhook) {
    const { name, url, status, position, pendingDeliveries, pendingChanges, oldestPendingMs, failures, lastFailure } = webhook;
    const isActive = status === "active";
    const filters = [webhook.room && `room ${webhook.room}`, webhook.prefix && `rooms from ${webhook.prefix}`, webhook.kinds?.join(", ")];
    const waiting = pendingDeliveries ? `${count(pendingDeliveries, "delivery", "deliveries")} with ${count(pendingChanges, "change")}` : "nothing";
    return h(
      "li",
      { class: "panel pad" },
      h("div", { class: "chart-head" }, h("h2", {}, said(name)), h("span", { class: "pill", "data-status": isActive ? "connected" : "stopped", text: status })),
      facts([
        ["Address", said(url, { class: "mono" })],
        ["Of", said(filters.filter(Boolean).join(" · ") || "all changes")],
        ["Waiting", waiting + (oldestPendingMs ? `, the oldest for ${duration(Date.now() - oldestPendingMs)}` : "")],
        ["Last delivered", webhook.lastSuccessMs ? instant(webhook.lastSuccessMs) : "never"],
        ["Failures since", failures ? String(failures) : null],
        ["Last failure", lastFailure && h("span", {}, `${instant(webhook.lastFailureMs)}: `, said(lastFailure))],
        ["Position", position && said(position, { class: "mono" })],
      ]),
      h(
        "div",
        { class: "buttons" },
        isActive
          ? h("button", { type: "button", class: "danger", text: "Disable…", onclick: () => act(name, "disable") })
          : h("button", { type: "button", text: "Resume…", onclick: () => act(name, "resume") }),
      ),
    );
  }

  async function act(name, action) {
    const question = {
      disable: { heading: `Disable ${name}?`, text: "Nothing is delivered to it until it is resumed; it misses nothing meanwhile.", action: "Disable" },
      resume: { heading: `Resume ${name}?`, text: "What waits is delivered from where it stopped.", action: "Resume", isDanger: false },
    }[action];
    if ((await confirm(question)) === null) return;
    try {
      await ask("POST", path("webhooks", name, action));
      announce(action === "disable" ? `${name} is disabled.` : `${name} is active.`);
    } catch (error) {
      announce(sentence(error));
    }
    refresh(true);
  }

  refresh();
  const refreshing = setInterval(() => !document.hidden && refresh(), REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(refreshing));
  return {
    title: "Webhooks",
    element: h("div", { class: "view" }, h("header", { class: "view-head" }, title("Webhooks")), problem.element, none, all),
  };
}
