import { crowd } from "../live/crowd.mjs";
import { idle } from "../live/idle.mjs";
import { latency } from "../live/latency.mjs";

export const about = "how soon changes arrive at subscribers, and what subscribers cost";

export async function run(environment) {
  return [...(await latency(environment)), ...(await idle(environment)), ...(await crowd(environment))];
}
