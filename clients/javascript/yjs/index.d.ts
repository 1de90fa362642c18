import type { Awareness } from "y-protocols/awareness";
import type { Doc } from "yjs";
import type { Room } from "../src/index.js";

/** The awareness of a Yjs document, carried by a room as the cursors of its members. */
export class RoomAwareness extends Awareness {
  constructor(room: Room, doc: Doc);
}
