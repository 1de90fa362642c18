import { connectionFor } from "./connection.js";
import { deviceOfTab } from "./device.js";
import { platform as surroundings } from "./platform.js";
import { Room } from "./room.js";
import { Watch } from "./watch.js";

/** Joins a room and stays in it until `leave()`; docs: README.md. */
export function joinRoom(options) {
  required(options, ["url", "roomId", "userId"]);
  const { platform = surroundings, deviceId = deviceOfTab(platform), ...rest } = options;
  const { hiddenLeaseMs = 120_000, cursorsPerSecond = 10 } = rest;
  const settings = { ...rest, deviceId, hiddenLeaseMs, cursorsPerSecond };
  const connection = connectionFor(settings, platform);
  const room = new Room(connection, settings);
  connection.add(settings.roomId, room);
  return room;
}

/** Looks at a room without being in it: everybody, or with `view: "count"` how many they are. */
export function watchRoom(options) {
  required(options, ["url", "roomId"]);
  const { platform = surroundings, ...settings } = options;
  const connection = connectionFor(settings, platform);
  const watch = new Watch(connection, settings.roomId);
  connection.add(settings.roomId, watch);
  return watch;
}

function required(options, names) {
  for (const name of names) {
    if (typeof options?.[name] !== "string" || options[name] === "") throw new TypeError(`${name} is required`);
  }
}
