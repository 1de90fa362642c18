import { leaseLeft } from "./clock.js";
import { h, said, setText } from "./dom.js";
import { count, duration, hueOf, nameOf } from "./format.js";
import { personDialog } from "./person-dialog.js";
import { VirtualList } from "./virtual-list.js";

/** Everybody in a room, as a list with the time that is left to each. */
export class People {
  #roomId;
  #clock;
  #leases;
  #onDone;
  #all = [];
  #list;
  #filter;
  #summary = h("p", { class: "muted", role: "status" });
  #empty = h("p", { class: "empty muted", hidden: true });
  /** Whether the list is kept up; leases stand still where the service cannot be heard. */
  isLive = false;

  constructor({ roomId, clock, leases, onDone }) {
    this.#roomId = roomId;
    this.#clock = clock;
    this.#leases = leases;
    this.#onDone = onDone;
    this.#list = new VirtualList({
      label: "People",
      rowHeight: 60,
      keyOf: ({ userId }) => userId,
      create: () => this.#row(),
      update: (row, participant) => this.#update(row, participant),
    });
    this.#filter = h("input", {
      type: "search",
      id: "filter",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "name or id",
      oninput: () => this.show(this.#all),
    });
    this.element = h(
      "section",
      { class: "panel people fill", "aria-labelledby": "people-h" },
      h(
        "div",
        { class: "panel-head" },
        h("h2", { id: "people-h", text: "People" }),
        this.#summary,
        h("label", { for: "filter", class: "visually-hidden", text: "Find people by name or id" }),
        this.#filter,
      ),
      this.#list.element,
      this.#empty,
    );
  }

  show(participants) {
    this.#all = participants;
    const wanted = this.#filter.value.trim().toLowerCase();
    const shown = wanted ? participants.filter((each) => matches(each, wanted)) : participants;
    this.#list.items = shown;
    const many = count(participants.length, "person", "people");
    setText(this.#summary, wanted ? `${shown.length} of ${many}` : many);
    this.#empty.hidden = shown.length > 0;
    setText(this.#empty, wanted ? "Nobody is called so." : this.isLive ? "Nobody is here." : "");
  }

  /** Those who are drawn. */
  get inSight() {
    return [...this.#list.drawn()].map(([{ userId }]) => userId);
  }

  /** Moves the bars of those in sight. */
  tick() {
    for (const [participant, row] of this.#list.drawn()) this.#lease(row, participant);
  }

  close() {
    this.#list.close();
  }

  #row() {
    const row = h(
      "div",
      { class: "row person-row" },
      h(
        "button",
        { type: "button", class: "row-link", onclick: () => this.#open(row.dataset.key) },
        h("span", { class: "avatar", "aria-hidden": "true" }),
        h("span", { class: "who" }, said("", { class: "name" }), said("", { class: "id mono muted" })),
        h("span", { class: "pill" }),
        h("span", { class: "of muted" }),
        h("span", { class: "lease" }, h("span", { class: "left" }), h("span", { class: "bar", "aria-hidden": "true" }, h("i"))),
      ),
    );
    return row;
  }

  #update(row, participant) {
    const [avatar, who, , of] = row.firstChild.children;
    const { userId, epoch, devices } = participant;
    const name = nameOf(participant);
    avatar.style.setProperty("--hue", hueOf(userId));
    setText(avatar, [...name][0].toUpperCase());
    setText(who.firstChild, name);
    setText(who.lastChild, name === userId ? "" : userId);
    setText(of, `epoch ${epoch}${devices ? ` · ${devices.length} devices` : ""}`);
    this.#lease(row, participant);
  }

  #lease(row, participant) {
    const [, , pill, , lease] = row.firstChild.children;
    const known = this.#leases.of(participant);
    const now = this.#clock.now();
    const left = leaseLeft(known, now);
    setText(pill, known.status);
    pill.dataset.status = known.status;
    setText(lease.firstChild, now === null ? "" : !this.isLive ? "stands" : `${duration(Math.max(0, known.expiresAtMs - now))} left`);
    lease.dataset.left = left < 0.25 ? "little" : "enough";
    lease.lastChild.firstChild.style.transform = `scaleX(${left.toFixed(3)})`;
  }

  #open(userId) {
    const participant = this.#all.find((each) => each.userId === userId);
    if (!participant) return;
    personDialog(this.#roomId, this.#leases.of(participant), { now: this.#clock.now(), onDone: this.#onDone });
  }
}

function matches(participant, wanted) {
  return [participant.userId, nameOf(participant)].some((text) => text.toLowerCase().includes(wanted));
}
