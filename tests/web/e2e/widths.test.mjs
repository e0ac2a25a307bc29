// No width hides an action or breaks a page, whatever things are called.
import assert from "node:assert/strict";
import { test } from "node:test";
import { desk } from "./support/desk.mjs";
import { overflows } from "./support/judge.mjs";

const front = await desk();
const { server } = front;
/** From the narrowest to the widest window, and around the widths at which the layout changes. */
const WIDTHS = [320, 375, 480, 481, 600, 720, 768, 819, 821, 860, 900, 901, 940, 1000, 1024, 1080, 1140, 1180, 1181, 1240, 1280, 1366, 1440, 1600, 1920];

/** Actions that nobody can see: outside of the window, or cut off by something around them. */
function hidden() {
  const faults = [];
  const actions = [...document.querySelectorAll("main button, main a.button, main summary")].filter((action) => action.checkVisibility());
  for (const action of actions) {
    const { left, right, width } = action.getBoundingClientRect();
    const words = action.textContent.slice(0, 40);
    if (width === 0 || left < 0 || right > document.documentElement.clientWidth) faults.push(`outside of the window: ${words}`);
    for (let around = action.parentElement; around; around = around.parentElement) {
      const edge = around.getBoundingClientRect();
      const cuts = getComputedStyle(around).overflowX !== "visible";
      if (cuts && (left < edge.left - 1 || right > edge.right + 1)) faults.push(`cut off by ${around.className}: ${words}`);
    }
  }
  return { faults, actions: actions.length };
}

test("no width from 320 to 1,920 pixels hides an action, with names of 100 characters", async () => {
  const long = (letter) => letter.repeat(100);
  const name = long("W").slice(0, 64);
  await server.mk("apps", "create", name, "--budget-usd", "5");
  const key = await server.key("verify", "--app", name, "--name", long("M"), "--budget-usd", "1", "--model", "sandbox/*", "--address", "127.0.0.0/8", "--expires", "90d");
  await server.verify("The capital of France is Paris.", key);
  await server.mk("keys", "rotate", long("M"), "--grace", "24h");
  const actor = await server.key("console", "--name", long("Q"));
  const [app] = (await server.list("v1/apps")).filter((one) => one.name === name);
  assert.equal((await server.call("PATCH", `v1/apps/${app.id}`, { key: actor, body: { budget_usd: 6 } })).status, 200);
  const pages = {
    "#/apps": 5, [`#/apps/${app.id}`]: 8, "#/usage?by=key": 2, "#/usage/budgets": 1, "#/usage/statements": 2,
    "#/audit": 4, "#/": 1, "#/playground": 4, "#/playground/chat": 2,
  };
  const page = await front.enter("");
  for (const [path, least] of Object.entries(pages)) {
    await page.goto(front.base + path);
    await page.locator("h1").waitFor();
    await page.waitForFunction(() => document.querySelector(".loading") === null);
    await page.waitForFunction((least) => document.querySelectorAll("main button, main a.button, main summary").length >= least, least);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const { faults, actions } = await page.evaluate(hidden);
      assert.deepEqual([...faults, ...(await page.evaluate(overflows))], [], `${path} at ${width} pixels`);
      assert.ok(actions >= least, `${path} at ${width} pixels: ${actions} actions`);
    }
  }
  await page.context().close();
});
