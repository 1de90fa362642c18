export interface Claims {
  /** The `userId` that the holder is. */
  sub: string;
  /** Rooms, each by its id as it is. */
  roomIds?: string[];
  /** How ids of rooms begin. */
  roomPrefixes?: string[];
  /** `member` if left out; several are separated by spaces. */
  scope?: string;
  /** Shown beside the holder's metadata, and written by nobody else. */
  info?: { [key: string]: unknown };
  maxMembers?: number;
  aud?: string | string[];
  iss?: string;
  [claim: string]: unknown;
}

/** A client token, signed with HS256. */
export function mintToken(claims: Claims, secret: string, options?: { expiresInSeconds?: number }): string;

export class WebhookError extends Error {}

/**
 * The content of a webhook that is signed as Standard Webhooks says; throws `WebhookError` for any other.
 * `body` is the text or the bytes as they came.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | { [name: string]: string | string[] | undefined },
  secrets: string | string[],
  options?: { toleranceSeconds?: number; now?: number },
): any;

export interface Leave {
  roomId: string;
  userId: string;
  deviceId?: string;
  epoch: number;
}

export interface Heartbeat extends Leave {
  leaseMs?: number;
  metadata?: { [key: string]: unknown } | null;
  cursor?: { [key: string]: unknown } | null;
}

/** 204, or what went wrong; `status` 0 where the service did not answer. */
export interface Result {
  status: number;
  code?: string;
  error?: string;
  retryAfterMs?: number;
}

/** What a gateway that holds many clients asks, many at once. */
export class Gateway {
  constructor(options: { url: string; key?: string; timeoutMs?: number });
  heartbeats(items: Heartbeat[]): Promise<Result[]>;
  leaves(items: Leave[]): Promise<Result[]>;
}

/** A cell that did not do what it was asked for; `status` 0 where it did not answer. */
export class CellError extends Error {
  readonly cell: string;
  readonly status: number;
  readonly code?: string;
}

/** Several cells asked as one. What is merged is of all of them, or fails. */
export class Cells {
  constructor(options: { cells: { [name: string]: { url: string; key?: string } }; timeoutMs?: number });
  /** In order of id. */
  rooms(options?: { prefix?: string }): AsyncGenerator<any>;
  /** In order of the room's id. */
  userRooms(userId: string): AsyncGenerator<any>;
  /** The newest join first. */
  userSessions(userId: string, options?: { from?: string | number; to?: string | number }): AsyncGenerator<any>;
  whereabouts(userIds: string[]): Promise<{ userId: string; rooms: any[]; lastSeenMs: number | null }[]>;
  /** Changes of a cell are in order, between cells there is none. */
  changes(
    positions?: { [cell: string]: string },
    options?: { limit?: number; waitMs?: number; room?: string; prefix?: string; kinds?: string },
  ): Promise<{ changes: ({ cell: string } & { [field: string]: any })[]; positions: { [cell: string]: string } }>;
  removeUser(userId: string, options?: { blockForMs?: number }): Promise<void>;
  eraseUser(userId: string): Promise<void>;
}
