import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { mintToken, verifyWebhook, WebhookError } from "../server/index.js";

// The example of the Standard Webhooks specification.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NOW = 1_614_265_330;

function signed(body, { id = "msg_p5jXN8AQM9LWM0D4loKWxJek", at = NOW, secret = SECRET } = {}) {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(at), "webhook-signature": `v1,${signature}` };
}

test("the signature of the specification's example holds", () => {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": String(NOW),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  assert.deepEqual(verifyWebhook('{"test": 2432232314}', headers, SECRET, { now: NOW * 1000 }), { test: 2432232314 });
});

test("whatever is changed, late, unsigned or signed by others is refused", () => {
  const body = '{"changes":[]}';
  const now = { now: NOW * 1000 };
  const good = signed(body);
  assert.deepEqual(verifyWebhook(Buffer.from(body), new Headers(good), SECRET, now), { changes: [] });
  const refused = [
    [`${body} `, good],
    [body, { ...good, "webhook-id": "another" }],
    [body, { ...good, "webhook-timestamp": String(NOW + 1) }],
    [body, { ...good, "webhook-timestamp": "soon" }],
    [body, { ...good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,") }],
    [body, { ...good, "webhook-signature": "v1," }],
    [body, { ...good, "webhook-signature": undefined }],
    [body, signed(body, { at: NOW - 301 })],
    [body, signed(body, { at: NOW + 301 })],
    [body, signed(body, { secret: "whsec_b3RoZXI=" })],
  ];
  for (const [text, headers] of refused) assert.throws(() => verifyWebhook(text, headers, SECRET, now), WebhookError);
  assert.throws(() => verifyWebhook(body, good, "whsec_", now), TypeError);
});

test("while a secret is replaced both hold, on either side", () => {
  const fresh = "whsec_ZnJlc2ggZnJlc2ggZnJlc2g=";
  const [old, replaced] = [signed("{}"), signed("{}", { secret: fresh })];
  const both = { ...old, "webhook-signature": `${replaced["webhook-signature"]} ${old["webhook-signature"]}` };
  const now = { now: NOW * 1000 };
  assert.deepEqual(verifyWebhook("{}", both, SECRET, now), {});
  assert.deepEqual(verifyWebhook("{}", replaced, [SECRET, fresh], now), {});
});

test("a token without subject, or with a secret that the service would refuse, is not made", () => {
  assert.throws(() => mintToken({ sub: "alice" }, "short"), RangeError);
  assert.throws(() => mintToken({ roomIds: ["r"] }, "x".repeat(32)), TypeError);
});
