import { createServer, request as ask } from "node:http";

/** A way to the service on which some requests take long. */
export class SlowWay {
  /** What was let through late, as `{path, body}`. */
  late = [];
  #held = [];

  static async to(service, isSlow) {
    const way = new SlowWay();
    way.server = createServer((request, response) => way.#take(request, response, service, isSlow));
    await new Promise((resolve) => way.server.listen(0, "127.0.0.1", resolve));
    way.url = `http://127.0.0.1:${way.server.address().port}`;
    return way;
  }

  async end() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** What was held arrives now; answers once the service has dealt with it. */
  async letGo() {
    await Promise.all(this.#held.splice(0).map((pass) => pass()));
  }

  get heldNow() {
    return this.#held.length;
  }

  async #take(request, response, service, isSlow) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const pass = () =>
      new Promise((resolve) => {
        const { method, headers, url } = request;
        const passed = ask(service.url + url, { method, headers }, (answer) => {
          if (isSlow(request)) this.late.push({ path: url, body: JSON.parse(body), status: answer.statusCode });
          response.writeHead(answer.statusCode, answer.headers);
          answer.pipe(response);
          answer.once("end", resolve);
        });
        response.once("close", () => passed.destroy());
        passed.once("error", resolve);
        passed.end(body);
      });
    if (isSlow(request)) this.#held.push(pass);
    else pass();
  }
}
