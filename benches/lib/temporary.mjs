// Temporary directories, all removed when the run ends, however it ends.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set();

export function temporaryDirectory(purpose) {
  const path = mkdtempSync(join(tmpdir(), `leasehold-${purpose}-`));
  made.add(path);
  return path;
}

export function remove(path) {
  rmSync(path, { recursive: true, force: true });
  made.delete(path);
}

export function removeAll() {
  for (const path of made) remove(path);
}
