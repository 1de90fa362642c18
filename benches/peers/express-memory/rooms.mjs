// Rooms in this process's memory: a Map of members for each room, as most presence services begin.
import { participant } from "../app.mjs";

const expired = (session, now) => now > session.lastSeenMs + session.leaseMs;

export class MemoryRooms {
  // A room's record stays after its last member, because epochs and generations must not start again.
  #rooms = new Map();

  #roomFor(roomId) {
    let room = this.#rooms.get(roomId);
    if (room === undefined) {
      room = { generation: 0, version: 0, members: new Map(), epochs: new Map(), nextExpiryMs: Infinity };
      this.#rooms.set(roomId, room);
    }
    return room;
  }

  /** Removes the expired; renewals only move leases later, so nothing is due before `nextExpiryMs`. */
  #prune(room, now) {
    if (now <= room.nextExpiryMs) return;
    room.nextExpiryMs = Infinity;
    for (const [userId, session] of room.members) {
      if (expired(session, now)) {
        room.members.delete(userId);
        room.version += 1;
      } else {
        room.nextExpiryMs = Math.min(room.nextExpiryMs, session.lastSeenMs + session.leaseMs);
      }
    }
  }

  join({ roomId, userId, leaseMs, cursor, metadata }) {
    const now = Date.now();
    const room = this.#roomFor(roomId);
    this.#prune(room, now);
    if (room.members.size === 0) room.generation += 1;
    const epoch = (room.epochs.get(userId) ?? 0) + 1;
    room.epochs.set(userId, epoch);
    // Deleted first, so that the Map's order stays the order of arrival.
    room.members.delete(userId);
    room.members.set(userId, { epoch, joinedAtMs: now, lastSeenMs: now, leaseMs, cursor, metadata });
    room.version += 1;
    room.nextExpiryMs = Math.min(room.nextExpiryMs, now + leaseMs);
    return { epoch, generation: room.generation, asOfMs: now };
  }

  /** Null when renewed, otherwise why the session is stale. */
  heartbeat({ roomId, userId, epoch, cursor, metadata, leaseMs }) {
    const now = Date.now();
    const room = this.#rooms.get(roomId);
    const last = room?.epochs.get(userId);
    if (last === undefined || epoch > last) return "unknown_session";
    if (epoch < last) return "superseded";
    const session = room.members.get(userId);
    if (session === undefined) return "left";
    if (expired(session, now)) return "expired";
    session.lastSeenMs = now;
    if (cursor !== undefined) session.cursor = cursor;
    if (metadata !== undefined) session.metadata = metadata;
    if (leaseMs !== undefined) {
      session.leaseMs = leaseMs;
      room.nextExpiryMs = Math.min(room.nextExpiryMs, now + leaseMs);
    }
    return null;
  }

  leave({ roomId, userId, epoch }) {
    const room = this.#rooms.get(roomId);
    if (room?.members.get(userId)?.epoch !== epoch) return;
    room.members.delete(userId);
    room.version += 1;
  }

  list(roomId) {
    const now = Date.now();
    const room = this.#rooms.get(roomId);
    if (room !== undefined) this.#prune(room, now);
    if (room === undefined || room.members.size === 0) {
      return { generation: null, version: null, asOfMs: now, participants: [] };
    }
    const participants = [];
    for (const [userId, session] of room.members) participants.push(participant(userId, session, now));
    return { generation: room.generation, version: room.version, asOfMs: now, participants };
  }

  /** The periodic cleaner, for rooms that nobody reads. */
  sweep() {
    const now = Date.now();
    for (const room of this.#rooms.values()) this.#prune(room, now);
  }
}
