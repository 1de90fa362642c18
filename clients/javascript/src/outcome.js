/** What came of a request that was not answered. */
export const UNANSWERED = Object.freeze({ status: 0, body: {} });

/** Reasons why a session ended after which its client joins again by itself. */
const REJOIN = new Set(["expired", "unknown_session", "moved"]);

/**
 * What an answer asks of its client: `done`, `rejoin`, `again` (later, since it was no answer about the
 * session) or `stop`.
 */
export function verdict({ status, body }) {
  if (status >= 200 && status < 300) return "done";
  // 421: the proxy has yet to learn which cell has the room.
  if (status === 0 || status === 408 || status === 421 || status === 429 || status >= 500) return "again";
  return REJOIN.has(body.code) ? "rejoin" : "stop";
}
