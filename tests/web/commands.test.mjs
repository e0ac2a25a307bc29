import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [commands, { formOf, wrongWith }, { onServer }] = await load("lib/commands.js", "lib/key_form.js", "lib/server_base.js");

const APP = { id: "app_1", name: "news room", budget_usd: 20 };

/** The words into which a shell splits a command. */
function words(command) {
  return execFileSync("bash", ["-c", `printf '%s\\n' ${command}`], { env: process.env, encoding: "utf8" }).trimEnd().split("\n");
}

test("the command for a new key has the values of the form", () => {
  assert.equal(commands.createKey({ ...APP, name: "web" }, formOf(null)), "mk keys create --service verify --app web");
  const form = { ...formOf(null, "inference"), name: "it's", expires: "30", per_minute: "120", per_day: "0", models: "openai/*\na/b", addresses: "10.0.0.0/8", budget_usd: "$12.5" };
  assert.deepEqual(words(commands.createKey(APP, form)), [
    "mk", "keys", "create", "--service", "inference", "--app", "news room", "--name", "it's", "--expires", "30d", "--per-minute", "120", "--per-day", "0",
    "--model", "openai/*", "--model", "a/b", "--address", "10.0.0.0/8", "--budget-usd", "12.5",
  ]);
  const guarded = { ...formOf(null, "inference"), cache: "1h", verify: "flag", user_per_minute: "0", user_budget_usd_per_day: "0.5" };
  assert.deepEqual(words(commands.createKey({ ...APP, name: "web" }, guarded)), [
    "mk", "keys", "create", "--service", "inference", "--app", "web", "--cache", "1h", "--verify", "flag", "--end-users", "per_minute=0,budget_usd_per_day=0.5",
  ]);
  const dated = { ...formOf(null), expires: "date", date: "2027-01-31", name: "-x", budget_usd: "a lot" };
  assert.deepEqual(words(commands.createKey({ ...APP, name: "-v" }, dated)), ["mk", "keys", "create", "--service", "verify", "--app", "app_1", "--name=-x", "--expires", "2027-01-31"]);
  assert.doesNotMatch(commands.createKey(APP, { ...dated, date: "" }), /expires/);
});

test("values that the form refuses are in no command", () => {
  const plain = commands.createKey(APP, formOf(null, "inference"));
  for (const wrong of [{ per_minute: "-1" }, { per_day: "1.5" }, { per_day: "1e3" }, { user_per_day: "1.5" }, { budget_usd: "-2" }, { budget_usd: "1e999" }]) {
    assert.notEqual(wrongWith({ ...formOf(null, "inference"), ...wrong }), null);
    assert.equal(commands.createKey(APP, { ...formOf(null, "inference"), ...wrong }), plain);
  }
  assert.equal(commands.createApp({ name: "web", budget_usd: -2 }), "mk apps create web");
  assert.equal(commands.updateApp(APP, { budget_usd: NaN }), null);
  assert.equal(commands.updateApp(APP, { name: "web", budget_usd: -2 }), "mk apps update 'news room' --name web");
});

test("the commands for an app have the values of the form", () => {
  assert.equal(commands.createApp({ name: "" }), "mk apps create NAME");
  assert.deepEqual(words(commands.createApp({ name: "news room", budget_usd: 50 })), ["mk", "apps", "create", "news room", "--budget-usd", "50"]);
  assert.equal(commands.createApp({ name: "-x", budget_usd: 0 }), "mk apps create --budget-usd 0 -- -x");
  assert.equal(commands.updateApp(APP, {}), null);
  assert.equal(commands.updateApp(APP, { budget_usd: null }), "mk apps update 'news room' --no-budget");
  assert.deepEqual(words(commands.updateApp(APP, { name: "$HOME", budget_usd: 5 })), ["mk", "apps", "update", "news room", "--name", "$HOME", "--budget-usd", "5"]);
});

test("an app whose name looks like a flag is named by its id", () => {
  assert.equal(commands.deleteApp(APP), "mk apps delete 'news room'");
  assert.equal(commands.deleteApp({ id: "app_1", name: "--yes" }), "mk apps delete app_1");
  assert.equal(commands.updateApp({ id: "app_1", name: "--yes" }, { budget_usd: 50 }), "mk apps update app_1 --budget-usd 50");
});

test("the command for a report has its days and filters", () => {
  const asked = { from: "2026-10-01", to: "2026-10-31", by: "key", app: "", service: "verify", key: "", model: "a/b c" };
  assert.equal(commands.usage(asked), "mk usage --from 2026-10-01 --to 2026-10-31 --by key --service verify --model 'a/b c'");
});

test("the command for the audit log has the filters that are set", () => {
  assert.equal(commands.audit({ action: "", object: "", actor: "" }), "mk audit");
  assert.equal(commands.audit({ action: "app.updated", object: "app_1", actor: "" }), "mk audit --app app_1 --action app.updated");
  assert.equal(commands.audit({ action: "", object: "key_1", actor: "key 2" }), "mk audit --key key_1 --actor 'key 2'");
});

test("a command names the server unless it is where mk looks by itself", () => {
  assert.equal(onServer("mk apps create web", "http://127.0.0.1:8080"), "mk apps create web");
  assert.equal(onServer("mk apps create -- -x", "https://example.com/mk"), "mk --server https://example.com/mk apps create -- -x");
  assert.deepEqual(words(onServer("mk usage", "http://[::1]:9000")), ["mk", "--server", "http://[::1]:9000", "usage"]);
});
