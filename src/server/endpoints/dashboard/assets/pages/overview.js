// The overview: today, the last two weeks, budgets near their limit, and what to do next on a new server.
import { html, useMemo } from "../lib/html.js";
import { Spent } from "../lib/budget.js";
import { DayChart } from "../lib/chart.js";
import { createKey, updateApp } from "../lib/commands.js";
import { useGet } from "../lib/data.js";
import { compact, cost, count, day, days, money, month, plural, tokens, utcDay } from "../lib/format.js";
import { formOf } from "../lib/key_form.js";
import { Button, Or, PageHead, Problem, Spinner, Table } from "../lib/ui.js";

const SPAN = 14;
const NOTHING = { requests: 0, attempts: 0, errors: 0, total_tokens: 0, cost_usd: 0, unpriced_attempts: 0 };

export default function Overview() {
  const to = useMemo(() => utcDay(), []);
  const from = useMemo(() => utcDay(SPAN - 1), []);
  const usage = useGet(`v1/usage?from=${from}&to=${to}&by=day`);
  const billing = useGet("v1/billing");
  if (usage.error && !usage.data) return html`<${PageHead} title="Overview" /><${Problem} error=${usage.error} retry=${usage.reload} />`;
  if (!usage.data) return html`<${PageHead} title="Overview" /><${Spinner} />`;
  const isEmpty = usage.data.totals.attempts === 0;
  return html`<${PageHead} title="Overview" lead=${`${day(to)}, UTC`} />
    ${isEmpty ? html`<${NextSteps} />` : html`<${Today} sums=${usage.data.data.find((row) => row.day === to) ?? NOTHING} /><${Fortnight} report=${usage.data} from=${from} to=${to} />`}
    <${Problem} error=${billing.error} retry=${billing.reload} />
    ${billing.data && html`<${Budgets} billing=${billing.data} isEmpty=${isEmpty} />`}`;
}

function Today({ sums }) {
  const failed = sums.attempts > 0 ? (100 * sums.errors) / sums.attempts : 0;
  return html`<section aria-labelledby="today">
    <h2 id="today">Today</h2>
    <dl class="figures">
      <${Figure} name="Requests" value=${count(sums.requests)} note=${plural(sums.attempts, "model call")} />
      <${Figure} name="Cost" value=${sums.cost_usd === null ? "unknown" : money(sums.cost_usd)} note=${sums.unpriced_attempts > 0 ? `${plural(sums.unpriced_attempts, "call")} without a known price` : "all prices known"} />
      <${Figure} name="Failed calls" value=${count(sums.errors)} note=${`${failed.toFixed(failed > 0 && failed < 10 ? 1 : 0)}% of model calls`} />
      <${Figure} name="Tokens" value=${tokens(sums.total_tokens)} note=${`${tokens(sums.prompt_tokens)} in, ${tokens(sums.completion_tokens)} out`} />
    </dl>
  </section>`;
}

function Figure({ name, value, note }) {
  return html`<div class="figure card"><dt>${name}</dt><dd><span class="big">${value}</span><span class="muted">${note}</span></dd></div>`;
}

function Fortnight({ report, from, to }) {
  const dates = useMemo(() => days(from, to), [from, to]);
  const rows = useMemo(() => {
    const byDay = new Map(report.data.map((row) => [row.day, row]));
    return dates.map((date) => byDay.get(date) ?? { ...NOTHING, day: date });
  }, [report, dates]);
  const values = useMemo(() => rows.map((row) => row.requests), [rows]);
  const columns = [
    { key: "day", label: "Day", main: true, render: (row) => day(row.day) },
    { key: "requests", label: "Requests", number: true, render: (row) => count(row.requests) },
    { key: "errors", label: "Failed calls", number: true, render: (row) => count(row.errors) },
    { key: "tokens", label: "Tokens", number: true, render: (row) => count(row.total_tokens) },
    { key: "cost", label: "Cost", number: true, render: cost },
  ];
  return html`<section aria-labelledby="fortnight">
    <div class="section-head"><h2 id="fortnight">Requests, last ${SPAN} days</h2><a href="#/usage">Usage & billing</a></div>
    <div class="card">
      <${DayChart} days=${dates} values=${values} format=${compact} isWhole label=${`Chart of requests per day: ${count(report.totals.requests)} in ${SPAN} days. The numbers are in the table below.`} />
      <details class="numbers"><summary>The numbers as a table</summary><${Table} caption="Usage per day" columns=${columns} rows=${rows} rowKey=${(row) => row.day} /></details>
    </div>
  </section>`;
}

function Budgets({ billing, isEmpty }) {
  const near = billing.budgets.filter((line) => line.threshold !== null);
  const { forecast } = billing;
  return html`<section aria-labelledby="month">
    <div class="section-head"><h2 id="month">${month(billing.month)}</h2>${!isEmpty && html`<a href="#/usage/budgets">All budgets</a>`}</div>
    <div class="card">
      <p><strong>${cost(billing.month_to_date)}</strong> so far${forecast && html`; about <strong>${money(forecast.cost_usd)}</strong> by month’s end`}.</p>
      ${near.length > 0
        ? html`<ul class="budget-list">${near.map((line) => html`<li key=${line.id}><a href=${`#/apps/${line.app_id}`}>${line.name}</a> <span class="muted">${line.id.startsWith("key_") ? "key" : "app"}</span><${Spent} spent=${line.spent_usd} of=${line.budget_usd} /></li>`)}</ul>`
        : html`<p class="muted">${billing.budgets.length > 0 ? "No budget has reached 50%." : "No budgets are set."}</p>`}
    </div>
  </section>`;
}

function NextSteps() {
  const apps = useGet("v1/apps?limit=1");
  const app = apps.data?.data[0];
  const keys = useGet(app ? `v1/apps/${app.id}/keys?state=active&limit=200` : null);
  const hasKey = keys.data?.data.some((key) => key.service !== "console") ?? false;
  const named = app ?? { name: "default" };
  const target = app ? `#/apps/${app.id}` : "#/apps";
  return html`<section aria-labelledby="next">
    <h2 id="next">Next steps</h2>
    <p class="muted">No requests in the last ${SPAN} days. Here is how to start.</p>
    <ol class="steps">
      <${Step} title="Create a key" isDone=${hasKey} isNext=${!hasKey} button="Create a key" href=${`${target}?new=verify`} command=${createKey(named, formOf(null))}>Programs call the server with a key of an app.</${Step}>
      <${Step} title="Check a first fact" isNext=${hasKey} button="Open the playground" href="#/playground" command=${'mk verify "The Eiffel Tower is in Paris."'}>See claims and votes arrive live.</${Step}>
      <${Step} title="Set a budget" isDone=${typeof app?.budget_usd === "number"} button="Set a budget" href=${`${target}?budget`} command=${updateApp(named, { budget_usd: 50 })}>Requests are refused once the month's budget is used up.</${Step}>
    </ol>
  </section>`;
}

function Step({ title, isDone, isNext, button, href, command, children }) {
  return html`<li class="card step">
    <div><h3>${title} ${isDone && html`<span class="tag good">Done</span>`}</h3><p>${children}</p></div>
    <div class="step-do"><${Button} kind=${isNext ? "primary" : "secondary"} href=${href}>${button}</${Button}><${Or} command=${command}>or</${Or}></div>
  </li>`;
}
