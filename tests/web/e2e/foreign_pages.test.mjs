// A hostile page of another origin, opened in the browser of a logged-in user.
import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { desk } from "./support/desk.mjs";
import { eventually } from "./support/server.mjs";

const front = await desk();
const { server } = front;
const elsewhere = http.createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>bait</title><link rel=icon href=data:,>"));
await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
after(() => {
  elsewhere.closeAllConnections();
  elsewhere.close();
});

/** A window of the victim on the hostile page: on another port of the same site, or on another site. */
async function lure(host) {
  const context = await front.browser.newContext();
  await context.addCookies([await front.cookie()]);
  const page = await context.newPage();
  await page.goto(`http://${host}:${elsewhere.address().port}/`);
  return page;
}

/** The state that no other page may change. */
async function state() {
  const [apps, audit] = [await server.list("v1/apps"), await server.list("v1/audit")];
  const keys = await server.list(`v1/apps/${apps[0].id}/keys`);
  return JSON.stringify([apps.map(({ id, name, budget_usd: budget }) => [id, name, budget]), keys.map(({ id, state: now }) => [id, now]), audit.length]);
}

for (const host of ["127.0.0.1", "localhost"]) {
  test(`a page of ${host} on another port can change and read nothing`, async () => {
    const page = await lure(host);
    const [{ id }] = await server.list("v1/apps");
    const before = await state();
    const aim = `${server.base}v1/apps`;

    const sent = await page.evaluate(async ({ aim, id }) => {
      const outcomes = [];
      const attempt = async (address, options) => {
        try {
          const answer = await fetch(address, { credentials: "include", ...options });
          outcomes.push(answer.type === "opaque" ? "opaque" : `read ${answer.status}`);
        } catch {
          outcomes.push("refused");
        }
      };
      const body = JSON.stringify({ name: "stolen" });
      await attempt(aim, { method: "POST", headers: { "content-type": "application/json" }, body });
      await attempt(aim, { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body });
      await attempt(aim, { method: "POST", mode: "no-cors", body: new URLSearchParams({ name: "stolen" }) });
      await attempt(`${aim}/${id}`, { method: "DELETE" });
      await attempt(`${aim}/${id}`, { method: "PATCH", headers: { "content-type": "application/json" }, body });
      await attempt(`${aim}/${id}/keys`, { method: "POST", mode: "no-cors", body: '{"service":"console"}' });
      await attempt(aim, {});
      return outcomes;
    }, { aim, id });
    assert.deepEqual(sent, ["refused", "opaque", "opaque", "refused", "refused", "opaque", "refused"]);

    // A form may be submitted to any origin, and navigates the whole window.
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) {
      const answered = page.waitForResponse((response) => response.url().startsWith(server.base));
      await page.evaluate(({ aim, enctype }) => {
        const form = document.createElement("form");
        Object.assign(form, { method: "post", action: aim, enctype });
        const field = document.createElement("input");
        Object.assign(field, { name: '{"name":"stolen","x":"', value: '"}' });
        form.append(field);
        document.body.append(form);
        form.submit();
      }, { aim, enctype });
      assert.ok([401, 403].includes((await answered).status()));
      await page.waitForURL(aim);
      await page.goto(`http://${host}:${elsewhere.address().port}/`);
    }

    // Logging the victim in with a key of the attacker is an attack too.
    const planted = await page.evaluate((address) => fetch(address, { method: "POST", mode: "no-cors", credentials: "include", body: '{"key":"x"}' }).then((answer) => answer.type), `${server.base}v1/auth/session`);
    assert.equal(planted, "opaque");

    // A link opens the page, and does nothing by itself.
    await page.evaluate((address) => { location.href = address; }, `${server.base}#/apps/${id}?budget`);
    await page.waitForURL(`${server.base}**`);
    assert.equal(await state(), before);
    const [cookie] = await page.context().cookies(server.base);
    assert.equal(cookie.value, (await front.cookie()).value, "the session is as it was");
    await page.context().close();
  });
}

test("no other page can frame the dashboard or hold on to its window", async () => {
  const page = await lure("127.0.0.1");
  const framed = await page.evaluate((address) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = address;
    frame.onload = () => {
      let text = "nothing";
      try {
        text = frame.contentDocument?.body?.textContent ?? "nothing";
      } catch {
        // Even that is denied.
      }
      resolve(text);
    };
    document.body.append(frame);
  }), server.base);
  assert.equal(framed, "nothing");
  assert.deepEqual(page.frames().slice(1).map((frame) => frame.url()), ["chrome-error://chromewebdata/"]);
  const [opened] = await Promise.all([page.waitForEvent("popup"), page.evaluate((address) => { globalThis.held = open(address); }, server.base)]);
  await opened.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await opened.evaluate(() => opener), null);
  assert.equal(await page.evaluate(() => globalThis.held.closed), true, "its opener was cut off");
  await page.context().close();
});

test("a script injected into the dashboard can connect to nothing else, and is reported", async () => {
  const page = await front.enter("");
  await page.getByRole("heading", { level: 1 }).waitFor();
  const outcome = await page.evaluate(async (address) => {
    const found = [];
    await fetch(address, { mode: "no-cors" }).then(() => found.push("fetched"), () => {});
    try {
      document.body.innerHTML = "<p>markup from text</p>";
      found.push("markup");
    } catch {
      // The page never treats text as markup.
    }
    const picture = new Image();
    const failed = new Promise((resolve) => { picture.onerror = () => resolve(); picture.onload = () => resolve(found.push("picture")); });
    picture.src = `${address}?stolen`;
    await failed;
    const script = document.createElement("script");
    try {
      script.textContent = "globalThis.injected = true";
      document.body.append(script);
    } catch {
      // Nor as a script.
    }
    if (globalThis.injected) found.push("script");
    return found;
  }, `http://127.0.0.1:${elsewhere.address().port}/`);
  assert.deepEqual(outcome, []);
  for (const violation of ["connect-src", "img-src", "require-trusted-types-for trusted-types-sink Element innerHTML", "require-trusted-types-for trusted-types-sink HTMLScriptElement"]) {
    await eventually(`the violation of ${violation} is told`, () => front.witness.told.some((told) => told.includes(`policy: ${violation}`)));
  }
  front.witness.told = [];
  await page.context().close();
});
