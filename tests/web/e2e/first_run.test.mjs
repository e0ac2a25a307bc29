// From the setup link of the first start to a key that is used, rotated and revoked.
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { test } from "node:test";
import { at, desk, dialog, press, takeKey } from "./support/desk.mjs";
import { eventually } from "./support/server.mjs";

const front = await desk();
const { server } = front;

/** The browser's question before it leaves the page, answered with staying. */
function asked(page) {
  return new Promise((resolve) => {
    page.once("dialog", async (question) => {
      await question.dismiss();
      resolve(question.type());
    });
  });
}

/** Only Done leads away from a key that is shown once; `hasBefore`: going back leads to another page of the dashboard. */
async function staysWith(page, key, { hasBefore }) {
  const shown = dialog(page);
  const holds = async () => assert.equal(await shown.getByLabel("The key").textContent(), key);
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape");
  await holds();
  assert.ok(await shown.getByRole("button", { name: "Done", exact: true }).isDisabled());

  const question = asked(page);
  await page.evaluate(() => { setTimeout(() => history.back()); });
  if (hasBefore) await shown.getByText("Store the key first").waitFor();
  else assert.equal(await question, "beforeunload");
  await holds();

  await page.evaluate(() => { location.hash = "#/audit"; });
  await shown.getByText("Store the key first").waitFor();
  await page.waitForFunction(() => !location.hash.includes("audit"));
  await holds();

  const again = hasBefore ? question : asked(page);
  await page.evaluate(() => { setTimeout(() => location.reload()); });
  assert.equal(await again, "beforeunload");
  await holds();
}

test("a server is set up, and its first key is created, used, rotated and revoked", async () => {
  const link = await server.link();
  assert.ok(link.startsWith(`${server.base}#/setup/`));
  const page = await front.visit(link.slice(server.base.length));

  await at(page, "Set up this server");
  assert.equal(await page.evaluate(() => location.hash), "#/setup", "the token is out of the address");
  await press(page, "Create the first console key");
  const shown = dialog(page);
  const consoleKey = await shown.getByLabel("The key").textContent();
  assert.match(consoleKey, /^mk_console_[0-9A-Za-z]{32}$/);
  await staysWith(page, consoleKey, { hasBefore: false });
  assert.equal(await takeKey(page), consoleKey);
  server.madeKey = Promise.resolve(consoleKey);

  await at(page, "Overview");
  assert.ok(!(await page.content()).includes(consoleKey), "nothing of the key is left");
  await eventually("the link's file is gone", () => access(server.linkFile).then(() => false, () => true));

  // The empty overview shows what to do next.
  await page.getByRole("heading", { name: "Next steps" }).waitFor();
  await page.getByRole("link", { name: "Apps & keys", exact: true }).click();
  await at(page, "Apps & keys");
  await press(page, "New app");
  await dialog(page).getByLabel("Name").fill("Newsroom");
  await press(dialog(page), "Create app");
  await at(page, "Newsroom");
  await press(page, "New key");
  await dialog(page).getByLabel("Name (optional)").fill("fact bot");
  await press(dialog(page), "Create key");
  const first = await dialog(page).getByLabel("The key").textContent();
  assert.match(first, /^mk_verify_[0-9A-Za-z]{32}$/);
  await staysWith(page, first, { hasBefore: true });
  await takeKey(page);
  await page.getByRole("rowheader", { name: /fact bot/ }).waitFor();
  assert.ok(!(await page.content()).includes(first));

  await server.verify("The capital of France is Lyon.", first);
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("heading", { name: "Today" }).waitFor();
  assert.equal(await page.locator(".figure", { hasText: "Requests" }).locator(".big").textContent(), "1");

  // A day's grace: both keys work, until the old one is revoked.
  await page.getByRole("link", { name: "Apps & keys", exact: true }).click();
  await page.getByRole("link", { name: "Newsroom" }).click();
  await press(page, "Rotate fact bot");
  assert.equal(await dialog(page).getByLabel("The old key keeps working for").inputValue(), "86400");
  await press(dialog(page), "Rotate key");
  await dialog(page).getByText("The old key keeps working for 24 hours.").waitFor();
  const second = await takeKey(page);
  assert.notEqual(second, first);
  const ask = (key) => server.call("POST", "verify/v1/stream", { key, body: { fact: "2 + 2 = 4." } });
  assert.deepEqual([(await ask(first)).status, (await ask(second)).status], [200, 200]);

  for (const key of [first, second]) {
    const row = page.getByRole("row", { name: new RegExp(`_…${key.slice(-4)}`) });
    await row.getByRole("button", { name: "Revoke fact bot" }).click();
    await dialog(page).getByText("This cannot be undone.").waitFor();
    assert.ok(await dialog(page).getByRole("button", { name: "Keep the key" }).evaluate((button) => button === document.activeElement));
    await press(dialog(page), "Revoke key");
    await row.getByText("Revoked", { exact: true }).waitFor();
    assert.equal((await ask(key)).status, 401);
  }
  assert.equal((await ask(second)).body.message, "API key has been revoked");
  await page.context().close();
});

test("a setup link works only once, and says so", async () => {
  const page = await front.visit("#/setup/0123456789012345678901234567890123456789abc");
  await press(page, "Create the first console key");
  await page.getByRole("alert").locator("code", { hasText: "mk serve" }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Create the first console key" }).isDisabled());
  assert.equal(await dialog(page).count(), 0);
  await page.getByRole("link", { name: "Log in" }).click();
  await at(page, "Log in");
  await page.context().close();
});
