import { crowd } from "../live/crowd.mjs";
import { hall } from "../live/hall.mjs";
import { idle } from "../live/idle.mjs";
import { latency } from "../live/latency.mjs";
import { manyRooms } from "../live/many-rooms.mjs";

export const about = "how soon changes arrive at subscribers, and what subscribers cost";

export async function run(environment) {
  const parts = [latency, idle, crowd, manyRooms, hall];
  const rows = [];
  for (const part of parts) rows.push(...(await part(environment)));
  return rows;
}
