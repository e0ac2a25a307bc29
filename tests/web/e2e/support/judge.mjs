// What must hold for every state of every page: axe finds no violation, in light and dark, wide and narrow; at 320
// pixels nothing is wider than the window, and no text is cut off.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { require } from "./browser.mjs";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const WIDTHS = { wide: { width: 1280, height: 900 }, narrow: { width: 320, height: 640 } };
const THEMES = ["light", "dark"];

/** A window that can be checked: axe is injected from outside the page, so that the page's policy is unchanged. */
export async function judged(front, path, options) {
  const page = await front.visit(null, options);
  await page.addInitScript(await readFile(require.resolve("axe-core/axe.min.js"), "utf8"));
  if (path !== null) await page.goto(front.base + path);
  return page;
}

/** The same, with a session. */
export async function judgedWithin(front, path) {
  const page = await judged(front, null);
  await page.context().addCookies([await front.cookie()]);
  await page.goto(front.base + path);
  return page;
}

/** Checks the current page, under the name of this state. Screenshots go to the directory MK_E2E_SHOTS, if set. */
export async function judge(page, state) {
  const found = [];
  for (const [width, size] of Object.entries(WIDTHS)) {
    await page.setViewportSize(size);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      const where = `${state}, ${width}, ${colorScheme}`;
      // A theme changes only colours.
      const rules = colorScheme === "light" ? { type: "tag", values: TAGS } : { type: "rule", values: ["color-contrast"] };
      for (const violation of await violations(page, rules)) found.push(`${where}: ${violation}`);
      await picture(page, where);
    }
    for (const fault of await page.evaluate(overflows)) found.push(`${state}, ${width}: ${fault}`);
  }
  await page.setViewportSize(WIDTHS.wide);
  await page.emulateMedia({ colorScheme: "light" });
  assert.deepEqual(found, []);
}

async function violations(page, runOnly) {
  const results = await page.evaluate((rules) => globalThis.axe.run({ runOnly: rules, resultTypes: ["violations"] }), runOnly);
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} (${failureSummary.replaceAll(/\s+/g, " ")})`).join("; ")}`);
}

/** Elements wider than the window, and text that is cut off; evaluated in the page. */
export function overflows() {
  const { scrollWidth, clientWidth } = document.documentElement;
  const faults = scrollWidth > clientWidth ? [`the page is ${scrollWidth} pixels wide, the window ${clientWidth}`] : [];
  for (const element of document.querySelectorAll("body *")) {
    const { overflowX, display } = getComputedStyle(element);
    const isCut = element.scrollWidth > element.clientWidth + 1 && ["hidden", "clip"].includes(overflowX) && display !== "inline";
    if (isCut && !element.closest(".unseen, thead, .chart-box, .wheel, svg")) faults.push(`cut off: ${element.tagName} ${element.className}: ${element.textContent.slice(0, 60)}`);
  }
  return faults;
}

async function picture(page, name) {
  const folder = process.env.MK_E2E_SHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`), fullPage: true });
}
