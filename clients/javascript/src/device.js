import { randomId } from "./platform.js";

const KEY = "leasehold:device";
let ofThisTab;

/**
 * The id of this tab: the same after a reload, another in a duplicated tab.
 *
 * While the page lives the id is not in the storage, which a duplicated tab gets a copy of: it is put
 * there as the page goes, and taken out by the page that comes after it.
 */
export function deviceOfTab(platform) {
  if (!platform.window) return (ofThisTab ??= randomId());
  const storage = storageOf(platform);
  const known = platform.window[KEY];
  if (known) return known;
  const id = storage?.getItem(KEY) ?? randomId();
  storage?.removeItem(KEY);
  // On the window, since a page may have loaded this module twice.
  platform.window[KEY] = id;
  platform.window.addEventListener("pagehide", () => storage?.setItem(KEY, id));
  platform.window.addEventListener("pageshow", (event) => {
    if (event.persisted) storage?.removeItem(KEY);
  });
  return id;
}

/** None in a sandbox, where asking for it throws. */
function storageOf(platform) {
  try {
    return platform.window.sessionStorage;
  } catch {
    return undefined;
  }
}
