// Loading the page: few requests, whatever else its address has asked for, and a sentence where it fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { at, desk } from "./support/desk.mjs";

const front = await desk({ limits: "open_pages_per_minute = 5\nfailed_auth_per_minute = 0\n" });
const { server } = front;
const SENTENCE = "The dashboard could not be loaded.";

test("a cold load takes few requests, and works after any number of requests for open pages", async () => {
  let last;
  for (let polled = 0; polled < 7; polled += 1) last = await fetch(`${server.base}verify/v1/health`);
  assert.equal(last.status, 429);
  for (let load = 0; load < 5; load += 1) {
    const page = await front.visit(null);
    const files = [];
    page.on("response", (response) => files.push([new URL(response.url()).pathname, response.status()]));
    await page.goto(server.base);
    await at(page, "Log in");
    assert.equal(await page.getByText(SENTENCE).count(), 0);
    assert.ok(files.length <= 6, JSON.stringify(files));
    await page.context().close();
  }
});

test("an address that changes while the page loads is not missed", async () => {
  const page = await front.visit(null);
  await page.addInitScript(() => addEventListener("DOMContentLoaded", () => { location.hash = "#/setup"; }));
  await page.goto(server.base);
  await at(page, "Set up this server");
  await page.context().close();
});

test("a page whose script or style cannot be loaded says so", async () => {
  for (const [file, isDrawn] of [["dashboard.js", false], ["first.js", true], ["dashboard.css", true]]) {
    const page = await front.visit(null);
    await page.route(`**/${file}`, (route) => route.fulfill({ status: 429, body: "" }));
    await page.goto(server.base);
    if (isDrawn) await at(page, "Log in");
    else await page.getByText(SENTENCE).waitFor();
    await page.context().close();
    // The browser has logged that the file is missing.
    front.witness.told = [];
  }
});

test("a script that breaks leaves the sentence in its place", async () => {
  const page = await front.visit(null);
  await page.route("**/dashboard.js", (route) => route.fulfill({ contentType: "text/javascript", body: "throw new Error('broken')" }));
  await page.goto(server.base);
  await page.getByText(SENTENCE).waitFor();
  await page.context().close();
  front.witness.told = [];
});

test("without scripts the page says what to do", async () => {
  const page = await front.visit("", { javaScriptEnabled: false });
  await page.getByText(SENTENCE).waitFor();
  await page.getByText("It needs JavaScript.").waitFor();
  await page.context().close();
});
