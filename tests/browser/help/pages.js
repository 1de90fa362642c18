import assert from "node:assert/strict";
import { EventStream } from "../../../clients/javascript/src/event-stream.js";
import { Service } from "../../../clients/javascript/test/help/service.js";
import { Chromium } from "./chromium.js";
import { Site } from "./site.js";
import { SlowWay } from "./slow-way.js";

/** What a test says where it cannot be tried. */
export const skip =
  process.env.LEASEHOLD_BIN && process.env.CHROMIUM_BIN ? false : "scripts/test-browser says which programs to use: LEASEHOLD_BIN, CHROMIUM_BIN";

/** A service, a browser, and a site whose pages use both. */
export class Stage {
  #lastRoom = 0;

  static async start({ settings = {}, flags } = {}) {
    const stage = new Stage();
    stage.site = await Site.start();
    stage.service = await Service.start({ LEASEHOLD_CORS_ORIGINS: stage.site.url, ...settings });
    stage.browser = await Chromium.start(flags);
    return stage;
  }

  async end() {
    await this.browser.end();
    await this.service.end();
    await this.site.end();
  }

  /** A room of its own for a test, and its pages; what goes wrong in one of them fails the test. */
  visit(test) {
    const visit = new Visit(this, `room ${++this.#lastRoom}`);
    test.after(() => visit.end());
    return visit;
  }
}

/** The pages of one test. */
class Visit {
  #pages = [];
  #contexts = [];
  #faults = [];
  #expected = [];
  #ways = [];
  #following = [];

  constructor(stage, roomId) {
    this.stage = stage;
    this.roomId = roomId;
  }

  /** A fault that belongs to the test: one that is not said here fails it. */
  expect(pattern) {
    this.#expected.push(pattern);
  }

  /** Somebody opens the page in a browser of their own, or with `beside` in another tab of that page's. */
  async open(userId, { page = "room", beside, policy, within, ...options } = {}) {
    const context = within ?? beside?.context() ?? (await this.newContext());
    const opened = this.watch(await context.newPage());
    await opened.goto(this.address(userId, { page, policy, ...options }));
    if (page === "room") await opened.waitForFunction(() => window.room?.ready);
    return opened;
  }

  address(userId, { page = "room", policy, ...options } = {}) {
    const all = { url: this.stage.service.url, roomId: this.roomId, userId, metadata: { name: userId }, ...options };
    return this.stage.site.address(page, all, policy);
  }

  async newContext(options) {
    const context = await this.stage.browser.newContext(options);
    this.#contexts.push(context);
    return context;
  }

  /** A way to the service on which such requests wait for `letGo`. */
  async slowWay(isSlow) {
    const way = await SlowWay.to(this.stage.service, isSlow);
    this.#ways.push(way);
    return way;
  }

  /** The room's events as the service tells them, with its own instants, as they come. */
  async follow() {
    const { url } = this.stage.service;
    const attempt = new AbortController();
    this.#following.push(attempt);
    const response = await fetch(`${url}/rooms/${encodeURIComponent(this.roomId)}/events`, { signal: attempt.signal });
    const events = [];
    const stream = new EventStream((type, data) => events.push({ type, ...JSON.parse(data) }));
    const read = async () => {
      for await (const bytes of response.body) stream.push(bytes);
    };
    // Ends as the test does.
    read().catch(() => {});
    return events;
  }

  /** Notes what goes wrong in a page: errors, what it logs as one, and what its policy refuses. */
  watch(page) {
    this.#pages.push(page);
    page.on("pageerror", (error) => this.#faults.push(`${page.url()}: ${error.stack ?? error}`));
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "assert") this.#faults.push(`${message.location().url}: ${message.text()}`);
    });
    return page;
  }

  /** Who is there, as the service says. */
  participants() {
    return this.stage.service.participants(encodeURIComponent(this.roomId));
  }

  ask(method, path, body) {
    return this.stage.service.ask(method, `/rooms/${encodeURIComponent(this.roomId)}${path}`, body);
  }

  async end() {
    for (const page of this.#pages) await page.close().catch(() => {});
    for (const context of this.#contexts) await context.close().catch(() => {});
    for (const attempt of this.#following) attempt.abort();
    for (const way of this.#ways) await way.end();
    const unexpected = this.#faults.filter((fault) => !this.#expected.some((pattern) => pattern.test(fault)));
    assert.deepEqual(unexpected, []);
  }
}

/** What is of the page: its status, epoch, people; nothing while it loads. */
export const look = (page) => page.evaluate(() => window.look?.() ?? {});
export const heard = (page, type) => page.evaluate((type) => window.heard.filter((event) => !type || event.type === type), type);
