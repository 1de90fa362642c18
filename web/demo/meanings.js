/** What an answer meant, for who sees one for the first time. */

const ENDS = {
  superseded: (epoch) => `Epoch ${epoch} is over: a later join on this device took its place. That connection stops.`,
  expired: (epoch) => `The lease of epoch ${epoch} ran out meanwhile. The page joins again, with a higher epoch.`,
  left: (epoch) => `Epoch ${epoch} has left. The page stops.`,
  removed: () => "Somebody removed you. The page stops, and does not come back by itself.",
  room_closed: () => "Somebody closed the room. The page stops.",
  moved: (epoch) => `Epoch ${epoch} ended as its room went to another database. The page joins again, there.`,
  unknown_session: (epoch) => `Nobody knows an epoch ${epoch} here. The page joins again.`,
};

/** Of a request with its answer; `current` is the epoch that lives on this device, if any. */
export function meaningOf({ kind, body, status, answer, isLate }, current) {
  const { epoch } = body;
  if (status === 0) return isLate ? "It did not arrive." : "No answer. The page tries again, after a wait that grows.";
  if (status === 409 && ENDS[answer.code]) return ENDS[answer.code](epoch);
  if (status >= 400) return answer.error ?? "Refused.";
  if (kind === "join") return joined(answer);
  if (kind === "leave") {
    const isOld = current !== null && epoch < current;
    return isOld ? `It names epoch ${epoch}, and epoch ${current} lives: it changes nothing. You are still here.` : "You have left.";
  }
  if (kind === "heartbeat") return "The lease runs anew from here.";
  if (kind === "cursor") return "Others see it move. It renews the lease as a heartbeat does.";
  if (kind === "events") return "The stream is open: it tells who is here, and then every change.";
  return "";
}

function joined({ epoch, leaseMs, heartbeatMs }) {
  const lease = `a lease of ${leaseMs / 1000} s, to be renewed every ${heartbeatMs / 1000} s`;
  return epoch === 1 ? `You are in, with ${lease}.` : `You are in, with ${lease}. Whatever carries an epoch below ${epoch} now misses.`;
}

const LEFT = {
  left: "Said goodbye.",
  expired: "The lease ran out. Nobody had to notice.",
  removed: "Was removed.",
  room_closed: "The room was closed.",
  moved: "The room went to another database.",
};

/** Of somebody else's end. */
export function meaningOfEnd(reason) {
  return LEFT[reason] ?? "Went while this page could not hear of it.";
}
