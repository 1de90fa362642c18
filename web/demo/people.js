import { colourOf, COLOURS, nameOf } from "./address.js";

/** How somebody is shown. Metadata is anybody's: what is not as it should be is not used. */
export function looksOf({ userId, metadata }) {
  const { name, colour } = metadata ?? {};
  const isName = typeof name === "string" && name.trim() !== "";
  const isColour = Number.isInteger(colour) && colour >= 0 && colour < COLOURS;
  return { name: isName ? name.slice(0, 40) : nameOf(userId), colour: isColour ? colour : colourOf(userId) };
}

/** Everybody in the room, in order of arrival. */
export class People {
  #list;
  #count;
  #template;
  #rows = new Map();

  constructor(list, count, template) {
    this.#list = list;
    this.#count = count;
    this.#template = template;
  }

  show(participants, ownId) {
    const rows = participants.map((participant) => this.#row(participant, ownId));
    const present = new Set(participants.map(({ userId }) => userId));
    for (const userId of this.#rows.keys()) if (!present.has(userId)) this.#rows.delete(userId);
    this.#list.replaceChildren(...rows);
    this.#count.textContent = participants.length || "";
  }

  #row(participant, ownId) {
    const { userId, status, epoch, devices } = participant;
    const row = this.#rows.get(userId) ?? this.#template.content.firstElementChild.cloneNode(true);
    this.#rows.set(userId, row);
    const { name, colour } = looksOf(participant);
    const [dot, label, facts, pill] = row.children;
    dot.dataset.colour = colour;
    label.textContent = name;
    const parts = [userId === ownId && "you", devices?.length > 1 && `${devices.length} devices`, `epoch ${epoch}`];
    facts.textContent = parts.filter(Boolean).join(" · ");
    pill.textContent = status;
    pill.dataset.tone = status === "connected" ? "good" : "warn";
    return row;
  }
}
