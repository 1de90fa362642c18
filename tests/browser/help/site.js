import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { mintToken } from "../../../clients/javascript/server/index.js";
import { SECRET } from "../../../clients/javascript/test/help/service.js";

const CLIENT = fileURLToPath(new URL("../../../clients/javascript/", import.meta.url));
const PAGES = fileURLToPath(new URL("../pages/", import.meta.url));
const { build } = createRequire(CLIENT)("esbuild");

/** As strict as a page may be that has the client from the service and asks it; a test may change a part. */
const POLICY = {
  "default-src": "'none'",
  "script-src": "'self' http://127.0.0.1:*",
  "connect-src": "'self' http://127.0.0.1:* ws://127.0.0.1:*",
  "worker-src": "blob:",
};

/** Where the tests' pages are: another origin than the service, as an application's pages are. */
export class Site {
  static async start() {
    const site = new Site();
    site.server = createServer((request, response) => site.#answer(request, response));
    await new Promise((resolve) => site.server.listen(0, "127.0.0.1", resolve));
    site.url = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  /** The address of a page with what it is to do, and with parts of its policy that are other ones. */
  address(page, options = {}, policy = {}) {
    return `${this.url}/${page}.html?${new URLSearchParams({ options: JSON.stringify(options), policy: JSON.stringify(policy) })}`;
  }

  async end() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.url);
    try {
      if (pathname === "/token") return response.end(token(searchParams));
      const [, name, kind] = pathname.match(/^\/([a-z-]+)\.(html|js)$/) ?? [];
      if (kind === "js") return response.writeHead(200, { "content-type": "text/javascript" }).end(await script(name));
      if (kind !== "html") return response.writeHead(204).end();
      const policy = { ...POLICY, ...JSON.parse(searchParams.get("policy") ?? "{}") };
      const headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": Object.entries(policy).map((part) => part.join(" ")).join("; "),
      };
      response.writeHead(200, headers).end(await readFile(`${PAGES}${name}.html`));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  }
}

/** As a back end would mint it for who is signed in, or as one would that has another secret. */
function token(searchParams) {
  const { sub, roomId, seconds, forged } = Object.fromEntries(searchParams);
  const secret = forged === undefined ? SECRET : SECRET.toUpperCase();
  return mintToken({ sub, roomIds: [roomId] }, secret, { expiresInSeconds: Number(seconds) });
}

/** With what it imports, among it what the tests of the client have installed. */
async function script(name) {
  const { outputFiles } = await build({
    entryPoints: [`${PAGES}${name}.js`],
    bundle: true,
    format: "esm",
    write: false,
    nodePaths: [`${CLIENT}node_modules`],
    alias: { "leasehold/react": `${CLIENT}react/index.js`, "leasehold/yjs": `${CLIENT}yjs/index.js`, leasehold: `${CLIENT}src/index.js` },
    define: { "process.env.NODE_ENV": '"development"' },
  });
  return outputFiles[0].contents;
}
