/** Any JSON object. */
export type Json = { [key: string]: unknown };

/** `connecting` until the first join is answered; `ended` for good, see `end`. README.md says what each means. */
export type Status = "connecting" | "connected" | "reconnecting" | "lost" | "ended";

/** A token, or how to get one: asked again before it ends, and when the service refuses it. */
export type TokenSource = string | (() => string | Promise<string>);

export interface Device {
  readonly deviceId: string | null;
  readonly epoch: number;
  readonly status: "connected" | "reconnecting";
  readonly joinedAtMs: number;
  readonly lastSeenMs: number;
  readonly expiresAtMs: number;
  readonly cursor: Json | null;
  readonly metadata: Json | null;
  readonly info: Json | null;
}

/** A person in the room. Frozen; the same object until something about them changes. */
export interface Participant extends Omit<Device, "deviceId"> {
  readonly userId: string;
  readonly arrivedAtMs: number;
  /** Where the person has several sessions, the newest first. */
  readonly devices?: readonly Device[];
}

/** Why a handle stopped by itself, or `left`. */
export interface End {
  readonly code: string;
  readonly error?: string;
  readonly blockedUntilMs?: number;
  readonly [field: string]: unknown;
}

export interface Problem {
  readonly code: string;
  readonly error?: string;
}

export interface Joined {
  readonly roomId: string;
  readonly userId: string;
  readonly deviceId?: string;
  readonly epoch: number;
  readonly generation: number;
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly arrivedAtMs: number;
  readonly expiresAtMs: number;
  readonly asOfMs: number;
}

export interface WatchEvents {
  joined: { readonly type: "joined"; readonly participant: Participant };
  updated: { readonly type: "updated"; readonly participant: Participant };
  left: {
    readonly type: "left";
    readonly userId: string;
    /** Null where the end was missed. */
    readonly reason: "left" | "expired" | "removed" | "room_closed" | "moved" | null;
    readonly participant: Participant;
  };
  /** Once for all changes of the moment. */
  participants: readonly Participant[];
  live: boolean;
  ended: End;
}

export interface RoomEvents extends WatchEvents {
  status: Status;
  /** Something was refused that costs nobody the membership: a cursor or metadata that is too large. */
  problem: Problem;
}

/** Carries the connection: `SocketTransport` of `leasehold/socket`, or if left out server-sent events. */
export interface Transport {
  new (...internals: never[]): object;
}

export interface WatchOptions {
  /** Where the service is, like `https://presence.example.com`. */
  url: string;
  roomId: string;
  token?: TokenSource;
  transport?: Transport;
  /** `count`: how many there are, and nobody's name. */
  view?: "count";
  /** The service is of several cells: each room has a connection of its own, at its own address. */
  cells?: boolean;
}

export interface JoinOptions extends WatchOptions {
  userId: string;
  /** This tab if left out: the same after a reload, another in a duplicated tab. */
  deviceId?: string;
  metadata?: Json | null;
  cursor?: Json | null;
  /** The service's default if left out. */
  leaseMs?: number;
  /** The lease while the page is hidden, 120,000 if left out; 0 for the same. */
  hiddenLeaseMs?: number;
  /** `reject`: not where the person is present on another device. */
  ifPresent?: "reject";
  /** 10 if left out. */
  cursorsPerSecond?: number;
}

export interface Watch<Events = WatchEvents> {
  readonly roomId: string;
  /** Everybody, in order of arrival; the same list until something changes. */
  readonly participants: readonly Participant[];
  readonly count: number;
  /** Whether these are kept up; otherwise they are the last that is known. */
  readonly live: boolean;
  readonly end: End | null;
  /** Answers with what removes the listener. */
  on<Type extends keyof Events>(type: Type, listener: (detail: Events[Type]) => void): () => void;
  /** Tries at once where it waits to try again. */
  reconnect(): void;
  close(): void;
}

export interface Room extends Watch<RoomEvents> {
  readonly userId: string;
  readonly deviceId: string;
  readonly status: Status;
  /** Null while there is no membership. */
  readonly epoch: number | null;
  /** One's own entry among the participants. */
  readonly self: Participant | undefined;
  /** Resolves with the answer to the first join; rejects with a `code` where there will be none. */
  readonly ready: Promise<Joined>;
  /** Latest wins; null takes it away. */
  moveCursor(cursor: Json | null): void;
  setMetadata(metadata: Json | null): void;
  /** Resolves once the service has heard of it, or cannot be told. */
  leave(): Promise<void>;
}

/** Joins a room and stays in it until `leave()`. */
export function joinRoom(options: JoinOptions): Room;

/** Looks at a room without being in it. */
export function watchRoom(options: WatchOptions): Watch;
