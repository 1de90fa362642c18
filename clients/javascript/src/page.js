/**
 * Follows the page that the client runs on; returns what ends that. Its hints are reasons to try, never
 * facts: each is told as `wake`, and the server's answer decides.
 */
export function followPage({ document, window }, { wake, away, back }) {
  if (!document || !window) return () => {};
  const listeners = [
    [document, "visibilitychange", wake],
    [document, "resume", back],
    [window, "focus", back],
    [window, "online", wake],
    [window, "offline", wake],
    // Not `beforeunload`, after which the page may well stay.
    [window, "pagehide", away],
    [window, "pageshow", back],
  ];
  for (const [target, type, listener] of listeners) target.addEventListener(type, listener);
  return () => {
    for (const [target, type, listener] of listeners) target.removeEventListener(type, listener);
  };
}

/** Read anew each time: what an event told may be old. */
export function isHidden({ document }) {
  return document?.visibilityState === "hidden";
}
