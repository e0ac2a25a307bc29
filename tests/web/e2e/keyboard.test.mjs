// The dashboard used without a mouse.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk, dialog } from "./support/desk.mjs";

const front = await desk();

/** The text or label of the focused element, which must be visibly focused. */
async function focused(page) {
  const { name, isSeen } = await page.evaluate(() => {
    const element = document.activeElement;
    const [around] = element.labels ?? [];
    // The text of a label around its control also includes the control's options.
    const words = around?.contains(element) ? around.querySelector("span") : around;
    const label = words?.textContent ?? element.getAttribute("aria-label") ?? element.textContent;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const isSeen = element === document.body || element.tagName === "MAIN" || element.tagName === "H1" || (outlineStyle !== "none" && outlineWidth !== "0px");
    return { name: element === document.body ? "" : label.replaceAll(/\s+/g, " ").trim(), isSeen };
  });
  assert.ok(isSeen, `the focus is not seen on: ${name}`);
  return name;
}

/** Presses Tab until this has the focus; returns what had it on the way. */
async function tabTo(page, wanted) {
  const passed = [];
  for (let steps = 0; steps < 60; steps += 1) {
    await page.keyboard.press("Tab");
    const name = await focused(page);
    if (name === wanted) return passed;
    passed.push(name);
  }
  return assert.fail(`no way to ${wanted} by: ${passed.join(", ")}`);
}

async function choose(page, wanted, key = "Enter") {
  const passed = await tabTo(page, wanted);
  await page.keyboard.press(key);
  return passed;
}

test("from logging in to a revoked key without a mouse", async () => {
  const page = await front.visit();
  await at(page, "Log in");
  assert.equal(await focused(page), "Console key", "one can type at once");
  await page.keyboard.type(await front.server.consoleKey());
  await page.keyboard.press("Enter");
  await at(page, "Overview");
  await page.waitForFunction(() => document.activeElement.tagName === "H1");

  // The skip link is first, and leads past the navigation into the page.
  await page.reload();
  await page.getByRole("heading", { name: "Next steps" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Create a key");

  // The focus follows the visual order: brand, pages, session, theme.
  await page.goto(`${front.base}#/audit`);
  await page.reload();
  await at(page, "Audit");
  const order = await tabTo(page, "Theme");
  assert.deepEqual(order, ["Skip to the content", "mk", "Overview", "Apps & keys", "Usage & billing", "Playground", "Audit", "Log out"]);
  await page.reload();
  await at(page, "Audit");
  await choose(page, "Apps & keys");
  await at(page, "Apps & keys");
  assert.equal(await focused(page), "Apps & keys", "the heading of the new page");

  // A dialog takes the focus, keeps it, and returns it.
  await choose(page, "New app");
  assert.equal(await focused(page), "Name");
  for (let steps = 0; steps < 8; steps += 1) {
    await page.keyboard.press("Tab");
    assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null));
  }
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "New app");
  await page.keyboard.press("Enter");
  await page.keyboard.type("by hand");
  await page.keyboard.press("Enter");
  await at(page, "by hand");
  await dialog(page).waitFor({ state: "detached" });
  assert.equal(await focused(page), "by hand");

  await choose(page, "New key");
  await tabTo(page, "Name (optional)");
  await page.keyboard.type("typed");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  assert.equal(await focused(page), "Copy the key");
  await choose(page, "I stored this key", "Space");
  await choose(page, "Done");
  await dialog(page).waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement !== document.body);

  for (const [action, safe] of [["Change", null], ["Rotate", "Cancel"], ["Revoke", "Keep the key"]]) {
    await page.evaluate(() => document.querySelector("h1").focus());
    await choose(page, `${action} typed`);
    await dialog(page).waitFor();
    if (safe) assert.equal(await focused(page), safe);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    assert.equal(await focused(page), `${action} typed`);
  }
  await page.keyboard.press("Enter");
  await choose(page, "Revoke key");
  await page.locator(".tag", { hasText: "Revoked" }).waitFor();
  await dialog(page).waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement !== document.body);
  assert.equal(await focused(page), "by hand", "its button is gone, so the heading has the focus");
  await page.context().close();
});

test("the menu of a narrow window opens, navigates and closes by keyboard", async () => {
  const page = await front.enter("#/apps", { viewport: { width: 320, height: 640 } });
  await at(page, "Apps & keys");
  await choose(page, "Menu");
  const menu = page.getByRole("button", { name: "Menu" });
  assert.equal(await menu.getAttribute("aria-expanded"), "true");
  await choose(page, "Usage & billing");
  await at(page, "Usage & billing");
  // The heading appears a moment before the menu closes and moves the focus.
  await page.locator('button[aria-expanded="false"]', { hasText: "Menu" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent === "Usage & billing");
  await page.context().close();
});

test("a verification is run and read by keyboard, and announced in one line", async () => {
  const page = await front.enter("#/playground");
  await at(page, "Playground");
  await tabTo(page, "Statement");
  await page.keyboard.type("The capital of France is Lyon.");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Done. 1 claim: 1 false.").waitFor();
  assert.equal(await page.getByRole("status").count(), 1);
  await choose(page, "Question and answers");
  await page.getByText("What is the capital of France?").waitFor();
  await page.context().close();
});
