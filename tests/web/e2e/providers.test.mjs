// Prices, failures and broken streams of real providers, and budgets that they use up.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { at, desk, dialog, press } from "./support/desk.mjs";
import { provider } from "./support/provider.mjs";
import { eventually } from "./support/server.mjs";

const fake = await provider();
after(fake.close);
const front = await desk({ config: fake.config });
const { server } = front;

/** Sends a question in the playground and waits for the final text of the status line. */
async function ask(page, model, end) {
  await page.getByLabel("Model").selectOption(model);
  await page.getByLabel(/essage$/).fill("Who is there?");
  const exchanges = page.locator(".pg-exchange");
  const before = await exchanges.count();
  await press(page, "Send");
  await exchanges.nth(before).locator(".pg-answer:not([aria-busy])").waitFor();
  assert.equal(await page.getByRole("status").textContent(), end, await exchanges.nth(before).textContent());
}

test("known prices are shown, and unknown ones as unknown", async () => {
  const page = await front.enter("#/playground/chat");
  await ask(page, "fake/priced", "The answer is complete.");
  await page.getByText("1,000 tokens in, 500 out · $0.0070").waitFor();
  await ask(page, "fake/unpriced", "The answer is complete.");
  await page.getByText("1,000 tokens in, 500 out · cost unknown").waitFor();
  assert.equal(await page.locator(".sandbox").count(), 0, "these answers are real");
  assert.deepEqual(fake.asked.at(-1).messages.map(({ role }) => role), ["user", "assistant", "user"]);

  await eventually("the usage is booked", async () => (await server.call("GET", "v1/usage")).body.totals.attempts === 2);
  await page.goto(`${front.base}#/`);
  const cost = page.locator(".figure", { hasText: "Cost" });
  await cost.getByText("$0.0070").waitFor();
  await cost.getByText("1 call without a known price").waitFor();
  await page.goto(`${front.base}#/usage`);
  const models = page.getByRole("table", { name: "Usage by model" });
  await models.getByRole("row", { name: /fake\/unpriced.*unknown/ }).waitFor();
  await models.getByRole("row", { name: /fake\/priced.*\$0\.0070/ }).waitFor();
  await page.context().close();
});

test("a provider's failure is shown with what to do, and a broken answer is not shown as complete", async () => {
  const page = await front.enter("#/playground/chat");
  await ask(page, "fake/broken", "The answer failed.");
  const alert = page.getByRole("alert");
  await alert.getByText("The operator of this server has to check the provider's key.").waitFor();
  assert.match(await alert.textContent(), /Request/);
  await ask(page, "fake/cut", "The answer failed.");
  await page.getByText("Incomplete. Not part of the conversation.").waitFor();
  assert.equal(await page.locator(".pg-answer .pg-words").last().textContent(), "Hello from afar.");
  await press(page.locator(".pg-exchange").last(), "Ask again");
  await page.getByRole("status").getByText("The answer failed.").waitFor();
  await page.context().close();
});

test("a budget stops requests that would exceed it, and is shown as used up", async () => {
  const page = await front.enter("#/apps");
  await press(page, "New app");
  await dialog(page).getByLabel("Name").fill("thrifty");
  await dialog(page).getByLabel(/Monthly budget/).fill("0.008");
  await press(dialog(page), "Create app");
  await at(page, "thrifty");
  await page.getByRole("link", { name: "Playground" }).click();
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByLabel("App").selectOption("thrifty");
  await page.getByText("More options").click();
  await page.getByLabel(/Max tokens/).fill("500");
  await ask(page, "fake/priced", "The answer is complete.");
  await ask(page, "fake/priced", "The answer failed.");
  const alert = page.getByRole("alert");
  await alert.getByText("The budget does not allow it.").waitFor();
  await alert.getByText("Raise the budget under Apps").waitFor();
  const isBooked = async () => (await server.list("v1/apps")).some((app) => app.name === "thrifty" && app.spent_usd > 0);
  await eventually("the cost is booked", isBooked);

  const line = page.locator(".budget-list li", { hasText: "thrifty" });
  const changeTo = async (budget) => {
    await line.getByRole("link", { name: "thrifty" }).click();
    await press(page, "Name and budget");
    await dialog(page).getByLabel(/Monthly budget/).fill(budget);
    await press(dialog(page), "Save");
    await dialog(page).waitFor({ state: "detached" });
  };
  await page.getByRole("link", { name: "Overview" }).click();
  await line.getByText("80% reached").waitFor();
  await changeTo("0.005");
  await page.getByText("Used up", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await line.getByText("$0.0070 of $0.0050 (140%)").waitFor();
  await changeTo("$7");
  await page.getByText("$0.0070 of $7 (0.1%)").waitFor();
  await page.context().close();
});
