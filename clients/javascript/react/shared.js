/** What components of one page share, by what it is about: they come and go, it is opened and ended once. */
const entries = new Map();

/** Says that a component needs it; what is returned says that it does no longer. */
export function retain(key, { open, end }, tell) {
  let entry = entries.get(key);
  if (!entry || entry.handle.end) {
    entry = Object.assign(entry ?? { tells: new Set() }, { handle: open(), end });
    entries.set(key, entry);
    for (const other of entry.tells) other(entry.handle);
  }
  entry.tells.add(tell);
  tell(entry.handle);
  return () => {
    entry.tells.delete(tell);
    // StrictMode, and a component that moves, come back before a task is over.
    setTimeout(() => {
      if (entry.tells.size > 0 || entries.get(key) !== entry) return;
      entries.delete(key);
      entry.end(entry.handle);
    });
  };
}
