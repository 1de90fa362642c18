import type { ReactElement, ReactNode } from "react";
import type { End, JoinOptions, Json, Participant, Room, Status, WatchOptions } from "../src/index.js";

/** What `LeaseholdProvider` says need not be said again. */
type Given = "url" | "token" | "userId" | "transport";
type Optional<Options> = Omit<Options, Given> & Partial<Pick<Options, Extract<Given, keyof Options>>>;

export interface RoomInUse {
  /** Null before the component is mounted, and on a server. */
  readonly room: Room | null;
  readonly status: Status;
  readonly end: End | null;
  moveCursor(cursor: Json | null): void;
  setMetadata(metadata: Json | null): void;
  /** Tries at once; after an end, joins anew. */
  reconnect(): void;
}

/** The service and its credential for all that is below; its rooms share one connection. */
export function LeaseholdProvider(props: Partial<Pick<JoinOptions, Given>> & { children?: ReactNode }): ReactElement;

/** Is in a room while the component is there; null for none. */
export function useRoom(options: Optional<JoinOptions> | null): RoomInUse;

/** Everybody in that room, in order of arrival. */
export function useParticipants(room: Pick<RoomInUse, "room">): readonly Participant[];

/** How many are in a room, without being in it; null while that is not known. */
export function useCount(options: Optional<WatchOptions> | null): number | null;
