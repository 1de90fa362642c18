// Plain sockets: a client that costs less than what it measures.
import { connect } from "node:net";

const target = (baseUrl) => {
  const { hostname, port } = new URL(baseUrl);
  return { host: hostname, port: Number(port), noDelay: true };
};

/** An open event stream of a room; `onText` gets what arrives, with the chunk sizes of HTTP in between. */
export const subscribe = (baseUrl, room, onText) => stream(baseUrl, `/rooms/${room}/events`, onText);

/** The same of any address. */
export function stream(baseUrl, path, onText) {
  return new Promise((resolve, reject) => {
    const socket = connect(target(baseUrl));
    socket.setEncoding("utf8");
    socket.once("error", reject);
    socket.once("data", (head) => {
      if (!head.startsWith("HTTP/1.1 200")) return reject(new Error(`a subscriber was answered ${head.slice(0, 200)}`));
      socket.on("data", onText);
      resolve(socket);
    });
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  });
}

/** A connection that carries one request at a time and says when each is answered. */
export class Line {
  constructor(baseUrl) {
    this.waiting = [];
    this.socket = connect(target(baseUrl));
    this.socket.setEncoding("latin1");
    this.socket.on("data", (text) => {
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d+)/g)) this.waiting.shift()?.(Number(status));
    });
  }

  get busy() {
    return this.waiting.length > 0;
  }

  cursor({ room, user, epoch }, n) {
    const body = JSON.stringify({ userId: user, epoch, cursor: { n } });
    this.socket.write(
      `POST /rooms/${room}/cursor HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  end() {
    this.socket.destroy();
  }
}

export const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? null;
