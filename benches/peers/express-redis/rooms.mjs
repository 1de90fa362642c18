// Rooms in Redis: one Lua script for each operation, so that each is atomic and costs one round trip.
import { readFileSync } from "node:fs";
import { createClient, defineScript } from "@redis/client";
import { participant } from "../app.mjs";

const ROOM_KEYS = ["room", "epochs", "leases", "order", "sessions", "cursors"];
const DUE_KEY = "presence:due";
const ROOMS_PER_SWEEP = 1_000;

const readScript = (name) => readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), "utf8");
const prologue = readScript("prune");

function roomScript(name) {
  return defineScript({
    SCRIPT: `${prologue}\n${readScript(name)}`,
    NUMBER_OF_KEYS: ROOM_KEYS.length + 1,
    parseCommand(parser, roomId, ...values) {
      // The braces keep a room's keys in one slot, as a cluster would want.
      for (const key of ROOM_KEYS) parser.pushKey(`presence:{${roomId}}:${key}`);
      parser.pushKey(DUE_KEY);
      parser.push(...values.map(String));
    },
    transformReply: (reply) => reply,
  });
}

const jsonOrEmpty = (value) => (value === undefined ? "" : JSON.stringify(value));

export class RedisRooms {
  #client;

  /** The client sends what is asked within one turn of the event loop as one pipeline, and scripts by their hash. */
  static async connect(socketPath) {
    const rooms = new RedisRooms();
    rooms.#client = createClient({
      socket: { path: socketPath },
      scripts: Object.fromEntries(
        ["join", "heartbeat", "leave", "list", "sweep"].map((name) => [`${name}Room`, roomScript(name)]),
      ),
    });
    rooms.#client.on("error", (error) => console.error(error));
    await rooms.#client.connect();
    return rooms;
  }

  async join({ roomId, userId, leaseMs, cursor, metadata }) {
    const [epoch, generation, asOfMs] = await this.#client.joinRoom(
      roomId, roomId, userId, leaseMs, JSON.stringify(metadata), JSON.stringify(cursor),
    );
    return { epoch, generation, asOfMs };
  }

  heartbeat({ roomId, userId, epoch, cursor, metadata, leaseMs }) {
    return this.#client.heartbeatRoom(
      roomId, roomId, userId, epoch, jsonOrEmpty(cursor), jsonOrEmpty(metadata), leaseMs ?? "",
    );
  }

  leave({ roomId, userId, epoch }) {
    return this.#client.leaveRoom(roomId, userId, epoch);
  }

  async list(roomId) {
    const [asOfMs, generation, version, users, epochs, expiries, sessions, cursors] =
      await this.#client.listRoom(roomId);
    if (users === undefined) return { generation: null, version: null, asOfMs, participants: [] };
    const participants = users.map((userId, index) => {
      const session = JSON.parse(sessions[index]);
      session.epoch = Number(epochs[index]);
      session.lastSeenMs = Number(expiries[index]) - session.leaseMs;
      session.cursor = JSON.parse(cursors[index]);
      return participant(userId, session, asOfMs);
    });
    return { generation, version, asOfMs, participants };
  }

  /** The periodic cleaner, for rooms that nobody reads. */
  async sweep() {
    const due = await this.#client.zRangeByScore(DUE_KEY, "-inf", Date.now(), {
      LIMIT: { offset: 0, count: ROOMS_PER_SWEEP },
    });
    await Promise.all(due.map((roomId) => this.#client.sweepRoom(roomId, roomId)));
  }

  close() {
    return this.#client.close();
  }
}
