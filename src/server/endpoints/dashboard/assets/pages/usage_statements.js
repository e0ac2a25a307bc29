// Statements: an app's usage in a month, shown here or downloaded.
import { html, useMemo } from "../lib/html.js";
import { api } from "../lib/api.js";
import { useAction, useGet } from "../lib/data.js";
import { download, fileWord } from "../lib/download.js";
import { cost, count, labels, money, month, utcDay } from "../lib/format.js";
import { setQuery } from "../lib/router.js";
import { Banner, Button, Problem, Select, Spinner, Table } from "../lib/ui.js";

const MONTHS = 13;

/** This month and those before, `YYYY-MM`. */
function months() {
  const [year, now] = utcDay().split("-").map(Number);
  return Array.from({ length: MONTHS }, (_, back) => new Date(Date.UTC(year, now - 1 - back, 1)).toISOString().slice(0, 7));
}

export function Statements({ route, apps }) {
  const all = useMemo(() => months(), []);
  const when = all.find((one) => one === route.query.get("month")) ?? all[0];
  const app = apps.rows?.find((one) => one.id === route.query.get("app")) ?? apps.rows?.[0];
  const set = (name) => (value) => setQuery(route, { [name]: value });
  const address = app ? `v1/apps/${app.id}/statement?month=${when}` : null;
  const { data, error, loading, reload } = useGet(address);
  const isCurrent = data && data.app_id === app?.id && data.month === when;
  const name = app && `statement-${fileWord(app.name)}-${when}`;
  const [csv, asCsv] = useAction(async () => download(`${name}.csv`, await api.text(address, "text/csv"), "text/csv"));
  const json = () => download(`${name}.json`, `${JSON.stringify(data, null, 2)}\n`, "application/json");
  return html`<section aria-labelledby="statements">
    <h2 id="statements">Statements</h2>
    <div class="filters">
      <${Select} label="App" value=${app?.id ?? ""} options=${(apps.rows ?? []).map((one) => ({ value: one.id, label: one.name }))} onChange=${set("app")} />
      <${Select} label="Month" value=${when} options=${all.map((value) => ({ value, label: month(value, true) }))} onChange=${set("month")} />
      <div class="filter-button">
        <${Button} onClick=${csv} busy=${asCsv.busy} disabled=${!isCurrent}>Download CSV</${Button}> <${Button} onClick=${json} disabled=${!isCurrent}>Download JSON</${Button}>
      </div>
    </div>
    <${Problem} error=${error ?? asCsv.error ?? apps.error} retry=${error ? reload : undefined} />
    ${isCurrent ? html`<${Statement} statement=${data} />` : loading && address && html`<${Spinner} />`}
  </section>`;
}

function Statement({ statement }) {
  const names = useMemo(() => labels(statement.lines.map((line) => ({ id: line.key_id, name: line.key }))), [statement]);
  const columns = [
    { key: "service", label: "Service", render: (line) => line.service },
    { key: "key", label: "Key", main: true, render: (line) => names.get(line.key_id) ?? line.key },
    { key: "model", label: "Model", class: "name-cell", render: (line) => line.model },
    { key: "requests", label: "Requests", number: true, render: (line) => count(line.requests) },
    { key: "tokens", label: "Tokens", number: true, render: (line) => count(line.total_tokens) },
    { key: "cost", label: "Cost", number: true, render: cost },
  ];
  if (statement.lines.length === 0) return html`<p class="muted">${statement.app} has no usage in ${month(statement.month)}.</p>`;
  const foot = { ...statement.totals, service: "", key: "Total", model: "" };
  return html`${statement.is_preliminary && html`<${Banner}>The month is not over yet: these sums may still grow.</${Banner}>`}
    <div class="card flush"><${Table} caption=${`Statement of ${statement.app}, ${month(statement.month)}`} columns=${columns} rows=${statement.lines} rowKey=${(line) => `${line.service} ${line.key_id} ${line.model}`} foot=${foot} /></div>
    ${statement.budget_usd !== null && html`<p class="muted">The app's monthly budget is ${money(statement.budget_usd)}.</p>`}`;
}
