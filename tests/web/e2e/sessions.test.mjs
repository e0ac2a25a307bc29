// Logging in and out, and every way in which a session ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk, dialog, press } from "./support/desk.mjs";

const front = await desk();
const { server } = front;

/** Logs in on the current page. */
async function logIn(page, key) {
  await page.getByLabel("Console key", { exact: true }).fill(key);
  await press(page, "Log in");
}

/** A window with its own session, and the session's cookie. */
async function enterAlone(path, key) {
  const page = await front.visit(null);
  const cookie = await front.logIn(key);
  await page.context().addCookies([cookie]);
  await page.goto(front.base + path);
  return { page, cookie };
}

/** The status of a request with a cookie that is sent from outside the browser. */
async function statusWith({ name, value }) {
  return (await fetch(`${front.base}v1/apps`, { headers: { cookie: `${name}=${value}` } })).status;
}

test("a key is exchanged for a session that ends by logging out", async () => {
  const page = await front.visit("#/usage");
  await at(page, "Log in");
  const key = await server.consoleKey();
  await logIn(page, key);
  await at(page, "Usage & billing");

  const [cookie] = await page.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.equal(kept, '[{},{},""]', "the browser's storage has neither key nor session");
  assert.ok(!(await page.content()).includes(key));
  assert.equal(await statusWith(cookie), 200);

  await press(page, "Log out");
  await at(page, "Log in");
  await page.getByText("You are logged out.").waitFor();
  assert.equal(await statusWith(cookie), 401);
  await page.goto(`${front.base}#/usage`);
  await page.reload();
  await at(page, "Log in");
  await page.context().close();
});

test("anything but a console key is refused with an error at the field", async () => {
  const page = await front.visit();
  const field = page.getByLabel("Console key", { exact: true });
  const refused = async (key, words) => {
    await logIn(page, key);
    await page.locator(".problem", { hasText: words }).waitFor();
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    await page.waitForFunction(() => document.activeElement.name === "key");
  };
  assert.equal(await field.getAttribute("spellcheck"), "false", "no checker of the browser's reads a key");
  await refused("", "Paste a console key.");
  await refused(await server.key("verify"), "This is a key for verify.");
  await refused("mk_console_00000000000000000000000000000000", "Invalid or missing API key.");
  await page.context().close();
});

for (const [column, minutes, why] of [["seen_at", 31, "half an hour without a request"], ["expires_at", 12 * 60 + 1, "twelve hours"]]) {
  test(`a session ends after ${why}: the page says so, and continues where it was after login`, async () => {
    const { page } = await enterAlone("#/audit", await server.consoleKey());
    await at(page, "Audit");
    await server.age(column, minutes);
    await page.getByRole("link", { name: "Apps & keys" }).click();
    await at(page, "Log in");
    await page.getByText("Your session has ended. Log in again.").waitFor();
    await logIn(page, await server.consoleKey());
    await at(page, "Apps & keys");
    await page.context().close();
  });
}

test("a key that is still shown stays when the session ends", async () => {
  const { page } = await enterAlone("#/apps", await server.consoleKey());
  await page.getByRole("link", { name: "default" }).click();
  await page.getByRole("button", { name: "New key" }).first().click();
  await press(dialog(page), "Create key");
  const key = await dialog(page).getByLabel("The key").textContent();
  await server.age("seen_at", 31);
  await page.evaluate(() => { location.hash = "#/usage"; });
  await dialog(page).getByText("Store the key first").waitFor();
  assert.equal(await dialog(page).getByLabel("The key").textContent(), key);
  await dialog(page).getByLabel("I stored this key").check();
  await press(dialog(page), "Done");
  await page.getByRole("link", { name: "Audit" }).click();
  await at(page, "Log in");
  await page.context().close();
});

test("a cookie is worth nothing without its key", async () => {
  const key = await server.key("console", "--name", "lost");
  const { page, cookie } = await enterAlone("#/apps", key);
  await at(page, "Apps & keys");
  assert.equal(await statusWith(cookie), 200);
  await server.mk("keys", "revoke", "lost", "--yes");
  assert.equal(await statusWith(cookie), 401);
  await press(page, "New app");
  await dialog(page).getByLabel("Name").fill("too late");
  await press(dialog(page), "Create app");
  await at(page, "Log in");
  await page.getByText("Your session has ended.").waitFor();
  assert.ok(!(await server.list("v1/apps")).some(({ name }) => name === "too late"));
  await page.context().close();
});

test("revoking the key of the session warns about the logout, and logs out", async () => {
  const { page } = await enterAlone("#/apps", await server.key("console", "--name", "own"));
  await page.getByRole("link", { name: "default" }).click();
  await press(page, "Revoke own");
  await dialog(page).getByText("You are logged in with this key").waitFor();
  await press(dialog(page), "Revoke key");
  await at(page, "Log in");
  await page.context().close();
});

test("too many attempts to log in are refused, with the time until the next", async () => {
  const page = await front.visit();
  const tried = async () => (await fetch(`${front.base}v1/auth/session`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"key":"mk_console_x"}' })).status;
  let status = 0;
  for (let attempt = 0; attempt < 20 && status !== 429; attempt += 1) status = await tried();
  assert.equal(status, 429);
  await logIn(page, await server.consoleKey());
  await page.getByRole("alert").getByText(/Too many/).waitFor();
  assert.match(await page.getByRole("alert").textContent(), /\d+ s|minute/);
  await page.context().close();
});
