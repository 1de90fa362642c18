// A small client for what must be set up or checked, not measured.
import { Agent, request as httpRequest } from "node:http";
import { createServer } from "node:net";

const IN_FLIGHT = 64;
const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });

export function send(baseUrl, method, path, body) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    const request = httpRequest(`${baseUrl}${path}`, { method, headers, agent }, (response) => {
      let answer = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => (answer += chunk));
      response.on("end", () => resolve({ status: response.statusCode, body: answer === "" ? null : JSON.parse(answer) }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(text);
  });
}

/** As `send`, and anything but the expected status is an error. */
export async function expect(status, baseUrl, method, path, body) {
  const answer = await send(baseUrl, method, path, body);
  if (answer.status !== status) {
    throw new Error(`${method} ${baseUrl}${path} answered ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

/** Applies `action` to every item, some of them at once. */
export async function forEachAtOnce(items, action) {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await action(item);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
