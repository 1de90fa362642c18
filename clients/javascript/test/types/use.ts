// Checked by tsc: what is written here as users write it compiles, and what they must not write does not.
import { joinRoom, watchRoom, type Participant, type Status } from "leasehold";
import { LeaseholdProvider, useCount, useParticipants, useRoom } from "leasehold/react";
import { Gateway, mintToken, verifyWebhook } from "leasehold/server";
import { SocketTransport } from "leasehold/socket";
import { RoomAwareness } from "leasehold/yjs";
import * as Y from "yjs";

const room = joinRoom({ url: "", roomId: "r", userId: "u", token: async () => "t", transport: SocketTransport, metadata: { name: "U" } });
const off: () => void = room.on("left", ({ userId, reason }) => console.log(userId.length, reason === "expired"));
room.on("status", (status: Status) => status === "lost");
const names: string[] = room.participants.map(({ userId }) => userId);
room.ready.then(({ epoch }) => epoch.toFixed());
watchRoom({ url: "", roomId: "r", view: "count" }).count.toFixed();
new RoomAwareness(room, new Y.Doc()).setLocalStateField("user", { name: "U" });

// @ts-expect-error there is no such event
room.on("exploded", () => {});
// @ts-expect-error a room needs a user
joinRoom({ url: "", roomId: "r" });
// @ts-expect-error an entry is frozen
(room.participants[0] as Participant).epoch = 2;
// @ts-expect-error a watch has no status
watchRoom({ url: "", roomId: "r" }).status;

export function Component(): string {
  const inUse = useRoom({ roomId: "r", userId: "u" });
  const count: number | null = useCount({ roomId: "r" });
  inUse.moveCursor(null);
  return `${useParticipants(inUse).length} ${inUse.status} ${count}`;
}
LeaseholdProvider({ url: "", token: () => "t", children: "c" });

const token: string = mintToken({ sub: "u", roomIds: ["r"] }, "s", { expiresInSeconds: 60 });
verifyWebhook("", new Headers(), ["whsec_a", "whsec_b"]);
new Gateway({ url: "", key: "k" }).heartbeats([{ roomId: "r", userId: "u", epoch: 1 }]).then(([first]) => first?.code);
export { names, off, token };
