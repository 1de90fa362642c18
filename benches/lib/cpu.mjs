// CPU time from /proc, in microseconds since the process began.
import { readFileSync } from "node:fs";

// Linux reports in ticks of USER_HZ, which is 100 on every platform that it supports.
const TICK_US = 10_000;

function times(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may contain spaces; the fields after it begin with the third.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  const [utime, stime, cutime, cstime] = fields.slice(11, 15);
  return { own: (utime + stime) * TICK_US, reaped: (cutime + cstime) * TICK_US };
}

/** One process with all its threads. */
export const processCpu = (pid) => times(pid).own;

/** A process and its children, the ended ones included, so that backends which come and go are not lost. */
export function familyCpu(pid) {
  const { own, reaped } = times(pid);
  let total = own + reaped;
  for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")) {
    if (child === "") continue;
    try {
      total += times(child).own;
    } catch {
      // It ended between the two reads.
    }
  }
  return total;
}
