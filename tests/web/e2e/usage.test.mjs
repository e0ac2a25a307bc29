// Usage and billing: the chart and its numbers, navigation in reports, and downloads.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { at, desk, press } from "./support/desk.mjs";

const front = await desk();
const { server } = front;
const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** The file that a button downloads. */
async function downloaded(page, button) {
  const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
}

test("an empty report shows what to do next", async () => {
  const page = await front.enter("#/usage");
  await page.getByText("No usage in this period").waitFor();
  await page.getByRole("link", { name: "Open the playground" }).click();
  await at(page, "Playground");
  await page.context().close();
});

test("usage is shown as a chart, a table and downloads with the same numbers", async () => {
  await server.mk("apps", "create", "press");
  const keys = [await server.key("verify", "--app", "press", "--name", "desk"), await server.key("verify", "--name", "other")];
  for (const key of keys) await server.verify("The capital of France is Lyon.", key);
  const page = await front.enter("#/usage");

  // The chart is really drawn, and its numbers are below it.
  // Nothing has cost anything, so it starts with requests.
  await page.getByRole("img", { name: /Chart of requests per day/ }).waitFor();
  await page.getByLabel("Show").selectOption("tokens");
  await page.getByRole("img", { name: /Chart of tokens per day/ }).waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll(".chart canvas")].some((canvas) =>
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0)));
  await page.getByText("The numbers as a table").click();
  const daily = page.getByRole("table", { name: "Usage per day" });
  assert.equal(await daily.getByRole("rowheader").count(), 30);
  const shown = await daily.getByRole("row").last().getByRole("cell").allTextContents();
  assert.equal(shown[0], "2", shown.join(" "));

  const breakdown = page.getByRole("table", { name: /Usage by/ });
  await breakdown.getByRole("rowheader", { name: "sandbox/alpha" }).waitFor();
  await page.getByLabel("By", { exact: true }).selectOption("app");
  await breakdown.getByRole("rowheader", { name: "default" }).waitFor();
  const apps = await downloaded(page, page.getByRole("button", { name: "Download CSV" }).first());
  assert.equal(apps.name, `usage-${daysAgo(29)}-${daysAgo(0)}-by-app.csv`);
  const { body } = await server.call("GET", "v1/usage?by=app", { accept: "text/csv" });
  assert.equal(apps.text, body);
  assert.deepEqual(body.trim().split(/\r?\n/).slice(1).map((line) => /,(default|press),/.exec(line)?.[1]).sort(), ["default", "press"]);

  // From an app to its keys, from a key to its models; the address contains the filters.
  await breakdown.getByRole("link", { name: "press" }).click();
  await breakdown.getByRole("link", { name: "desk" }).click();
  await breakdown.getByRole("rowheader", { name: "sandbox/alpha" }).waitFor();
  // By its name, and not by its id.
  await page.locator(".chip", { hasText: /Only key\s+desk/ }).waitFor();
  await page.reload();
  await breakdown.getByRole("rowheader", { name: "sandbox/alpha" }).waitFor();
  await press(page.locator(".chip"), "Show all keys");
  await page.locator(".chip").waitFor({ state: "detached" });

  // Another range: last month has no usage.
  await page.getByLabel("Range").selectOption("before");
  await page.getByText("No usage in this period").waitFor();
  await page.context().close();
});

test("keys with the same name can be told apart", async () => {
  const keys = [await server.key("verify", "--name", "twin"), await server.key("verify", "--name", "twin")];
  for (const key of keys) await server.verify("The capital of France is Lyon.", key);
  const page = await front.enter("#/usage?by=key");
  const breakdown = page.getByRole("table", { name: "Usage by key" });
  const twins = breakdown.getByRole("link", { name: /^twin key_…[0-9a-f]{6}$/ });
  await twins.first().waitFor();
  assert.equal(new Set(await twins.allTextContents()).size, 2);
  await page.getByRole("link", { name: "Statements" }).click();
  const line = page.getByRole("region", { name: "Statements" }).getByRole("rowheader", { name: /^twin key_…/ });
  await line.first().waitFor();
  await page.context().close();
});

test("a statement is shown, and downloaded as CSV and JSON", async () => {
  const page = await front.enter("#/usage/statements");
  const statements = page.getByRole("region", { name: "Statements" });
  await statements.getByText("The month is not over").waitFor();
  await statements.getByLabel("App").selectOption("press");
  const table = statements.getByRole("table");
  await table.getByRole("rowheader", { name: "desk" }).first().waitFor();
  const month = daysAgo(0).slice(0, 7);
  const csv = await downloaded(page, statements.getByRole("button", { name: "Download CSV" }));
  const json = await downloaded(page, statements.getByRole("button", { name: "Download JSON" }));
  assert.deepEqual([csv.name, json.name], [`statement-press-${month}.csv`, `statement-press-${month}.json`]);
  const [{ id }] = (await server.list("v1/apps")).filter(({ name }) => name === "press");
  const path = `v1/apps/${id}/statement?month=${month}`;
  assert.equal(csv.text, (await server.call("GET", path, { accept: "text/csv" })).body);
  const statement = { ...(await server.call("GET", path)).body, created_at: JSON.parse(json.text).created_at };
  assert.deepEqual(JSON.parse(json.text), statement);
  assert.equal(await table.getByRole("row").count(), statement.lines.length + 2);
  await statements.getByLabel("Month").selectOption({ index: 1 });
  await statements.getByText(/press has no usage in/).waitFor();
  await page.reload();
  await statements.getByText(/press has no usage in/).waitFor();
  await page.context().close();
});

test("a link leads from the overview to all budgets", async () => {
  await server.mk("apps", "create", "frugal", "--budget-usd", "5");
  const page = await front.enter("");
  await page.getByRole("link", { name: "All budgets" }).click();
  await page.getByRole("heading", { name: /^Budgets/ }).waitFor();
  await page.getByRole("table", { name: /Budgets of this month/ }).getByRole("link", { name: "frugal", exact: true }).waitFor();
  await page.reload();
  await page.getByRole("table", { name: /Budgets of this month/ }).getByRole("link", { name: "frugal", exact: true }).waitFor();
  await page.context().close();
});
