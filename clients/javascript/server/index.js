import { createHmac, timingSafeEqual } from "node:crypto";

export { CellError, Cells } from "./cells.js";

/** As many as the service takes in one call, unless it is set otherwise. */
const MAX_ITEMS = 1000;
/** By so many seconds a webhook's instant may differ from this machine's clock. */
const TOLERANCE = 300;

/**
 * A client token, signed with HS256. `claims` are those of the service: `sub`, and `roomIds` or
 * `roomPrefixes`; where `info`, `scope` or `maxMembers` are wanted, these too.
 */
export function mintToken(claims, secret, { expiresInSeconds = 3600 } = {}) {
  if (Buffer.byteLength(secret) < 32) throw new RangeError("the secret must have at least 32 bytes, as LEASEHOLD_JWT_HS256_SECRET");
  if (typeof claims.sub !== "string" || claims.sub === "") throw new TypeError("claims.sub must be the userId of the holder");
  const iat = Math.floor(Date.now() / 1000);
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ iat, exp: iat + expiresInSeconds, ...claims })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/**
 * The content of a webhook that is signed as Standard Webhooks says; throws `WebhookError` for any other.
 * `body` is the text or the bytes as they came; `secrets` is one, or several while one replaces another.
 */
export function verifyWebhook(body, headers, secrets, { toleranceSeconds = TOLERANCE, now = Date.now() } = {}) {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  if (!/^\d+$/.test(timestamp)) throw new WebhookError("webhook-timestamp is not a number of seconds");
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new WebhookError("webhook-timestamp is too far from now: it is a replay, or a clock is wrong");
  }
  const content = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body)]);
  const given = header(headers, "webhook-signature")
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"))
    .map((signature) => Buffer.from(signature.slice(3), "base64"));
  const expected = [secrets].flat().map((secret) => createHmac("sha256", keyOf(secret)).update(content).digest());
  const holds = given.some((one) => expected.some((other) => one.length === other.length && timingSafeEqual(one, other)));
  if (!holds) throw new WebhookError("no signature of the webhook is made with this secret");
  return JSON.parse(Buffer.from(body).toString());
}

export class WebhookError extends Error {
  name = "WebhookError";
}

function header(headers, name) {
  const value = typeof headers.get === "function" ? headers.get(name) : headers[name];
  if (typeof value !== "string" || value === "") throw new WebhookError(`the header ${name} is missing`);
  return value;
}

function keyOf(secret) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  // With an empty key everybody could sign.
  if (key.length === 0) throw new TypeError("the secret must be base64, with or without whsec_ before it");
  return key;
}

/** What a gateway that holds many clients asks, many at once; `key` is a server key. */
export class Gateway {
  #url;
  #key;
  #timeoutMs;

  constructor({ url, key, timeoutMs = 10_000 }) {
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#timeoutMs = timeoutMs;
  }

  /** Renews each `{roomId, userId, deviceId?, epoch, …}`; answers each in its place as `{status, code?, error?}`. */
  heartbeats(items) {
    return this.#each("heartbeats", items);
  }

  /** Ends each, likewise. */
  leaves(items) {
    return this.#each("leaves", items);
  }

  async #each(kind, items) {
    const results = [];
    for (let from = 0; from < items.length; from += MAX_ITEMS) {
      const part = items.slice(from, from + MAX_ITEMS);
      results.push(...(await this.#call(kind, part)));
    }
    return results;
  }

  /** A call that fails as a whole is the answer to each of its items: what others came to is not lost. */
  async #call(kind, part) {
    try {
      const response = await fetch(`${this.#url}/${kind}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...(this.#key && { authorization: `Bearer ${this.#key}` }) },
        body: JSON.stringify({ [kind]: part }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      const answer = await response.json();
      if (response.ok) return answer.results;
      const retryAfterMs = Number(response.headers.get("retry-after")) * 1000 || undefined;
      return part.map(() => ({ status: response.status, ...answer, retryAfterMs }));
    } catch (error) {
      return part.map(() => ({ status: 0, code: "unreachable", error: error.message }));
    }
  }
}
