/** Requests to the service whose page this is, with the credential of this tab. */

const KEY = "leasehold.console.credential";

/** The service may be below a path, behind a proxy: it is where this page is. */
export const BASE = new URL(".", location.href).href.replace(/\/$/, "");

/** A refusal, or no answer: `status` 0. */
export class Refused extends Error {
  constructor(status, { code = "unreachable", error = "the service does not answer" } = {}) {
    super(error);
    this.status = status;
    this.code = code;
  }
}

/** Kept for the tab only, and sent in a header: never in an address, which logs and histories keep. */
export const credential = {
  get: () => sessionStorage.getItem(KEY) ?? undefined,
  set: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

let onUnauthorized = () => {};

/** Who is told when a credential is asked for, or no longer holds. */
export function whenUnauthorized(listener) {
  onUnauthorized = listener;
}

export async function ask(method, path, { body, signal, token = credential.get(), timeoutMs = 15_000 } = {}) {
  const headers = {};
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  const limits = [AbortSignal.timeout(timeoutMs), signal].filter(Boolean);
  let response, text;
  try {
    response = await fetch(BASE + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.any(limits),
      cache: "no-store",
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0);
  }
  if (response.ok) return text;
  const refused = new Refused(response.status, read(text) ?? { code: "unknown", error: `status ${response.status}` });
  if (response.status === 401 && token === credential.get()) onUnauthorized(refused);
  throw refused;
}

export async function get(path, options) {
  return JSON.parse(await ask("GET", path, options));
}

/** Opens a stream; rejects with [`Refused`] where it is refused. */
export async function open(path, signal) {
  const token = credential.get();
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const response = await fetch(BASE + path, { headers, signal, cache: "no-store" });
  if (response.ok) return response.body.getReader();
  const refused = new Refused(response.status, read(await response.text()) ?? {});
  if (response.status === 401) onUnauthorized(refused);
  throw refused;
}

/** All pages of a list, the first `most` entries; `more` says whether there are others. */
export async function list(path, field, { most = 5000, signal } = {}) {
  const found = [];
  const joint = path.includes("?") ? "&" : "?";
  let after = null;
  do {
    const query = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    const page = await get(`${path}${joint}limit=1000${query}`, { signal });
    found.push(...page[field]);
    after = page.next;
  } while (after !== null && found.length < most);
  return { found, more: after !== null };
}

/** The path of a room or person, or of something of theirs. */
export function path(kind, id, ...rest) {
  return ["", kind, id, ...rest].map(encodeURIComponent).join("/");
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
