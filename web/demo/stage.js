import { looksOf } from "./people.js";

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEP = 0.03;

/** The plane on which everybody's cursor moves. A place is two shares, of its width and its height. */
export class Stage {
  #element;
  #template;
  #cursors = new Map();
  #own = { x: 0.5, y: 0.5 };
  #moved;

  /** `moved` is told where one's own cursor went. */
  constructor(element, template, moved) {
    this.#element = element;
    this.#template = template;
    this.#moved = moved;
    element.addEventListener("pointermove", (event) => this.#pointed(event));
    element.addEventListener("pointerdown", (event) => this.#pointed(event));
    element.addEventListener("keydown", (event) => this.#pressed(event));
  }

  show(participants, room) {
    const present = new Set();
    for (const participant of participants) {
      // Each device has a cursor of its own; one alone is not listed.
      for (const session of participant.devices ?? [participant]) {
        const isOwn = participant.userId === room.userId && (session.deviceId ? session.deviceId === room.deviceId : session.epoch === room.epoch);
        const place = placeOf(session.cursor);
        if (isOwn || !place) continue;
        const key = `${participant.userId} ${session.epoch}`;
        present.add(key);
        this.#put(key, place, participant, session.status);
      }
    }
    present.add("own");
    for (const [key, cursor] of this.#cursors) {
      if (present.has(key)) continue;
      cursor.remove();
      this.#cursors.delete(key);
    }
    if (this.#cursors.has("own")) this.#showOwn(room);
  }

  /** One's own cursor is where the pointer is, whatever the network does. */
  #showOwn(room) {
    const { userId, metadata } = room.self ?? { userId: room.userId };
    this.#put("own", this.#own, { userId, metadata }, "connected");
    this.#cursors.get("own").classList.add("own");
  }

  #put(key, { x, y }, participant, status) {
    let cursor = this.#cursors.get(key);
    if (!cursor) {
      cursor = this.#template.content.firstElementChild.cloneNode(true);
      this.#cursors.set(key, cursor);
      this.#element.append(cursor);
    }
    const { name, colour } = looksOf(participant);
    cursor.dataset.colour = colour;
    cursor.lastElementChild.textContent = key === "own" ? `${name} (you)` : name;
    cursor.classList.toggle("faint", status !== "connected");
    cursor.classList.toggle("flipped", x > 0.75);
    cursor.style.left = `${x * 100}%`;
    cursor.style.top = `${y * 100}%`;
  }

  #pointed({ clientX, clientY }) {
    const { left, top, width, height } = this.#element.getBoundingClientRect();
    this.#move((clientX - left) / width, (clientY - top) / height);
  }

  #pressed(event) {
    const step = KEYS[event.key];
    if (!step) return;
    event.preventDefault();
    this.#move(this.#own.x + step[0] * STEP, this.#own.y + step[1] * STEP);
  }

  #move(x, y) {
    this.#own = { x: within(x), y: within(y) };
    const room = this.#moved(this.#own);
    if (room) this.#showOwn(room);
  }
}

function within(share) {
  return Math.round(Math.min(1, Math.max(0, share)) * 1000) / 1000;
}

/** Of a cursor that anybody may have sent. */
function placeOf(cursor) {
  const isShare = (value) => typeof value === "number" && value >= 0 && value <= 1;
  return isShare(cursor?.x) && isShare(cursor?.y) ? cursor : null;
}
