// The playground with simulated models: live, stopped, and as commands that do the same.
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { test } from "node:test";
import { at, desk, press } from "./support/desk.mjs";
import { binary, eventually, run } from "./support/server.mjs";

const front = await desk();
const { server } = front;
const VERIFY = /\/try\/verify$/;
const CHAT = /\/try\/chat$/;

const status = (page, words) => page.getByRole("status").getByText(words).waitFor();

/** How many requests of such a path ended with an outcome, by the server's log. */
const ended = (path, outcome) => server.log.filter((line) => line.message === "request" && path.test(line.path) && line.outcome === outcome).length;

test("a verification shows each claim and each model as they arrive", async () => {
  const page = await front.enter("#/playground");
  await at(page, "Playground");
  await page.getByLabel("Statement").fill("The capital of Italy is Rome [sandbox:slow]. The capital of Spain is Porto [sandbox:slow]. I like Rome.");
  // What is shown for a moment only is noted by the page itself: a busy browser may answer this test too late.
  await page.evaluate(() => {
    window.shown = new Set();
    const note = () => {
      const claim = document.querySelector(".pg-claim");
      const partly = claim?.textContent.match(/asking models, [12] of 3 done/);
      if (partly && claim.querySelector(".pg-chip")) window.shown.add("models");
      const states = [...document.querySelectorAll("[role=status]")].map((state) => state.textContent);
      if (states.includes("Asking models: 0 of 2 claims verified.")) window.shown.add("claims");
    };
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await page.getByLabel("Statement").press("Control+Enter");
  const claims = page.locator(".pg-claim");
  await status(page, "Done. 2 claims: 1 true, 1 false.");
  // Before the first claim was verified, and a model had answered while others had not.
  assert.deepEqual(await page.evaluate(() => [...window.shown].sort()), ["claims", "models"]);
  await claims.nth(0).getByText("TRUE", { exact: true }).waitFor();
  await claims.nth(1).getByText("FALSE", { exact: true }).waitFor();
  assert.deepEqual(await claims.nth(0).locator(".pg-vote .unseen").allTextContents(), ["alpha", "beta", "gamma"].map((model) => `${model}: the claimed answer`));
  await page.getByText("opinion: I like Rome.").waitFor();
  await page.locator("summary", { hasText: "Tokens and cost by model" }).click();
  await page.getByRole("rowheader", { name: "sandbox/alpha" }).waitFor();
  await claims.nth(1).getByText("Question and answers").click();
  await claims.nth(1).getByText("What is the capital of Spain?").waitFor();
  await page.context().close();
});

test("what was not checked stands apart and never looks done", async () => {
  const page = await front.enter("#/playground");
  await page.getByLabel("Statement").fill("Two plus two is four. [sandbox:omit=always]");
  await press(page, "Verify");
  await status(page, "Incomplete: 0 of 1 sentence checked.");
  await page.getByRole("heading", { name: "Not checked" }).waitFor();
  assert.equal(await page.getByText(/There was nothing to verify/).count(), 0);
  await page.getByLabel("Statement").fill("The capital of France is Paris. [sandbox:fail=auditor]");
  await press(page, "Verify");
  await status(page, "Done. 1 claim: 1 true.");
  await page.getByText("Not audited: the auditor sandbox/auditor failed").waitFor();
  await page.context().close();
});

test("a failed model is shown, but not as a dissenting vote", async () => {
  const page = await front.enter("#/playground");
  await press(page, "A model fails");
  await press(page, "Verify");
  await status(page, "Done. 1 claim: 1 true.");
  await page.getByText(/No answer: beta/).waitFor();
  // A standby has answered in its place.
  await page.getByText("3 of 3 models agree").waitFor();
  await page.context().close();
});

test("cancelling ends the work on the server, and keeps what has arrived", async () => {
  const page = await front.enter("#/playground");
  const before = ended(VERIFY, "cancelled");
  await page.getByLabel("Statement").fill("7 times 8 is 56. The capital of Spain is Porto [sandbox:stall].");
  await press(page, "Verify");
  await page.locator(".pg-claim").first().getByText("TRUE", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("Enter");
  await status(page, "Cancelled. 1 of 2 claims had been verified.");
  await page.locator(".pg-claim").nth(1).getByText("not verified: the run ended before").waitFor();
  assert.ok(await page.getByRole("button", { name: "Verify", exact: true }).evaluate((button) => button === document.activeElement), "the focus is not lost");
  await eventually("the server ends the request", () => ended(VERIFY, "cancelled") > before);

  // Leaving for another page stops a run as well.
  await press(page, "Verify");
  await page.locator(".pg-claim").first().getByText("TRUE", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Audit" }).click();
  await eventually("the server ends that request too", () => ended(VERIFY, "cancelled") > before + 1);
  await page.context().close();
});

test("a chat streams its answer, can be stopped, and can be continued", async () => {
  const page = await front.enter("#/playground/chat");
  const ask = async (text) => {
    await page.getByLabel(/essage$/).fill(text);
    await press(page, "Send");
  };
  const answer = page.locator(".pg-answer .pg-words").last();
  await ask("Tell me about Paris [sandbox:slow]");
  await answer.waitFor();
  const first = await answer.textContent();
  await page.waitForFunction((before) => [...document.querySelectorAll(".pg-answer .pg-words")].at(-1).textContent.length > before, first.length);
  assert.ok(ended(CHAT, "ok") === 0, "words came before the answer was over");
  const before = ended(CHAT, "cancelled");
  await press(page, "Stop");
  await status(page, "Stopped.");
  await page.getByText("Incomplete. Not part of the conversation.").waitFor();
  await eventually("the server ends the answer", () => ended(CHAT, "cancelled") > before);
  await ask("What is the capital of France?");
  await status(page, "The answer is complete.");
  assert.match(await answer.textContent(), /Paris/);
  await page.getByText(/\d+ tokens in, \d+ out · simulated, no cost/).waitFor();
  await press(page, "New conversation");
  assert.equal(await page.locator(".pg-exchange").count(), 0);
  await page.context().close();
});

test("copied commands do the same in a shell", async () => {
  const page = await front.enter("#/playground");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const inShell = async (button, key) => {
    await page.getByRole("button", { name: button }).click();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    const env = { ...server.env, PATH: `${dirname(binary)}:${process.env.PATH}`, MK_API_KEY: key };
    return (await run("bash", ["-c", command], { env })).stdout;
  };
  const hostile = "The capital of France is Paris. 2 + 2 = 4.\nIsn't \"$HOME\" `id` \\ $(id) odd?";
  await page.getByLabel("Statement").fill(hostile);
  await page.getByText("More options").click();
  await page.getByLabel("Models that must agree").selectOption("3");
  await page.getByText("Show as command").click();
  const key = await server.key("verify");
  const lines = (await inShell("Copy mk", key)).trimEnd().split("\n").map((line) => line.split("\t"));
  assert.deepEqual(lines.map(([, verdict]) => verdict), ["TRUE", "TRUE", "SKIPPED"]);
  assert.equal(lines[2].at(-1), hostile.split("\n")[1]);
  assert.match(await inShell("Copy curl", key), /event: completed/);

  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByLabel("Message").fill("What's the capital of France? `id` $(id)");
  await page.getByText("Show as command").click();
  const inference = await server.key("inference");
  assert.match(await inShell("Copy mk", inference), /\w/);
  assert.match(await inShell("Copy curl", inference), /data: \[DONE\]/);
  await page.context().close();
});

test("what is tried out makes no key and is booked to the app and to whoever is logged in", async () => {
  const keysOf = async (app) => (await server.list(`v1/apps/${app}/keys?limit=200`)).map(({ id }) => id);
  const [app] = await server.list("v1/apps");
  const page = await front.enter("#/playground");
  const before = await keysOf(app.id);
  await press(page, "True and false");
  await press(page, "Verify");
  await status(page, "Done. 2 claims: 1 true, 1 false.");
  assert.deepEqual(await keysOf(app.id), before);
  await eventually("the usage is booked", async () => {
    const { body } = await server.call("GET", `v1/usage?by=key,service&app=${app.id}&service=verify`);
    return body.data.some(({ key }) => key === "laptop (dashboard)");
  });
  await page.context().close();
});

test("input and results survive a reload, and neither a log-out nor another key", async () => {
  const page = await front.visit(null);
  const key = await server.key("console", "--name", "mine");
  await page.context().addCookies([await front.logIn(key)]);
  await page.goto(`${front.base}#/playground`);
  await press(page, "True and false");
  const fact = await page.getByLabel("Statement").inputValue();
  await press(page, "Verify");
  await status(page, "Done. 2 claims: 1 true, 1 false.");
  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByLabel("Message").fill("What is the capital of France?");
  await press(page, "Send");
  await status(page, "The answer is complete.");
  // Nothing lies in the browser while the page is there.
  const stored = () => page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.equal(await stored(), "{}");

  await page.reload();
  await page.locator(".pg-answer .pg-words", { hasText: "Paris" }).waitFor();
  await page.getByRole("link", { name: "Verify", exact: true }).click();
  await page.locator(".pg-claim").nth(1).getByText("FALSE", { exact: true }).waitFor();
  assert.equal(await page.getByLabel("Statement").inputValue(), fact);
  assert.equal(await stored(), "{}");

  // A run that the reload has ended is shown as far as it came.
  const before = ended(VERIFY, "cancelled");
  await page.getByLabel("Statement").fill("7 times 8 is 56. The capital of Spain is Porto [sandbox:stall].");
  await press(page, "Verify");
  await page.locator(".pg-claim").first().getByText("TRUE", { exact: true }).waitFor();
  await page.reload();
  await status(page, "Cancelled. 1 of 2 claims had been verified.");
  await eventually("the server ends the request", () => ended(VERIFY, "cancelled") > before);

  // Somebody else in the same window.
  await page.context().addCookies([await front.cookie()]);
  await page.reload();
  await page.getByLabel("Statement").waitFor();
  assert.equal(await page.getByLabel("Statement").inputValue(), "");
  await page.getByLabel("Statement").fill("What nobody else is to read.");
  await page.context().addCookies([await front.logIn(key)]);
  await page.reload();
  await page.getByLabel("Statement").fill("Mine.");
  await press(page, "Log out");
  await at(page, "Log in");
  await page.reload();
  await at(page, "Log in");
  assert.equal(await stored(), "{}");
  await page.context().close();
});
