// Usage & billing: a report over a range, the month with its budgets, statements.
import { html, useEffect } from "../lib/html.js";
import { useAll } from "../lib/data.js";
import { PageHead } from "../lib/ui.js";
import { Billing } from "./usage_billing.js";
import { Report } from "./usage_report.js";
import { Statements } from "./usage_statements.js";

export default function Usage({ route }) {
  const apps = useAll("v1/apps");
  const section = route.query.get("section");
  useEffect(() => {
    if (section) document.getElementById(section)?.scrollIntoView();
  }, [section]);
  return html`<${PageHead} title="Usage & billing" lead="What was asked of models and what it cost. Days and months are UTC." />
    <${Report} route=${route} apps=${apps} />
    <${Billing} />
    <${Statements} apps=${apps} />`;
}
