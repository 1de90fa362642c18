import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Opens the console there, in a browser of somebody's own. */
export async function openConsole(visit, hash, { width = 1280, height = 800, scheme = "light", within } = {}) {
  const context = within ?? (await visit.newContext({ viewport: { width, height }, colorScheme: scheme }));
  const page = visit.watch(await context.newPage());
  await page.goto(`${visit.stage.service.url}/console${hash}`);
  return page;
}

/** What axe finds that keeps somebody out: serious and critical faults, each with where it is. */
export async function faults(page) {
  // By the debugger's protocol, which the page's policy does not concern.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return grave.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`);
}

/** By how much the page is wider than the window. */
export const overhang = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

/** Many requests, some at a time. */
export async function inTurns(count, atOnce, ask) {
  let next = 0;
  const worker = async () => {
    while (next < count) await ask(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
