import { credential, whenUnauthorized } from "./api.js";
import { h } from "./dom.js";
import { historyView } from "./history.js";
import { findView, personView } from "./person.js";
import { roomView } from "./room.js";
import { roomsView } from "./rooms.js";
import { address, parse } from "./route.js";
import { notice, sentence } from "./parts.js";
import { signInView } from "./sign-in.js";
import { signalsView } from "./signals.js";
import { webhooksView } from "./webhooks.js";

const main = document.querySelector("main");
const signOut = document.getElementById("sign-out");
let showing = null;

const VIEWS = {
  rooms: ({ id, part }) => (id === null ? roomsView : part === "history" ? historyView : roomView),
  people: ({ id }) => (id === null ? findView : personView),
  signals: () => signalsView,
  webhooks: () => webhooksView,
};

/** Shows what the address names, in place of what was shown. */
function show() {
  const route = parse(location.hash);
  const view = VIEWS[route.view](route);
  mark(route.view);
  replace((signal) =>
    view({
      ...route,
      signal,
      navigate: (to) => (location.hash = to),
      onUnauthorized: () => askForCredential(),
      // The window or search of a view is part of its address, and no step of its own in the history.
      replaceQuery: (query) => !signal.aborted && history.replaceState(null, "", address({ ...route, query })),
    }),
  );
}

function askForCredential(refused) {
  if (showing?.isSignIn) return;
  credential.forget();
  replace(() => signInView({ onDone: show, refused }));
  showing.isSignIn = true;
}

function replace(make) {
  const isFirst = showing === null;
  showing?.control.abort();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.remove());
  const control = new AbortController();
  showing = { control };
  signOut.hidden = !credential.get();
  let view;
  try {
    view = make(control.signal);
  } catch (error) {
    const problem = notice();
    problem.show(sentence(error));
    view = { title: "Console", element: h("div", { class: "view" }, problem.element) };
  }
  document.title = `${view.title} · Leasehold console`;
  main.replaceChildren(view.element);
  window.scrollTo(0, 0);
  // So that the keyboard and a screen reader go on where the eye does; at the first page they begin at its top.
  if (!isFirst) main.querySelector("h1")?.focus({ preventScroll: true });
}

function mark(view) {
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

whenUnauthorized(() => askForCredential(credential.get() ? "The credential does not hold any more." : undefined));
signOut.addEventListener("click", () => {
  credential.forget();
  askForCredential();
});
window.addEventListener("hashchange", show);
show();
