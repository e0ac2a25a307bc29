// Hostile names: they are plain text wherever they appear.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { at, desk, dialog, press, takeKey } from "./support/desk.mjs";

const NAMES = {
  markup: "<img src=x onerror=globalThis.harmed=1>",
  quotes: "\"'`${alert(1)}&lt;b&gt;</title></code>",
  wide: "\u{1F469}\u200D\u{1F680}漢字テスト".repeat(6).slice(0, 64),
  long: "W".repeat(64),
  formula: "=HYPERLINK(\"http://evil.example\",\"click\")",
  shell: "$(touch /tmp/harmed); rm -rf ~ 'x'",
};

const front = await desk();
const { server } = front;

/** What must hold for the page, whatever text it shows. */
async function isUnharmed(page) {
  const state = await page.evaluate(() => ({
    harmed: globalThis.harmed,
    strange: document.querySelectorAll("main img, main script, main iframe").length,
    excess: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.deepEqual({ ...state, excess: Math.max(0, state.excess) }, { harmed: undefined, strange: 0, excess: 0 });
}

for (const [kind, name] of Object.entries(NAMES)) {
  test(`a hostile name of an app and a key is shown as text: ${kind}`, async () => {
    // A narrow window has the least room for it.
    const page = await front.enter("#/apps", { viewport: { width: 320, height: 640 } });
    await press(page, "New app");
    await dialog(page).getByLabel("Name").fill(name);
    await press(dialog(page), "Create app");
    await page.waitForFunction(() => location.hash.startsWith("#/apps/"));
    await page.waitForFunction((text) => document.querySelector("h1").textContent === text, name);
    await isUnharmed(page);
    await press(page, "New key");
    await dialog(page).getByLabel("Name (optional)").fill(name);
    await press(dialog(page), "Create key");
    const key = await takeKey(page);
    await server.verify("The capital of France is Paris.", key);
    const [app] = (await server.list("v1/apps")).filter((one) => one.name === name);

    const shows = async (path, count = 1) => {
      await page.goto(`${front.base}${path}`);
      await page.waitForFunction(({ name, count }) => [...document.querySelectorAll("main *")].filter((element) => element.childElementCount === 0 && element.textContent === name).length >= count, { name, count });
      await isUnharmed(page);
    };
    await shows(`#/apps/${app.id}`, 2);
    await shows("#/apps");
    await shows("#/usage?by=key", 2);
    await shows("#/audit", 2);
    await shows("#/playground");

    // A file for a spreadsheet contains no formula either.
    await page.goto(`${front.base}#/usage?by=app&app=${app.id}`);
    await page.getByRole("table", { name: "Usage by app" }).waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).first().click()]);
    const line = (await readFile(await file.path(), "utf8")).trim().split(/\r?\n/)[1];
    assert.ok(!/(^|,)"?[=+@-](?!\d)/.test(line), line);

    // The names in confirmation dialogs and in commands.
    await page.goto(`${front.base}#/apps`);
    await page.getByRole("row").filter({ hasText: name }).getByRole("button", { name: /^Delete/ }).click();
    await dialog(page).getByText("1 active key").waitFor();
    await isUnharmed(page);
    await dialog(page).getByRole("textbox").fill(name);
    await press(dialog(page), "Delete app");
    await dialog(page).waitFor({ state: "detached" });
    await at(page, "Apps & keys");
    await isUnharmed(page);
    await page.context().close();
  });
}

test("a name that changes the direction of text is refused", async () => {
  const page = await front.enter("#/apps");
  await press(page, "New app");
  await dialog(page).getByLabel("Name").fill("safe\u202Egnp.exe");
  await press(dialog(page), "Create app");
  await dialog(page).getByText("must not contain characters that change").waitFor();
  await page.context().close();
});

test("a hostile address of the page does no harm", async () => {
  const page = await front.enter("");
  for (const path of ["#/apps/%3Cimg%20src=x%3E", "#/apps/..%2F..%2Fv1%2Fauth", "#/usage?app=%22%3E%3Cscript%3E&by=__proto__&show=constructor", "#/usage?from=x&to=2026-02-30", "#/usage?from=0001-01-01&to=9999-12-31", "#/audit?object=%00&action=toString", "#/%E0%A4%A", "#/constructor", "#/__proto__", "#/apps/x/y/z"]) {
    await page.goto(front.base + path);
    await page.locator("h1").waitFor();
    await page.waitForFunction(() => document.querySelector(".loading") === null);
    assert.equal(await page.getByText("This page failed").count(), 0, path);
    await isUnharmed(page);
  }
  await page.context().close();
});
