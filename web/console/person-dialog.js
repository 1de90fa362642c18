import { facts, h, said } from "./dom.js";
import { duration, instant, nameOf } from "./format.js";
import { blockPerson, removePerson } from "./moderation.js";
import { toPerson } from "./route.js";

/** One person in one room, with what can be done about them. */
export function personDialog(roomId, participant, { now, onDone }) {
  const { userId, devices } = participant;
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const decide = async (decision) => {
    close();
    if (await decision(roomId, userId)) onDone();
  };
  const dialog = h(
    "dialog",
    {
      class: "dialog wide",
      "aria-labelledby": "person-heading",
      oncancel: (event) => (event.preventDefault(), close()),
    },
    h("h2", { id: "person-heading" }, said(nameOf(participant))),
    facts([
      ["Id", said(userId, { class: "mono" })],
      ["Status", participant.status],
      ["Here since", instant(participant.arrivedAtMs)],
      ["Last seen", now === null ? instant(participant.lastSeenMs) : `${duration(now - participant.lastSeenMs)} ago`],
      ["Epoch", String(participant.epoch)],
    ]),
    devices && sessions(devices),
    json("Info, by who vouches for them", participant.info),
    json("Metadata, by themselves", participant.metadata),
    json("Cursor", participant.cursor),
    h(
      "div",
      { class: "buttons" },
      h("a", { class: "button", href: toPerson(userId), text: "Where else", onclick: close }),
      h("button", { type: "button", class: "danger", text: "Remove…", onclick: () => decide(removePerson) }),
      h("button", { type: "button", class: "danger", text: "Block…", onclick: () => decide(blockPerson) }),
      h("button", { type: "button", class: "primary", text: "Close", autofocus: true, onclick: close }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function sessions(devices) {
  return h(
    "div",
    { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Devices" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ["Device", "Epoch", "Status", "Joined"].map((text) => h("th", { scope: "col", text })))),
      h(
        "tbody",
        {},
        devices.map((device) =>
          h(
            "tr",
            {},
            h("td", {}, device.deviceId === null ? h("span", { class: "muted", text: "unnamed" }) : said(device.deviceId)),
            h("td", { text: String(device.epoch) }),
            h("td", { text: device.status }),
            h("td", { text: instant(device.joinedAtMs) }),
          ),
        ),
      ),
    ),
  );
}

function json(label, value) {
  if (value === null || value === undefined) return null;
  const text = JSON.stringify(value, null, 2);
  return h(
    "div",
    { class: "field" },
    h("h3", { class: "label", text: label }),
    h("pre", { class: "json", tabindex: "0", text, "aria-label": label, role: "region" }),
  );
}
