/**
 * Follows the page that the client runs on; returns what ends that. Its hints are reasons to try, never
 * facts: each is told as `wake`, and the server's answer decides.
 */
export function followPage({ document, window }, { wake, away, back }) {
  const following = new AbortController();
  const on = (target, type, listener) => target?.addEventListener(type, listener, { signal: following.signal });
  on(document, "visibilitychange", wake);
  on(window, "online", wake);
  on(window, "offline", wake);
  on(document, "resume", back);
  on(window, "focus", back);
  on(window, "pageshow", back);
  // Not `beforeunload`, after which the page may well stay.
  on(window, "pagehide", away);
  return () => following.abort();
}

/** Read anew each time: what an event told may be old. */
export function isHidden({ document }) {
  return document?.visibilityState === "hidden";
}
