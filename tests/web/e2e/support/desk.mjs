// A server, a browser and a user with a console key: what most tests need.
import assert from "node:assert/strict";
import { after, afterEach } from "node:test";
import { browse, Witness } from "./browser.mjs";
import { serve } from "./server.mjs";

/**
 * A fixture for all tests of a file: `{server, browser, open, log}`. It ends with them, and its tests fail if a page
 * reports an error. `base` is the address that the browser uses, if that is not the server's own.
 */
export async function desk({ base, ...options } = {}) {
  const [server, { browser, close }] = await Promise.all([serve(options), browse()]);
  const origin = base?.(server) ?? server.base;
  const witness = new Witness(await origin);
  const self = new Desk(server, browser, witness, await origin);
  afterEach(() => witness.verdict());
  after(async () => {
    await close();
    await server.stop();
  });
  return self;
}

class Desk {
  #cookie;

  constructor(server, browser, witness, base) {
    Object.assign(this, { server, browser, witness, base });
  }

  /** A window without a session. */
  async visit(path = "", options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(10_000);
    await this.witness.watch(context);
    const page = await context.newPage();
    if (path !== null) await page.goto(this.base + path);
    return page;
  }

  /** A window with a session. */
  async enter(path = "", options = {}) {
    const page = await this.visit(null, options);
    await page.context().addCookies([await this.cookie()]);
    await page.goto(this.base + path);
    return page;
  }

  /** The cookie of a session, the same for all windows, because logins per minute are limited. */
  async cookie() {
    this.#cookie ??= await this.logIn(await this.server.consoleKey());
    return this.#cookie;
  }

  /** A new session's cookie. */
  async logIn(key) {
    const answer = await fetch(`${this.base}v1/auth/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    assert.equal(answer.status, 201);
    const [name, value] = answer.headers.get("set-cookie").split(";")[0].split("=");
    return { name, value, url: this.base, httpOnly: true, sameSite: "Strict" };
  }
}

/** The heading of the page, once it is this one. */
export async function at(page, title) {
  await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
}

/** The dialog that is open. */
export function dialog(page) {
  return page.getByRole("dialog");
}

/** Clicks a button by its full name. */
export function press(scope, name) {
  return scope.getByRole("button", { name, exact: true }).click();
}

/** Reads the key that a dialog shows, and closes the dialog. */
export async function takeKey(page) {
  const shown = dialog(page);
  const key = await shown.getByLabel("The key").textContent();
  await shown.getByRole("checkbox", { name: "I stored this key" }).check();
  await press(shown, "Done");
  await shown.waitFor({ state: "detached" });
  return key;
}
