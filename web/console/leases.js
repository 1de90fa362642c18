import { ask, get, path } from "./api.js";

const EVERY_MS = 2000;
/** Up to so many people the room is asked for, of more only those in sight. */
const SMALL = 200;
/** So many the room may have where the credential does not reach beyond it. */
const LARGE = 2000;

/**
 * How long people's leases are: a renewal is no event, so it is asked for. Of each person the newest session,
 * as the list of the room has it.
 */
export class Leases {
  #known = new Map();
  #roomId;
  #clock;
  #reachesBeyond = true;

  constructor(roomId, clock) {
    this.#roomId = roomId;
    this.#clock = clock;
  }

  /** The participant with what is known of the lease since. */
  of(participant) {
    const known = this.#known.get(participant.userId);
    return known?.epoch === participant.epoch ? { ...participant, ...known } : participant;
  }

  /** Asks until the signal is aborted. `inSight` says who is to be asked for, `count` how many there are. */
  async keep({ signal, inSight, count }) {
    while (!signal.aborted) {
      if (!document.hidden) await this.#ask({ signal, inSight, count }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  async #ask({ signal, inSight, count }) {
    if (count() <= SMALL || (!this.#reachesBeyond && count() <= LARGE)) return this.#askRoom(signal);
    const userIds = inSight();
    const { asOfMs } = await get(path("rooms", this.#roomId, "participants") + "?view=count", { signal });
    this.#clock.observe(asOfMs);
    if (userIds.length === 0 || !this.#reachesBeyond) return;
    try {
      const answer = JSON.parse(await ask("POST", "/whereabouts", { body: { userIds }, signal }));
      for (const { userId, rooms } of answer.users) {
        const here = rooms.find(({ roomId }) => roomId === this.#roomId);
        if (here) this.#take(userId, here);
      }
    } catch (error) {
      this.#reachesBeyond = error.status !== 403;
    }
  }

  async #askRoom(signal) {
    const room = await get(path("rooms", this.#roomId, "participants"), { signal });
    this.#clock.observe(room.asOfMs);
    this.#known.clear();
    for (const participant of room.participants) this.#take(participant.userId, participant);
  }

  #take(userId, { epoch, status, lastSeenMs, expiresAtMs }) {
    this.#known.set(userId, { epoch, status, lastSeenMs, expiresAtMs });
  }
}
