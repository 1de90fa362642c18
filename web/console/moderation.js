/** What ends others' sessions or keeps people out, each after a question. */

import { ask, path } from "./api.js";
import { confirm } from "./confirm.js";
import { announce, sentence } from "./parts.js";

const REASON = { name: "reason", label: "Reason, kept in the history", maxLength: 500 };
const LENGTHS = [
  ["600000", "10 minutes"],
  ["3600000", "1 hour"],
  ["86400000", "1 day"],
  ["604800000", "7 days"],
  ["2592000000", "30 days"],
];

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Asks, does it, and says how it went; whether it was done. */
async function decide(question, method, address, done) {
  const values = await confirm(question);
  if (values === null) return false;
  try {
    await ask(method, address + query(values));
    announce(done);
    return true;
  } catch (error) {
    announce(sentence(error));
    return false;
  }
}

export function removePerson(roomId, userId) {
  return decide(
    {
      heading: `Remove ${userId}?`,
      text: `All their sessions in ${roomId} end now. They may join again.`,
      action: "Remove",
      fields: [REASON],
    },
    "DELETE",
    path("rooms", roomId, "participants", userId),
    `${userId} was removed.`,
  );
}

export function blockPerson(roomId, userId) {
  return decide(
    {
      heading: `Remove and block ${userId}?`,
      text: `Their sessions in ${roomId} end now, and they may neither join nor read it until the block is over.`,
      action: "Block",
      fields: [{ name: "blockForMs", label: "For", options: LENGTHS }, REASON],
    },
    "DELETE",
    path("rooms", roomId, "participants", userId),
    `${userId} was removed and is blocked.`,
  );
}

export function liftBlock(roomId, userId) {
  const whose = userId === null ? "the closing" : `the block of ${userId}`;
  return decide(
    { heading: `Lift ${whose}?`, text: "Joins are let in again at once.", action: "Lift", isDanger: false },
    "DELETE",
    `${userId === null ? path("rooms", roomId) : path("rooms", roomId, "participants", userId)}?blockForMs=0`,
    `${whose[0].toUpperCase()}${whose.slice(1)} was lifted.`,
  );
}

export function closeRoom(roomId) {
  return decide(
    {
      heading: `Close ${roomId}?`,
      text: "Every session in it ends now. Whoever joins later opens its next lifetime.",
      action: "Close the room",
      fields: [{ name: "blockForMs", label: "Nobody may join", options: [["", "not at all"], ...LENGTHS] }, REASON],
    },
    "DELETE",
    path("rooms", roomId),
    `${roomId} was closed.`,
  );
}

export function lockRoom(roomId, isLocked) {
  return decide(
    isLocked
      ? { heading: `Unlock ${roomId}?`, text: "Everybody may join again.", action: "Unlock", isDanger: false }
      : {
          heading: `Lock ${roomId}?`,
          text: "Those inside stay and may come back; nobody else gets in while this lifetime lasts.",
          action: "Lock",
          isDanger: false,
        },
    isLocked ? "DELETE" : "PUT",
    path("rooms", roomId, "lock"),
    isLocked ? `${roomId} was unlocked.` : `${roomId} was locked.`,
  );
}

export function expelPerson(userId) {
  return decide(
    {
      heading: `Put ${userId} out of all rooms?`,
      text: "All their sessions end now, everywhere.",
      action: "Put out",
      fields: [{ name: "blockForMs", label: "And keep them out", options: [["", "not at all"], ...LENGTHS] }, REASON],
    },
    "DELETE",
    path("users", userId, "sessions"),
    `${userId} was put out of all rooms.`,
  );
}
