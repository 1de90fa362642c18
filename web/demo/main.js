import { joinRoom } from "../client.js";
import { addressOf, colourOf, isClosed, nameOf, remember, roomId, tidyAddress, token, whoAmI } from "./address.js";
import { Lease } from "./lease.js";
import { Line } from "./line.js";
import { Log } from "./log.js";
import { looksOf, People } from "./people.js";
import { Stage } from "./stage.js";
import { makeTrouble } from "./troubles.js";

/** Short, so that one need not wait long to see it end. */
const LEASE_MS = 6000;

const $ = (id) => document.getElementById(id);
const service = new URL(".", location.href).href.replace(/\/$/, "");

let userId = whoAmI();
let room = null;
let leaseMs = LEASE_MS;
let told = 0;
let hasSnapshot = false;

const log = new Log($("log"), $("line"));
const lease = new Lease({ status: $("status"), bar: $("lease"), facts: $("self-facts") });
const people = new People($("people"), $("count"), $("person"));
const line = new Line(answered);
const stage = new Stage($("stage"), $("cursor"), (place) => {
  $("stage-hint").hidden = true;
  room?.moveCursor(place);
  return room;
});

function answered(exchange) {
  const { kind, body, status, answer, sentAt } = exchange;
  const current = room?.epoch ?? null;
  if (status === 200 && kind === "join") {
    told = answer.leaseMs;
    lease.renewed(sentAt, told);
  }
  if (status === 204 && (kind === "heartbeat" || kind === "cursor") && body.epoch === current) {
    told = body.leaseMs ?? told;
    lease.renewed(sentAt, told);
  }
  log.exchange(exchange, current);
}

/** Joins, and shows that room from now on; another one of before lives until it is told to stop. */
export function join() {
  const metadata = { name: $("name").value, colour: colourOf(userId) };
  const { platform } = line;
  const joining = joinRoom({ url: service, roomId, userId, token: token.get(), leaseMs, metadata, platform });
  room = joining;
  hasSnapshot = false;
  const ifShown = (show) => (detail) => joining === room && show(detail);
  const show = ifShown(() => {
    people.show(joining.participants, userId);
    stage.show(joining.participants, joining);
    lease.show(joining);
  });
  joining.on("participants", show);
  joining.on("status", show);
  joining.on("live", ifShown((live) => setTimeout(() => (hasSnapshot = live))));
  joining.on("joined", ifShown(({ participant }) => hasSnapshot && participant.userId !== userId && log.event("joined", looksOf(participant).name)));
  joining.on("left", ifShown(({ participant, reason }) => log.event("left", looksOf(participant).name, reason)));
  joining.on("ended", ifShown(ended));
  show();
  return joining;
}

function ended({ code, error }) {
  // The service may grant no lease as short as that.
  if (code === "invalid_request" && leaseMs) {
    leaseMs = undefined;
    join();
    return;
  }
  lease.show(room);
  if (code !== "unauthorized" && code !== "forbidden") return;
  $("credential-why").textContent = error;
  $("credential").hidden = false;
  $("token").focus();
}

function signIn(event) {
  event.preventDefault();
  const text = $("token").value.trim();
  token.set(text);
  // A token says who its holder is; a server key does not.
  userId = subjectOf(text) ?? userId;
  remember(userId);
  $("name").value = nameOf(userId);
  $("credential").hidden = true;
  join();
}

function subjectOf(text) {
  try {
    return JSON.parse(atob(text.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"))).sub;
  } catch {
    return undefined;
  }
}

function begin() {
  tidyAddress();
  $("room-name").textContent = roomId;
  $("live").hidden = isClosed;
  $("closed").hidden = !isClosed;
  $("come-back").href = addressOf();
  $("copy").addEventListener("click", async () => {
    // Only pages with TLS, or of this machine, have a clipboard.
    await navigator.clipboard?.writeText(addressOf());
    $("copy").textContent = navigator.clipboard ? "Copied" : "Copy it from the address bar";
  });
  $("open-person").addEventListener("click", () => openWindow(addressOf()));
  if (isClosed) return;
  for (const [id, text] of [["name", nameOf(userId)], ["token", ""]]) $(id).value = text;
  for (const [id, text] of [["token-sub", userId], ["token-room", roomId]]) $(id).textContent = `'${text}'`;
  $("name").addEventListener("input", () => room.setMetadata({ name: $("name").value, colour: colourOf(userId) }));
  $("credential-form").addEventListener("submit", signIn);
  makeTrouble({ line, current: () => room, join, openDevice: () => openWindow(addressOf({ as: userId })), service });
  join();
}

/** Apart from this one, also in which process runs it: what freezes here goes on there. */
function openWindow(address) {
  window.open(address, "_blank", "popup,noopener,width=760,height=720");
}

begin();
