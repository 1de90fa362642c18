/** Where the page is and who it is, from its address and what the tab remembers. */

const ADJECTIVES = ["brave", "calm", "clever", "eager", "gentle", "happy", "keen", "lively", "merry", "quick", "quiet", "sunny"];
const ANIMALS = ["badger", "crane", "dolphin", "falcon", "fox", "heron", "ibex", "lynx", "otter", "panda", "raven", "tapir"];
const PERSON = "leasehold:demo:person";
const TOKEN = "leasehold:demo:token";

const query = new URLSearchParams(location.search);

export const isClosed = query.has("closed");
export const roomId = query.get("room") || `${pick(ADJECTIVES)}-room-${digits()}`;

/** Who opens the page: as whom the address says, or as before in this tab, or somebody new. */
export function whoAmI() {
  const userId = query.get("as") || sessionStorage.getItem(PERSON) || `${pick(ADJECTIVES)}-${pick(ANIMALS)}-${digits()}`;
  remember(userId);
  return userId;
}

export function remember(userId) {
  sessionStorage.setItem(PERSON, userId);
}

/** The credential that was pasted in this tab, if any. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? undefined,
  set: (text) => sessionStorage.setItem(TOKEN, text),
};

/** The address of the room; as somebody, or closed. Without them it is what may be handed on. */
export function addressOf(extra = {}) {
  const address = new URL(location.pathname, location.href);
  address.search = new URLSearchParams({ room: roomId, ...extra });
  return address.href;
}

/** So that a person's address, copied from the browser, makes nobody else be them. */
export function tidyAddress() {
  history.replaceState(null, "", addressOf());
}

/** `brave-otter-17` is Brave Otter. */
export function nameOf(userId) {
  const words = userId.split("-").filter((word) => /^\p{L}+$/u.test(word));
  return words.map((word) => word[0].toUpperCase() + word.slice(1)).join(" ") || userId;
}

export const COLOURS = 8;

export function colourOf(userId) {
  let sum = 0;
  for (const letter of userId) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return sum % COLOURS;
}

function pick(words) {
  return words[Math.floor(Math.random() * words.length)];
}

function digits() {
  return Math.floor(10 + Math.random() * 9990);
}
