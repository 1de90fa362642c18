import { meaningOf, meaningOfEnd } from "./meanings.js";

const MOST = 150;
/** What comes all the time is counted where it was said, as long as that is in sight. */
const IN_SIGHT = 3;
const FREQUENT = new Set(["heartbeat", "cursor"]);

/** What was asked and answered, and who came and went, the newest first. */
export class Log {
  #list;
  #template;
  #rows = [];

  constructor(list, template) {
    this.#list = list;
    this.#template = template;
  }

  /** A request of this page; `current` is the epoch that lives on this device. */
  exchange(exchange, current) {
    const { kind, body, status, answer, isLate } = exchange;
    const epoch = body.epoch ?? answer.epoch;
    const asked = `${isLate ? "late " : ""}${kind}${epoch ? ` · epoch ${epoch}` : ""}`;
    const code = status === 0 ? "no answer" : [status, answer.code].filter(Boolean).join(" ");
    const tone = status === 0 ? "warn" : status >= 400 ? "bad" : "good";
    this.#add({ asked, code, tone, meaning: meaningOf(exchange, current), isFrequent: FREQUENT.has(kind) });
  }

  /** Somebody came, went, or is another one now. */
  event(type, name, reason) {
    const meaning = type === "left" ? meaningOfEnd(reason) : "";
    this.#add({ asked: name, code: reason === "expired" ? "expired" : type, tone: "event", meaning, isFrequent: false });
  }

  #add({ asked, code, tone, meaning, isFrequent }) {
    const key = `${asked} ${code}`;
    const known = isFrequent && this.#rows.slice(0, IN_SIGHT).find((row) => row.key === key);
    const row = known || this.#put(key);
    row.times++;
    const [time, request, pill, times, text] = row.element.children;
    time.textContent = new Date().toLocaleTimeString([], { hour12: false });
    request.textContent = asked;
    pill.textContent = code;
    pill.dataset.tone = tone;
    times.textContent = row.times > 1 ? `× ${row.times}` : "";
    text.textContent = meaning;
    text.hidden = !meaning;
  }

  #put(key) {
    const element = this.#template.content.firstElementChild.cloneNode(true);
    const row = { key, element, times: 0 };
    this.#rows.unshift(row);
    this.#list.prepend(element);
    for (const old of this.#rows.splice(MOST)) old.element.remove();
    return row;
  }
}
