// The HTTP half that both peers share: the core of the contract over a store of rooms, so that they differ only in where members live.
import express from "express";

const LEASE_MS = { default: 15_000, least: 1_000, most: 300_000 };
const LONGEST_ID = 256;

class BadRequest extends Error {}

function requireId(value, name) {
  if (value === undefined || value === null) throw new BadRequest(`${name} is required`);
  if (typeof value !== "string" || value.length < 1 || value.length > LONGEST_ID || /[\u0000-\u001f\u007f]/.test(value)) {
    throw new BadRequest(`${name} must be 1 to ${LONGEST_ID} characters without control characters`);
  }
  return value;
}

function requireEpoch(value) {
  if (!Number.isSafeInteger(value) || value < 1) throw new BadRequest("epoch must be a positive integer");
  return value;
}

function optionalLease(value) {
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || value < LEASE_MS.least || value > LEASE_MS.most) {
    throw new BadRequest(`leaseMs must be from ${LEASE_MS.least} to ${LEASE_MS.most}`);
  }
  return value;
}

function optionalObject(value, name) {
  if (value !== undefined && value !== null && (typeof value !== "object" || Array.isArray(value))) {
    throw new BadRequest(`${name} must be an object or null`);
  }
  return value;
}

/** A third of the lease, the contract's default. */
export const heartbeatMs = (leaseMs) => Math.floor(leaseMs / 3);

/** What a person of the list looks like; both peers answer with exactly these fields. */
export function participant(userId, session, now) {
  const late = now - session.lastSeenMs > 1.5 * heartbeatMs(session.leaseMs);
  return {
    userId,
    epoch: session.epoch,
    status: late ? "reconnecting" : "connected",
    joinedAtMs: session.joinedAtMs,
    lastSeenMs: session.lastSeenMs,
    expiresAtMs: session.lastSeenMs + session.leaseMs,
    cursor: session.cursor,
    metadata: session.metadata,
  };
}

function renewal(request) {
  const body = request.body ?? {};
  return {
    roomId: requireId(request.params.roomId, "roomId"),
    userId: requireId(body.userId, "userId"),
    epoch: requireEpoch(body.epoch),
    cursor: optionalObject(body.cursor, "cursor"),
    metadata: optionalObject(body.metadata, "metadata"),
    leaseMs: optionalLease(body.leaseMs),
  };
}

function answerRenewal(response, staleCode) {
  if (staleCode === null) response.status(204).end();
  else response.status(409).json({ error: "stale session", code: staleCode });
}

/** An Express application over a store with `join`, `heartbeat`, `leave` and `list`, which may be synchronous or not. */
export function createApp(store) {
  const app = express();
  // Nothing here is cacheable or rendered, so the headers that only cost time are switched off.
  app.disable("x-powered-by");
  app.disable("etag");
  app.use(express.json({ limit: "16kb" }));

  app.post("/rooms/:roomId/join", async (request, response) => {
    const { roomId, userId, cursor, metadata, leaseMs } = joinOf(request);
    const joined = await store.join({ roomId, userId, cursor, metadata, leaseMs });
    response.json({
      roomId,
      userId,
      epoch: joined.epoch,
      generation: joined.generation,
      leaseMs,
      heartbeatMs: heartbeatMs(leaseMs),
      expiresAtMs: joined.asOfMs + leaseMs,
      asOfMs: joined.asOfMs,
    });
  });

  app.post("/rooms/:roomId/heartbeat", async (request, response) => {
    answerRenewal(response, await store.heartbeat(renewal(request)));
  });

  app.post("/rooms/:roomId/cursor", async (request, response) => {
    const beat = renewal(request);
    if (beat.cursor === undefined) throw new BadRequest("cursor is required");
    answerRenewal(response, await store.heartbeat({ ...beat, metadata: undefined, leaseMs: undefined }));
  });

  app.post("/rooms/:roomId/leave", async (request, response) => {
    const { roomId, userId, epoch } = renewal(request);
    await store.leave({ roomId, userId, epoch });
    response.status(204).end();
  });

  app.get("/rooms/:roomId/participants", async (request, response) => {
    const roomId = requireId(request.params.roomId, "roomId");
    response.json({ roomId, ...(await store.list(roomId)) });
  });

  app.get("/healthz", (_request, response) => response.json({ status: "ok" }));

  app.use((_request, response) => response.status(404).json({ error: "no such route", code: "not_found" }));

  app.use((error, _request, response, _next) => {
    const status = error instanceof BadRequest ? 400 : (error.status ?? 500);
    if (status >= 500) console.error(error);
    const known = status < 500;
    response
      .status(status)
      .json({ error: known ? error.message : "internal error", code: known ? "invalid_request" : "internal" });
  });

  return app;
}

function joinOf(request) {
  const body = request.body ?? {};
  return {
    roomId: requireId(request.params.roomId, "roomId"),
    userId: requireId(body.userId, "userId"),
    leaseMs: optionalLease(body.leaseMs) ?? LEASE_MS.default,
    cursor: optionalObject(body.cursor, "cursor") ?? null,
    metadata: optionalObject(body.metadata, "metadata") ?? null,
  };
}

/** Listens on loopback alone and ends cleanly on a signal. */
export function listen(app, port, onClose) {
  const server = app.listen(port, "127.0.0.1", (error) => {
    if (error) throw error;
    console.log(`listening on http://127.0.0.1:${server.address().port}`);
  });
  const close = () => {
    server.closeAllConnections();
    server.close(() => onClose());
  };
  process.once("SIGINT", close);
  process.once("SIGTERM", close);
}
