// The dashboard below a path of another server, behind a proxy.
import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { at, desk, dialog, press, takeKey } from "./support/desk.mjs";

const PREFIX = "/tools/mk/";
let proxy;
const front = await desk({ base: ({ base }) => mount(base) });
after(() => {
  proxy.closeAllConnections();
  proxy.close();
});

/** Forwards requests below the prefix, as nginx does by default, with the client's `Host`; other paths get 404. */
async function mount(target) {
  proxy = http.createServer((request, response) => {
    if (!request.url.startsWith(PREFIX)) {
      response.writeHead(404).end();
      return;
    }
    const { method, headers, url } = request;
    const onward = http.request(new URL(url.slice(PREFIX.length), target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${proxy.address().port}${PREFIX}`;
}

test("everything works below a path prefix, and requests nothing outside it", async () => {
  const page = await front.visit();
  await page.getByLabel("Console key", { exact: true }).fill(await front.server.consoleKey());
  await press(page, "Log in");
  await at(page, "Overview");

  await page.getByRole("link", { name: "Apps & keys" }).click();
  await page.getByRole("link", { name: "default" }).click();
  await page.getByRole("button", { name: "New key" }).click();
  await press(dialog(page), "Create key");
  assert.match(await takeKey(page), /^mk_verify_/);

  await page.getByRole("link", { name: "Playground" }).click();
  await press(page, "True and false");
  await press(page, "Verify");
  await page.getByText("Done. 2 claims: 1 true, 1 false.").waitFor();
  await page.getByText("Show as command").click();
  const shown = await page.locator(".code pre").allTextContents();
  const base = front.base.replace(/\/$/, "");
  assert.ok(shown.length === 2 && shown.every((text) => text.includes(base)), `commands for ${base}: ${shown}`);

  await page.getByRole("link", { name: "Chat", exact: true }).click();
  await page.getByLabel("Message").fill("What is the capital of France?");
  await press(page, "Send");
  await page.getByText("The answer is complete.").waitFor();

  for (const [link, title] of [["Usage & billing", "Usage & billing"], ["Audit", "Audit"]]) {
    await page.getByRole("link", { name: link, exact: true }).click();
    await at(page, title);
  }
  await press(page, "Log out");
  await at(page, "Log in");
  assert.ok(front.witness.requests.every((url) => url.startsWith(front.base)));
  await page.context().close();
});
