// Every page in every state that users see, checked by support/judge.mjs.
import { test } from "node:test";
import { at, desk, press } from "./support/desk.mjs";
import { judge, judged, judgedWithin } from "./support/judge.mjs";

const front = await desk();
const { server } = front;

const enter = (path) => judgedWithin(front, path);

/** Responses of the server that are hard to provoke. */
async function failing(page, path, run) {
  const body = { error: "Service Unavailable", message: "the store cannot be reached; try again in a moment", code: "store_unavailable", request_id: "req_0123456789abcdef" };
  await page.route(path, (route) => route.fulfill({ status: 503, json: body, headers: { "retry-after": "5" } }));
  await run();
  await page.unroute(path);
}

test("login and setup pages are accessible", async () => {
  const page = await judged(front, "#/login");
  await at(page, "Log in");
  await judge(page, "login");
  await press(page, "Log in");
  await page.getByText("Paste a console key.").waitFor();
  await judge(page, "login, wrong");
  await failing(page, "**/v1/auth/session", async () => {
    await page.getByLabel("Console key", { exact: true }).fill("mk_console_x");
    await press(page, "Log in");
    await page.getByRole("alert").waitFor();
    await judge(page, "login, out of order");
    await page.reload();
    await at(page, "Dashboard");
    await judge(page, "no answer");
  });
  await page.goto(`${front.base}#/setup/abc`);
  await at(page, "Set up this server");
  await judge(page, "setup");
  await press(page, "Create the first console key");
  await page.getByRole("alert").waitFor();
  await judge(page, "setup, refused");
  await page.reload();
  await page.getByText("This link is incomplete.").waitFor();
  await judge(page, "setup, incomplete");
  await page.context().close();
});

test("pages without data are accessible", async () => {
  const page = await enter("");
  await page.getByRole("heading", { name: "Next steps" }).waitFor();
  await page.getByText("No budgets are set.").waitFor();
  await judge(page, "overview, empty");
  await page.goto(`${front.base}#/usage`);
  await page.getByText("No usage in this period").waitFor();
  await judge(page, "usage, empty");
  await page.goto(`${front.base}#/usage/budgets`);
  await page.getByText("No budgets are set").waitFor();
  await judge(page, "budgets, empty");
  await page.goto(`${front.base}#/usage/statements`);
  await page.getByText("has no usage in").waitFor();
  await judge(page, "statements, empty");
  await server.mk("apps", "create", "empty");
  await page.goto(`${front.base}#/apps`);
  await page.getByRole("link", { name: "empty" }).click();
  await page.getByText("No keys yet").waitFor();
  await judge(page, "app, empty");
  await page.goto(`${front.base}#/audit?object=key_unknown`);
  await page.getByText("No matching entries").waitFor();
  await judge(page, "audit, filtered");
  await page.goto(`${front.base}#/nowhere`);
  await at(page, "No such page");
  await judge(page, "no such page");
  await failing(page, "**/v1/apps?*", async () => {
    await page.goto(`${front.base}#/apps`);
    await page.getByRole("alert").waitFor();
    await judge(page, "apps, out of order");
  });
  await page.context().close();
});

test("pages with data are accessible", async () => {
  await server.mk("apps", "create", "A newsroom with a rather long name", "--budget-usd", "0");
  const [{ id }] = await server.list("v1/apps");
  const old = await server.key("verify", "--name", "old desk");
  await server.key("inference", "--name", "nightly batch", "--per-minute", "600", "--per-day", "0", "--model", "sandbox/*", "--address", "10.0.0.0/8", "--budget-usd", "5", "--expires", "90d");
  await server.verify("The capital of France is Lyon. 7 times 8 is 56. [sandbox:fail=beta]", old);
  await server.mk("keys", "revoke", "old desk", "--yes");

  const page = await enter("");
  await page.getByRole("heading", { name: "Today" }).waitFor();
  await page.getByText("Used up").waitFor();
  await judge(page, "overview");
  await page.getByText("The numbers as a table").click();
  await page.setViewportSize({ width: 320, height: 640 });
  await press(page, "Menu");
  await judge(page, "overview, all open");
  await page.goto(`${front.base}#/apps`);
  await page.getByRole("link", { name: "default" }).waitFor();
  await judge(page, "apps");
  await page.goto(`${front.base}#/apps/${id}`);
  await page.getByText("nightly batch").first().waitFor();
  await judge(page, "app");
  await page.getByLabel("State").selectOption("expired");
  await page.getByText("No matching keys").waitFor();
  await judge(page, "app, filtered");
  await page.goto(`${front.base}#/usage`);
  await page.getByRole("rowheader", { name: "sandbox/alpha" }).first().waitFor();
  await judge(page, "usage");
  await page.goto(`${front.base}#/usage/budgets`);
  await page.getByRole("rowheader", { name: /A newsroom with/ }).waitFor();
  await judge(page, "budgets");
  await page.goto(`${front.base}#/usage/statements`);
  await page.getByText("The month is not over").waitFor();
  await judge(page, "statements");
  await page.goto(`${front.base}#/usage?model=sandbox/alpha&by=day&show=tokens`);
  await page.getByText("Only model").waitFor();
  await page.getByText("The numbers as a table").click();
  await judge(page, "usage, filtered");
  await page.goto(`${front.base}#/audit`);
  await page.getByText("Details").first().click();
  await judge(page, "audit");
  await page.context().close();
});
