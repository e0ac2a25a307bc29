// Usage & billing: a report over a range, the month with its budgets, statements; each at an address of its own.
import { html } from "../lib/html.js";
import { useAll } from "../lib/data.js";
import { PageHead, Tabs } from "../lib/ui.js";
import { Billing } from "./usage_billing.js";
import { Report } from "./usage_report.js";
import { Statements } from "./usage_statements.js";

const TABS = [
  { href: "#/usage", label: "Usage" },
  { href: "#/usage/budgets", label: "Budgets" },
  { href: "#/usage/statements", label: "Statements" },
];

export default function Usage({ route }) {
  const apps = useAll("v1/apps");
  const part = route.parts[1];
  return html`<${PageHead} title="Usage & billing" lead="Model usage and its cost. Days and months are in UTC." />
    <${Tabs} label="Usage & billing" tabs=${TABS} current=${part ? `#/usage/${part}` : "#/usage"} />
    ${part === "budgets" && html`<${Billing} />`}
    ${part === "statements" && html`<${Statements} route=${route} apps=${apps} />`}
    ${!part && html`<${Report} route=${route} apps=${apps} />`}`;
}
