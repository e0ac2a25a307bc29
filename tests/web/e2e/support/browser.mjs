// Debian's Chromium, and windows that record what a page must never do.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Its packages are not next to the tests, like everything that is installed.
const packages = process.env.MK_WEB_PACKAGES ?? new URL("../../../../target/web/", import.meta.url);
export const require = createRequire(new URL("packages.cjs", new URL(packages, import.meta.url)));
const { chromium } = require("playwright-core");

/** Without these it connects to hosts of its vendor, which no test may need. */
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** A browser that runs until `close`; its windows are opened with `visit`. */
export async function browse() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const home = await mkdtemp(join(tmpdir(), "mk-e2e-browser-"));
  const browser = await chromium.launch({ executablePath, args: FLAGS, env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home } });
  const close = async () => {
    await browser.close();
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  };
  return { browser, close };
}

/** Records what a page of `base` must never do: `told` is empty if nothing happened. */
export class Witness {
  told = [];
  requests = [];
  #base;

  constructor(base) {
    this.#base = base;
  }

  /** Watches all pages of a browser context. */
  async watch(context) {
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    });
    context.on("request", (request) => this.#requested(request.url()));
    context.on("console", (message) => this.#said(message));
    context.on("weberror", (error) => this.told.push(`error: ${error.error().stack}`));
  }

  /** Fails if something was recorded since the last call. */
  verdict() {
    const told = this.told;
    this.told = [];
    assert.deepEqual(told, []);
  }

  #requested(url) {
    if (url.startsWith("data:") || url.startsWith("blob:")) return;
    this.requests.push(url);
    if (!url.startsWith(this.#base)) this.told.push(`request elsewhere: ${url}`);
  }

  #said(message) {
    if (!["error", "warning", "assert"].includes(message.type())) return;
    if (this.#isRefusal(message)) return;
    this.told.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
  }

  /** Chromium logs every response above 399; those of the API are expected, unless the server failed. */
  #isRefusal(message) {
    const path = message.location().url.replace(this.#base, "");
    return /the server responded with a status of (4\d\d|50[234])/.test(message.text()) && /^(v1|verify|inference)\//.test(path);
  }
}
