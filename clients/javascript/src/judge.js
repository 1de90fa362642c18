import { verdict } from "./outcome.js";

/** Finds out which rooms of a connection that was refused may not be read, and tells them why. */
export class Judge {
  #connection;
  #requests;

  constructor(connection, requests) {
    this.#connection = connection;
    this.#requests = requests;
  }

  async ask(rooms) {
    const each = rooms.map(async (roomId) => {
      const path = `/rooms/${encodeURIComponent(roomId)}/participants?view=count`;
      const outcome = await this.#requests.send("GET", path);
      if (verdict(outcome) === "stop") this.#connection.refused(roomId, outcome.body);
    });
    await Promise.all(each);
  }
}
