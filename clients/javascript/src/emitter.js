/** Listeners by the name of what they hear. */
export class Emitter {
  #listeners = new Map();

  /** Adds a listener and returns what removes it, and it alone. */
  on(type, listener) {
    const entry = { listener };
    const entries = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, entries.add(entry));
    return () => entries.delete(entry);
  }

  emit(type, detail) {
    for (const { listener } of [...(this.#listeners.get(type) ?? [])]) {
      try {
        listener(detail);
      } catch (error) {
        // A listener that throws must not keep others, or us, from going on.
        (globalThis.reportError ?? console.error)(error);
      }
    }
  }
}
