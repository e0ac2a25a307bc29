// The month so far: cost, forecast, budgets with their thresholds.
import { html } from "../lib/html.js";
import { Spent } from "../lib/budget.js";
import { useGet } from "../lib/data.js";
import { cost, date, labels, money, month } from "../lib/format.js";
import { Button, Empty, Problem, Spinner, Table } from "../lib/ui.js";

export function Billing() {
  const { data, error, loading, reload } = useGet("v1/billing");
  return html`<section aria-labelledby="budgets">
    <h2 id="budgets">${data ? `Budgets, ${month(data.month)}` : "Budgets"}</h2>
    <${Problem} error=${error} retry=${reload} />
    ${!data && loading && html`<${Spinner} />`}
    ${data && html`<${Forecast} billing=${data} /><${Lines} lines=${data.budgets} />`}
  </section>`;
}

function Forecast({ billing }) {
  const { forecast, month_to_date: sums } = billing;
  return html`<p>Spent so far: <strong>${cost(sums)}</strong>.
    ${forecast
      ? html` At the rate of the last ${forecast.based_on_days <= 1 ? "day" : `${Math.round(forecast.based_on_days)} days`} (${money(forecast.per_day_usd)} a day), the month will come to about <strong>${money(forecast.cost_usd)}</strong>.`
      : " There is no usage yet to make a forecast from."}
    ${sums.unpriced_attempts > 0 ? " Calls without a known price are not in it." : ""}
    <span class="muted"> Budgets reset on ${date(billing.ends_at)}.</span></p>`;
}

function Lines({ lines }) {
  if (lines.length === 0) {
    const action = html`<${Button} kind="primary" href="#/apps">Choose an app</${Button}>`;
    return html`<${Empty} title="No budgets are set" action=${action} command="mk apps update NAME --budget-usd 50">A budget limits what an app or a key can spend in a month.</${Empty}>`;
  }
  const isKey = (line) => line.id.startsWith("key_");
  const names = labels(lines.filter(isKey));
  const columns = [
    { key: "name", label: "Budget of", main: true, render: (line) => html`<a href=${`#/apps/${line.app_id}`}>${names.get(line.id) ?? line.name}</a> <span class="muted">${isKey(line) ? "key" : "app"}</span>` },
    { key: "spent", label: "Used", class: "wide-cell", render: (line) => html`<${Spent} spent=${line.spent_usd} of=${line.budget_usd} />` },
    { key: "left", label: "Left", number: true, render: (line) => money(Math.max(0, line.budget_usd - line.spent_usd)) },
    { key: "do", label: "Actions", hideLabel: true, class: "row-actions", render: (line) => line.id.startsWith("app_") && html`<${Button} small kind="quiet" href=${`#/apps/${line.app_id}?budget`}>Change<span class="unseen"> the budget of ${line.name}</span></${Button}>` },
  ];
  return html`<div class="card flush"><${Table} caption="Budgets of this month, the most used first" columns=${columns} rows=${lines} /></div>`;
}
