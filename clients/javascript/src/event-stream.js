const LF = 10;
const CR = 13;

/** Reads server-sent events from bytes that may be cut anywhere, also within a character or a line's end. */
export class EventStream {
  #line = [];
  #afterCarriageReturn = false;
  #decoder = new TextDecoder();
  #event = { type: "", data: [] };
  #onEvent;
  /** What the server asks to wait before the next connection. */
  retryMs = 0;

  constructor(onEvent) {
    this.#onEvent = onEvent;
  }

  push(bytes) {
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      const secondOfPair = byte === LF && this.#afterCarriageReturn;
      this.#afterCarriageReturn = byte === CR;
      if (byte !== LF && byte !== CR) continue;
      if (!secondOfPair) {
        this.#line.push(bytes.subarray(from, at));
        this.#take(this.#line.map((part) => this.#decoder.decode(part, { stream: true })).join("") + this.#decoder.decode());
        this.#line = [];
      }
      from = at + 1;
    }
    if (from < bytes.length) this.#line.push(bytes.slice(from));
  }

  #take(line) {
    if (line === "") {
      const { type, data } = this.#event;
      this.#event = { type: "", data: [] };
      if (data.length > 0) this.#onEvent(type || "message", data.join("\n"));
      return;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") this.#event.type = value;
    else if (field === "data") this.#event.data.push(value);
    else if (field === "retry") this.retryMs = value * 1 || 0;
  }
}
