// Every dialog, and the playground in all its phases, checked by support/judge.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk, dialog, press, takeKey } from "./support/desk.mjs";
import { judge, judged, judgedWithin } from "./support/judge.mjs";

const front = await desk();
const { server } = front;

const enter = (path) => judgedWithin(front, path);

test("the judge finds what is broken", async () => {
  const page = await judged(front, "#/login");
  await at(page, "Log in");
  await page.evaluate(() => {
    const picture = document.createElement("img");
    picture.src = "assets/favicon.svg";
    picture.width = 500;
    document.querySelector("main").append(picture);
  });
  const found = await judge(page, "broken").then(() => "", (error) => error.message);
  assert.match(found, /image-alt/);
  assert.match(found, /pixels wide/);
  await page.context().close();
});

test("dialogs of an app are accessible", async () => {
  const page = await enter("#/apps");
  await press(page, "New app");
  await judge(page, "new app");
  await press(dialog(page), "Create app");
  await dialog(page).getByText("Enter a name.").waitFor();
  await judge(page, "new app, wrong");
  await page.keyboard.press("Escape");
  await press(page, "Delete default");
  await judge(page, "delete app");
  await page.keyboard.press("Escape");
  await press(page, "Change default");
  await judge(page, "change app");
  await page.context().close();
});

test("dialogs of a key are accessible", async () => {
  const page = await enter("#/apps");
  await page.getByRole("link", { name: "default" }).click();
  await press(page, "New key");
  await judge(page, "new key");
  await dialog(page).getByText("More options").click();
  await dialog(page).getByLabel("Expires").selectOption("date");
  await dialog(page).getByLabel("Service").selectOption("console");
  await dialog(page).getByLabel("Addresses").fill("nowhere");
  await press(dialog(page), "Create key");
  await dialog(page).locator(".problem").first().waitFor();
  await judge(page, "new key, all open");
  await dialog(page).getByLabel("Expires").selectOption("");
  await dialog(page).getByLabel("Addresses").fill("");
  await dialog(page).getByLabel("Name (optional)").fill("second");
  await press(dialog(page), "Create key");
  await page.getByRole("heading", { name: "Your new key" }).waitFor();
  await page.evaluate(() => { location.hash = "#/audit"; });
  await dialog(page).getByText("Store the key first").waitFor();
  await judge(page, "key shown once");
  await takeKey(page);
  await press(page, "Change second");
  await judge(page, "change key");
  await page.keyboard.press("Escape");
  await press(page, "Rotate second");
  await judge(page, "rotate key");
  await page.keyboard.press("Escape");
  await press(page, "Revoke laptop");
  await judge(page, "revoke key");
  await page.context().close();
});

test("a verification is accessible in all its phases", async () => {
  const page = await enter("#/playground");
  await page.getByLabel("Statement").waitFor();
  await page.getByText("More options").click();
  await page.getByText("Show as command").click();
  await judge(page, "verify");
  await page.getByText("More options").click();
  await page.getByText("Show as command").click();
  await page.getByLabel("Statement").fill("The capital of France is Lyon. The capital of Spain is Porto [sandbox:stall]. 2 + 2 = 4 [sandbox:stall]. What a day.");
  await press(page, "Verify");
  await page.locator(".pg-claim").first().getByText("FALSE", { exact: true }).waitFor();
  await judge(page, "verify, running");
  await press(page, "Cancel");
  await page.getByText("Cancelled.").waitFor();
  await judge(page, "verify, cancelled");
  await page.getByLabel("Statement").fill("The capital of France is Lyon. The Nile is the longest river in the world. The capital of Japan is Tokyo [sandbox:fail=beta]. What a day.");
  await press(page, "Verify");
  await page.getByText(/^Done\./).waitFor();
  await page.getByText("Question and answers").first().click();
  await page.locator("summary", { hasText: "Tokens and cost by model" }).click();
  await judge(page, "verify, done");
  await page.getByLabel("Statement").fill("2 + 2 = 4 [sandbox:fail=extractor].");
  await press(page, "Verify");
  await page.getByRole("alert").waitFor();
  await judge(page, "verify, failed");
  await page.context().close();
});

test("a chat is accessible in all its phases", async () => {
  const page = await enter("#/playground/chat");
  const ask = async (text) => {
    await page.getByLabel(/essage$/).fill(text);
    await press(page, "Send");
  };
  await page.getByLabel("Model").waitFor();
  await page.getByText("More options").click();
  await judge(page, "chat");
  await page.getByText("More options").click();
  await ask("What is the capital of France?");
  await page.getByText("The answer is complete.").waitFor();
  await ask("And of Spain? [sandbox:stall]");
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  await judge(page, "chat, answering");
  await press(page, "Stop");
  await page.getByText("Stopped.").waitFor();
  await ask("And of Italy? [sandbox:fail]");
  await page.getByRole("alert").waitFor();
  await page.getByText("Show as command").click();
  await judge(page, "chat, failed");
  await page.context().close();
});
