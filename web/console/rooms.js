import { get } from "./api.js";
import { Directory, inOrder } from "./directory.js";
import { h, said, setText } from "./dom.js";
import { follow } from "./follow.js";
import { count } from "./format.js";
import { toRoom } from "./route.js";
import { live, notice, sentence, title } from "./parts.js";
import { VirtualList } from "./virtual-list.js";

/** A stream follows one page of 1,000; of the others one is asked for anew so often. */
const REFRESH_MS = 3000;
/** So long the list must rest before the stream is moved to another page. */
const REST_MS = 400;

/** The rooms there are, with how many are in each. */
export function roomsView({ query, signal, replaceQuery }) {
  let prefix = query.prefix ?? "";
  let order = query.order ?? "id";
  let directory = new Directory();
  let search = new AbortController();
  let followed;
  let wanted = 0;

  const status = live();
  const summary = h("p", { class: "muted", role: "status" });
  const problem = notice();
  const list = new VirtualList({
    label: "Rooms",
    rowHeight: 52,
    keyOf: ({ roomId }) => roomId,
    create: row,
    update: show,
    onSight: (first, last) => look(Math.floor((first + last) / 2)),
  });
  signal.addEventListener("abort", () => {
    list.close();
    search.abort();
  });

  const field = h("input", {
    type: "search",
    id: "prefix",
    value: prefix,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "team-a-",
    oninput: () => later(() => start(field.value)),
  });
  const ordering = h(
    "select",
    { id: "order", onchange: () => sort(ordering.value) },
    h("option", { value: "id", text: "by name" }),
    h("option", { value: "people", text: "by people" }),
  );
  ordering.value = order;

  let largest = 1;
  let showing = false;
  /** Once for all events of a batch. */
  function showSoon() {
    if (showing) return;
    showing = true;
    requestAnimationFrame(() => {
      showing = false;
      const rooms = directory.list;
      const people = rooms.reduce((sum, room) => sum + room.memberCount, 0);
      largest = rooms.reduce((most, room) => Math.max(most, room.memberCount), 1);
      list.items = order === "people" ? [...rooms].sort(byPeople) : rooms;
      empty.hidden = rooms.length > 0 || !status.isLive;
      setText(summary, rooms.length ? `${count(rooms.length, "room")}, ${count(people, "person", "people")}` : "");
    });
  }

  function row() {
    return h(
      "div",
      { class: "row room-row" },
      h(
        "a",
        { class: "row-link" },
        said("", { class: "name" }),
        h("span", { class: "lifetime muted" }),
        h("span", { class: "many" }),
        h("span", { class: "bar", "aria-hidden": "true" }, h("i")),
      ),
    );
  }

  function show(element, room) {
    const link = element.firstChild;
    const [name, lifetime, many, bar] = link.children;
    const href = toRoom(room.roomId);
    if (link.getAttribute("href") !== href) link.setAttribute("href", href);
    setText(name, room.roomId);
    setText(lifetime, `lifetime ${room.generation}`);
    setText(many, count(room.memberCount, "person", "people"));
    bar.firstChild.style.transform = `scaleX(${room.memberCount / largest})`;
  }

  /** The page that is in sight is the one to keep up. */
  let moving;
  function look(index) {
    if (order !== "id") return;
    wanted = index;
    clearTimeout(moving);
    moving = setTimeout(() => !signal.aborted && keepUp(directory.pageOf(wanted)), REST_MS);
  }

  function keepUp(after) {
    if (followed && followed.after === after && !followed.control.signal.aborted) return;
    followed?.control.abort();
    const control = new AbortController();
    const ending = AbortSignal.any([control.signal, search.signal]);
    followed = { after, control };
    const from = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    follow(`/lobby/events?prefix=${encodeURIComponent(prefix)}${from}`, {
      signal: ending,
      onLive: (isLive) => {
        if (!ending.aborted) status.set(isLive);
        showSoon();
      },
      onEvent: (type, event) => {
        if (type === "snapshot") {
          directory.replace(after, event.rooms, event.next);
          complete();
        } else if (type === "room_closed") directory.remove(after, event);
        else directory.put(after, event);
        showSoon();
      },
      onRefused: refused,
    });
  }

  /** The pages after those that are known, until there are no more. */
  let completing = false;
  async function complete() {
    if (completing) return;
    completing = true;
    const { signal: ending } = search;
    try {
      for (let next = directory.missing; next !== null && !ending.aborted; next = directory.missing) {
        await load(next, ending);
      }
    } catch (error) {
      if (!ending.aborted) refused(error);
    } finally {
      if (search.signal === ending) completing = false;
    }
  }

  async function load(after, ending) {
    const page = await ask(after, ending);
    if (ending.aborted) return;
    directory.replace(after, page.rooms, page.next);
    showSoon();
  }

  let turn = 0;
  const refreshing = setInterval(async () => {
    const others = directory.pages.filter((after) => after !== followed?.after);
    if (others.length === 0 || document.hidden) return;
    const after = others[turn++ % others.length];
    try {
      await load(after, search.signal);
    } catch {
      // The stream says that nothing is kept up; the next turn asks again.
    }
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(refreshing));

  function ask(after, ending) {
    const from = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    return get(`/rooms?prefix=${encodeURIComponent(prefix)}&limit=1000${from}`, { signal: ending });
  }

  function refused(error) {
    if (error.status === 401) return;
    // What may not be listed may still be read, by whoever knows what it is called.
    const byName = prefix && h("a", { href: toRoom(prefix), text: `Open ${prefix}` });
    if (error.status === 403) problem.show(`${sentence(error)} Type a prefix that it may list, or the whole name of a room. `, byName);
    else problem.show(sentence(error));
    status.set(false);
  }

  function start(text) {
    prefix = text;
    search.abort();
    search = new AbortController();
    directory = new Directory();
    completing = false;
    followed = undefined;
    problem.clear();
    replaceQuery({ prefix, order: order === "id" ? null : order });
    list.element.scrollTop = 0;
    keepUp(null);
  }

  function sort(by) {
    order = by;
    replaceQuery({ prefix, order: order === "id" ? null : order });
    list.element.scrollTop = 0;
    showSoon();
  }

  let typing;
  function later(run) {
    clearTimeout(typing);
    typing = setTimeout(run, 200);
  }

  const empty = h("p", { class: "empty muted", hidden: true, text: "No room has anybody in it." });
  start(prefix);
  return {
    title: "Rooms",
    element: h(
      "div",
      { class: "view fill" },
      h("header", { class: "view-head" }, title("Rooms"), status.element),
      h(
        "div",
        { class: "tools" },
        h("label", { for: "prefix", text: "Begins with" }),
        field,
        h("label", { for: "order", class: "visually-hidden", text: "Order" }),
        ordering,
        summary,
      ),
      problem.element,
      h("div", { class: "panel fill" }, list.element, empty),
    ),
  };
}

function byPeople(a, b) {
  return b.memberCount - a.memberCount || inOrder(a.roomId, b.roomId);
}
