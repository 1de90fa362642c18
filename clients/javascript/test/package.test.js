import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const run = promisify(execFile);
const here = new URL("..", import.meta.url).pathname;

async function bundled(entry) {
  const { outputFiles } = await build({ entryPoints: [join(here, entry)], bundle: true, minify: true, format: "esm", write: false });
  return outputFiles[0];
}

test("the core is under 7 kB, minified and gzipped", async (t) => {
  const size = gzipSync((await bundled("src/index.js")).contents, { level: 9 }).length;
  t.diagnostic(`${size} bytes`);
  assert.ok(size < 7000, `${size} bytes`);
});

test("what a page loads needs nothing of Node, and nothing from elsewhere", async () => {
  for (const entry of ["src/index.js", "src/socket.js"]) assert.doesNotMatch((await bundled(entry)).text, /\bimport\b|\brequire\b|process\./);
});

test("the packed package is imported as modules, by CommonJS, and where there is no window", async () => {
  const work = await mkdtemp(join(tmpdir(), "leasehold-packed-"));
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", work], { cwd: here });
  const modules = join(work, "node_modules");
  await mkdir(join(modules, "leasehold"), { recursive: true });
  await run("tar", ["-xzf", join(work, stdout.trim()), "-C", join(modules, "leasehold"), "--strip-components=1"]);
  for (const peer of ["react", "yjs", "y-protocols", "lib0", "isomorphic.js"]) await symlink(join(here, "node_modules", peer), join(modules, peer));
  const entries = ["leasehold", "leasehold/socket", "leasehold/server", "leasehold/react", "leasehold/yjs"];
  const script = `Promise.all(${JSON.stringify(entries)}.map((entry) => import(entry)))
    .then((modules) => console.log(modules.map((module) => Object.keys(module).sort().join()).join(" ")))`;
  const expected = "joinRoom,watchRoom SocketTransport CellError,Cells,Gateway,WebhookError,mintToken,verifyWebhook LeaseholdProvider,useCount,useParticipants,useRoom RoomAwareness\n";
  for (const name of ["module.mjs", "common.cjs"]) {
    await writeFile(join(work, name), script);
    assert.equal((await run(process.execPath, [join(work, name)])).stdout, expected);
  }
  await rm(work, { recursive: true });
});
