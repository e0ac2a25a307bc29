import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [{ changeBody, formOf, newKeyBody, wrongWith }] = await load("lib/key_form.js");

const NOW = Date.parse("2026-11-20T12:00:00Z");
const KEY = {
  service: "verify",
  name: "ci",
  expires_at: "2026-12-24T00:00:00.000Z",
  limits: { per_minute: 120, per_day: 0 },
  models: ["openai/*"],
  addresses: [],
  budget_usd: 12.5,
};

test("the body for a new key has only the fields that were set", () => {
  assert.deepEqual(newKeyBody(formOf(null), NOW), { service: "verify" });
  const form = { ...formOf(null, "inference"), name: " bot ", expires: "30", per_day: "0", models: "a/b\n c/*, ", addresses: "10.0.0.0/8", budget_usd: "$50" };
  assert.deepEqual(newKeyBody(form, NOW), {
    service: "inference",
    name: "bot",
    expires_at: "2026-12-20T12:00:00.000Z",
    limits: { per_minute: null, per_day: 0 },
    models: ["a/b", "c/*"],
    addresses: ["10.0.0.0/8"],
    budget_usd: 50,
  });
});

test("what is for answers and end users is sent for keys for inference only", () => {
  const form = { ...formOf(null, "inference"), cache: " 1h ", verify: "block", user_per_day: "5", user_budget_usd_per_month: "$0.50" };
  assert.deepEqual(newKeyBody(form, NOW), {
    service: "inference",
    cache: "1h",
    verify: "block",
    end_users: { per_minute: null, per_day: 5, budget_usd_per_day: null, budget_usd_per_month: 0.5 },
  });
  assert.deepEqual(newKeyBody({ ...form, service: "verify" }, NOW), { service: "verify" });
  const key = { ...KEY, service: "inference", cache: "1h", verify: "block", end_users: { per_day: 5 } };
  assert.deepEqual(changeBody(formOf(key), key, NOW), {});
  assert.deepEqual(changeBody({ ...formOf(key), cache: "", verify: "", user_per_day: "" }, key, NOW), { cache: null, verify: null, end_users: null });
});

test("the body for a change has only what differs, and null removes a value", () => {
  assert.deepEqual(changeBody(formOf(KEY), KEY, NOW), {});
  assert.deepEqual(changeBody({ ...formOf(KEY), name: "", budget_usd: "" }, KEY, NOW), { name: null, budget_usd: null });
  assert.deepEqual(changeBody({ ...formOf(KEY), expires: "" }, KEY, NOW), { expires_at: null });
  assert.deepEqual(changeBody({ ...formOf(KEY), expires: "date", date: "2027-01-01" }, KEY, NOW), { expires_at: "2027-01-01T00:00:00.000Z" });
  assert.deepEqual(changeBody({ ...formOf(KEY), per_minute: "", models: "" }, KEY, NOW), { limits: { per_minute: null, per_day: 0 }, models: [] });
});

test("invalid values are reported at their field", () => {
  const wrong = (change) => wrongWith({ ...formOf(KEY), ...change })?.param;
  assert.equal(wrong({}), undefined);
  assert.equal(wrong({ per_minute: "many" }), "limits.per_minute");
  assert.equal(wrong({ per_day: "-1" }), "limits.per_day");
  assert.equal(wrong({ budget_usd: "a lot" }), "budget_usd");
  assert.equal(wrong({ budget_usd: "-1" }), "budget_usd");
  assert.equal(wrong({ user_per_day: "1.5" }), "end_users.per_day");
  assert.equal(wrong({ user_budget_usd_per_day: "a lot" }), "end_users.budget_usd_per_day");
  assert.equal(wrong({ expires: "date" }), "expires_at");
});
