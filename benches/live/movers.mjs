// A thread that moves the cursors of many members, each so many times a second, and counts what was answered.
import { parentPort, workerData } from "node:worker_threads";
import { Line } from "./wire.mjs";

const { baseUrl, members, hertz, lines } = workerData;
const TICK_MS = 10;

const open = Array.from({ length: lines }, () => new Line(baseUrl));
const shares = open.map((_, index) => members.filter((_, place) => place % lines === index));
const next = new Array(lines).fill(0);
const counts = { answered: 0, failed: 0, late: 0 };
let n = 0;
let began = performance.now();
let due = 0;

const timer = setInterval(() => {
  due += (members.length * hertz * TICK_MS) / 1_000;
  while (due >= 1) {
    due -= 1;
    const index = n % lines;
    n += 1;
    // The line still waits for its last answer: this move is left out.
    if (open[index].busy) {
      counts.late += 1;
      continue;
    }
    const share = shares[index];
    const member = share[next[index]++ % share.length];
    open[index].cursor(member, -n).then((status) => (counts[status === 204 ? "answered" : "failed"] += 1));
  }
}, TICK_MS);

parentPort.on("message", (message) => {
  const seconds = (performance.now() - began) / 1_000;
  parentPort.postMessage({ ...counts, perSecond: counts.answered / seconds });
  Object.assign(counts, { answered: 0, failed: 0, late: 0 });
  began = performance.now();
  if (message === "stop") {
    clearInterval(timer);
    for (const line of open) line.end();
    parentPort.close();
  }
});
