// The audit log, and what surrounds every page: banner, navigation, theme.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk, press } from "./support/desk.mjs";

const front = await desk();
const { server } = front;
const PAGES = { "": "Overview", "#/apps": "Apps & keys", "#/usage": "Usage & billing", "#/playground": "Playground", "#/audit": "Audit" };

test("the audit log shows who did what, and can be filtered", async () => {
  const key = await server.key("console", "--name", "auditor", "--per-minute", "0");
  for (let made = 0; made < 60; made += 1) {
    assert.equal((await server.call("POST", "v1/apps", { body: { name: `app ${made}` }, key })).status, 201);
  }
  const page = await front.enter("#/audit");
  const rows = page.getByRole("table", { name: /Audit entries/ }).getByRole("rowheader");
  await rows.first().waitFor();
  assert.equal(await rows.count(), 50);
  await press(page, "Load more");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 60);

  await page.getByLabel("Action").selectOption("key.created");
  await page.getByRole("row", { name: /Key created.*auditor.*Command line/ }).waitFor();
  assert.match(page.url(), /action=key\.created/);
  await press(page, "Clear filters");
  await page.getByLabel("Action").selectOption("app.created");
  await rows.first().waitFor();
  const entry = page.getByRole("row", { name: /App created.*app 59.*auditor.*API/ });
  await entry.getByText("127.0.0.1").waitFor();
  await entry.getByText("Details").click();
  await entry.getByText(/^req_/).waitFor();
  await entry.getByRole("link", { name: "app 59" }).click();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await page.getByText(/^mk --server http:\/\/127\.0\.0\.1:\d+ audit --app app_[0-9a-f]{32} --action app\.created$/).waitFor();
  const [, app] = /object=(app_[0-9a-f]+)/.exec(page.url());
  assert.equal((await server.call("POST", `v1/apps/${app}/keys`, { body: { service: "verify", name: "its key" }, key })).status, 201);
  await page.getByLabel("Action").selectOption("");
  await page.getByRole("row", { name: /Key created.*its key/ }).waitFor();
  assert.equal(await rows.count(), 2);
  await press(page, "Clear filters");
  await page.getByLabel("Object").fill("APP 59");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await page.getByRole("row", { name: /App created.*app 59/ }).waitFor();
  assert.match(page.url(), /object=APP(\+|%20)59/);
  await press(page, "Clear filters");
  await page.getByLabel("Who").fill("auditor");
  await page.keyboard.press("Enter");
  // As many rows were shown before, by others too.
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll("tbody tr")];
    return rows.length === 50 && rows.every((row) => row.textContent.includes("auditor"));
  });
  await page.getByLabel("Object").fill("nonsense");
  await page.keyboard.press("Enter");
  await page.getByText("No matching entries").or(page.getByRole("alert")).first().waitFor();
  await press(page, "Clear filters");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
  await page.context().close();
});

test("the page says that answers are simulated where there are some, and nowhere else", async () => {
  const page = await front.enter();
  const banner = page.getByRole("complementary", { name: "Sandbox" });
  const [{ id }] = await server.list("v1/apps");
  for (const [path, title] of Object.entries({ ...PAGES, [`#/apps/${id}`]: "default", "#/playground/chat": "Playground", "#/nowhere": "No such page" })) {
    await page.goto(front.base + path);
    await at(page, title);
    if (title === "Playground") await banner.waitFor();
    else assert.equal(await banner.count(), 0, path);
    // The heading may be there a moment before the title.
    await page.waitForFunction(expected => document.title === expected, `${title} · mk`);
  }
  await page.context().close();
});

test("a chosen theme is kept in this browser; without one the page follows the system", async () => {
  const page = await front.enter("", { colorScheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByLabel("Theme").selectOption("light");
  const light = await ground();
  assert.notEqual(light, dark);
  await page.reload();
  assert.equal(await ground(), light);
  assert.equal(await page.getByLabel("Theme").inputValue(), "light");
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), ["mk-theme"]);
  await page.getByLabel("Theme").selectOption("system");
  assert.equal(await ground(), dark);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), []);
  await page.context().close();
});
