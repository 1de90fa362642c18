/** Addresses within the console: what is behind `#`, so that the server need not know of them. */

const VIEWS = ["rooms", "people", "signals", "webhooks"];

/** `{view, id, part, query}`; what is not an address is the list of rooms. */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, id = null, part = null] = path.split("/").map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (!VIEWS.includes(view)) return { view: "rooms", id: null, part: null, query: {} };
  return { view, id, part, query };
}

export function address({ view, id = null, part = null, query = {} }) {
  const path = [view, id, part].filter((each) => each !== null).map(encodeURIComponent);
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.join("/")}${search && "?" + search}`;
}

export const toRoom = (id) => address({ view: "rooms", id });
export const toHistory = (id, query) => address({ view: "rooms", id, part: "history", query });
export const toPerson = (id) => address({ view: "people", id });

function decoded(part) {
  try {
    return part === "" ? null : decodeURIComponent(part);
  } catch {
    return part;
  }
}
