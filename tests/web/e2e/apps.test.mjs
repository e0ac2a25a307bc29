// Apps and their keys: created, changed, listed, deleted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk, dialog, press, takeKey } from "./support/desk.mjs";

const front = await desk();
const { server } = front;

test("an app is created, renamed, given a budget and deleted", async () => {
  const page = await front.enter("#/apps");
  await press(page, "New app");
  await press(dialog(page), "Create app");
  await dialog(page).getByText("Enter a name.").waitFor();
  await dialog(page).getByLabel("Name").fill("default");
  await press(dialog(page), "Create app");
  await dialog(page).locator(".problem").waitFor();
  await page.waitForFunction(() => document.activeElement.labels?.[0]?.textContent === "Name" && document.activeElement.ariaInvalid === "true");
  await dialog(page).getByLabel("Name").fill("blog");
  await dialog(page).getByLabel(/Monthly budget/).fill("12,5");
  await press(dialog(page), "Create app");
  await dialog(page).getByText("Enter an amount in US dollars").waitFor();
  await dialog(page).getByLabel(/Monthly budget/).fill("12.5");
  await press(dialog(page), "Create app");
  await at(page, "blog");
  await page.getByText("$0.00 of $12.50").waitFor();

  await press(page, "Name and budget");
  await dialog(page).getByLabel("Name").fill("weblog");
  await dialog(page).getByLabel(/Monthly budget/).fill("");
  await press(dialog(page), "Save");
  await at(page, "weblog");
  await page.getByText("no budget", { exact: true }).waitFor();
  await server.key("verify", "--app", "weblog", "--name", "made elsewhere");
  await page.reload();
  await page.getByRole("rowheader", { name: /made elsewhere/ }).waitFor();

  await press(page, "Delete app");
  const remove = dialog(page).getByRole("button", { name: "Delete app" });
  await dialog(page).getByText("1 active key").waitFor();
  assert.ok(await remove.isDisabled());
  await dialog(page).getByLabel("Type “weblog” to confirm").fill("weblog");
  await remove.click();
  await at(page, "Apps & keys");
  await page.getByText("Deleted: weblog, with 1 key").waitFor();
  assert.equal(await page.getByRole("link", { name: "weblog" }).count(), 0);
  assert.deepEqual((await server.list("v1/apps")).map(({ name }) => name), ["default"]);

  await press(page, "Delete default");
  await dialog(page).getByLabel("Type “default” to confirm").fill("default");
  await press(dialog(page), "Delete app");
  await dialog(page).getByRole("alert").waitFor();
  await press(dialog(page), "Keep the app");
  await page.goto(`${front.base}#/apps/app_00000000000000000000000000`);
  await at(page, "No such app");
  await page.context().close();
});

test("a key has limits, models, addresses, a budget and an expiry, all of which can be changed", async () => {
  const page = await front.enter("#/apps");
  await page.getByRole("link", { name: "default" }).click();
  await press(page, "New key");
  const form = dialog(page);
  await form.getByLabel("Service").selectOption("inference");
  await form.getByLabel("Name (optional)").fill("nightly");
  await form.getByLabel("Expires").selectOption("date");
  await press(form, "Create key");
  await form.getByText("Choose the day on which it expires.").waitFor();
  // An error is shown until its field is changed; afterwards nothing moves the focus while typing.
  await form.getByLabel("Expires").selectOption("30");
  await form.locator(".problem").waitFor({ state: "detached" });
  await form.getByText("More options").click();
  await form.getByLabel("Requests per minute").fill("5");
  await form.getByLabel("Requests per day").fill("many");
  await press(form, "Create key");
  await form.getByText("Enter a whole number of requests").waitFor();
  await form.getByLabel("Requests per day").fill("0");
  await form.getByLabel("Monthly budget").fill("3");
  await form.getByLabel("Models").fill("sandbox/*");
  await form.getByLabel("Cache answers for").fill("1h");
  await form.getByLabel("Each end user, per day").fill("7");
  await form.getByLabel("Addresses").fill("nowhere");
  await press(form, "Create key");
  await form.locator(".problem").waitFor();
  await form.getByLabel("Addresses").fill("127.0.0.0/8\n::1");
  await press(form, "Create key");
  const key = await takeKey(page);

  const row = page.getByRole("row", { name: /nightly/ });
  await row.getByText(/5 per minute · unlimited per day · models: sandbox\/\* · from 127\.0\.0\.0\/8/).waitFor();
  await row.getByText("answers cached for 1h · own limits for end users").waitFor();
  const say = () => server.call("POST", "inference/v1/chat/completions", { key, body: { model: "sandbox/alpha", messages: [{ role: "user", content: "Hello" }] } });
  assert.equal((await say()).status, 200);

  await press(page, "Change nightly");
  await dialog(page).getByLabel("Models").fill("sandbox/beta");
  await dialog(page).getByLabel("Expires").selectOption("");
  await press(dialog(page), "Save");
  await row.getByText(/models: sandbox\/beta/).waitFor();
  await row.getByText("never", { exact: true }).first().waitFor();
  assert.equal((await say()).status, 403);

  await page.getByLabel("State").selectOption("revoked");
  await page.getByText("No matching keys").waitFor();
  assert.match(page.url(), /\?state=revoked$/);
  await page.getByLabel("State").selectOption("active");
  await page.getByLabel("Service").selectOption("inference");
  await row.waitFor();
  await page.getByRole("row", { name: /mk_console/ }).waitFor({ state: "detached" });
  await page.context().close();
});

test("long lists are loaded page by page", async () => {
  const [{ id }] = await server.list("v1/apps");
  for (let made = 0; made < 60; made += 1) {
    const answer = await server.call("POST", `v1/apps/${id}/keys`, { body: { service: "verify", name: `many ${made}` } });
    assert.equal(answer.status, 201);
  }
  const page = await front.enter(`#/apps/${id}?service=verify`);
  const rows = page.getByRole("rowheader", { name: /many/ });
  await rows.first().waitFor();
  assert.equal(await rows.count(), 50);
  await press(page, "Load more");
  await rows.nth(59).waitFor();
  assert.equal(await page.getByRole("button", { name: "Load more" }).count(), 0);
  // After an action on a key of the second page, that page stays loaded.
  await press(page, "Revoke many 0");
  await press(dialog(page), "Revoke key");
  await page.getByRole("row", { name: /many 0/ }).getByText("Revoked", { exact: true }).waitFor();
  assert.equal(await rows.count(), 60);
  await page.context().close();
});

test("after a rotation two keys of the same name can be told apart, the newest first", async () => {
  await server.mk("apps", "create", "rotating");
  await server.key("verify", "--app", "rotating", "--name", "ci");
  const [app] = (await server.list("v1/apps")).filter(({ name }) => name === "rotating");
  const page = await front.enter(`#/apps/${app.id}`);
  await press(page, "Rotate ci");
  await press(dialog(page), "Rotate key");
  await takeKey(page);
  const [old, heir] = await server.list(`v1/apps/${app.id}/keys`);
  const rows = page.getByRole("row").filter({ has: page.getByRole("rowheader") });
  await rows.nth(1).getByText(`Replaced by …${heir.last4}, works until`).waitFor();
  await rows.nth(0).getByText(`Replaces …${old.last4}`).waitFor();
  assert.match(await rows.nth(1).textContent(), /works until \d+ \w+ \d{4}, \d\d:\d\d/);
  assert.equal(await rows.count(), 2);
  await page.goto(`${front.base}#/apps`);
  await page.getByRole("rowheader").first().waitFor();
  const apps = (await server.list("v1/apps")).map(({ name }) => name);
  assert.deepEqual(await page.getByRole("rowheader").allTextContents(), apps.reverse());
  await page.context().close();
});
