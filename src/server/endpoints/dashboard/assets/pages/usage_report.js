// Usage over a range of days: filters, a chart, and sums by the chosen dimension.
import { html, useMemo, useRef } from "../lib/html.js";
import { api, withQuery } from "../lib/api.js";
import { DayChart } from "../lib/chart.js";
import { usage } from "../lib/commands.js";
import { useAction, useGet } from "../lib/data.js";
import { download } from "../lib/download.js";
import { compact, cost, count, day, days, labels, money, percent, plural, shortId, tokens, utcDay } from "../lib/format.js";
import { setQuery } from "../lib/router.js";
import { Button, Empty, Field, Or, Problem, Select, Spinner, Table } from "../lib/ui.js";

const DIMENSIONS = { day: "Day", app: "App", key: "Key", model: "Model", service: "Service", user: "End user", tag: "Tag" };
const MEASURES = {
  cost: { label: "Cost", of: (sums) => sums.cost_usd, format: money },
  requests: { label: "Requests", of: (sums) => sums.requests, format: compact },
  tokens: { label: "Tokens", of: (sums) => sums.total_tokens, format: compact },
  errors: { label: "Failed calls", of: (sums) => sums.errors, format: compact },
};
const choices = (labels) => Object.entries(labels).map(([value, label]) => ({ value, label: label.label ?? label }));
const NOTHING = { requests: 0, attempts: 0, errors: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost_usd: 0, unpriced_attempts: 0 };

/** A day from the address; null if it is not one. */
function dayOf(text) {
  const at = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().slice(0, 10) === text ? text : null;
}

/** Ranges by name, as first and last day. */
function presets(today = utcDay()) {
  const first = `${today.slice(0, 8)}01`;
  const lastOfBefore = new Date(Date.parse(`${first}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
  return {
    "7d": { label: "Last 7 days", from: utcDay(6), to: today },
    "30d": { label: "Last 30 days", from: utcDay(29), to: today },
    "90d": { label: "Last 90 days", from: utcDay(89), to: today },
    month: { label: "This month", from: first, to: today },
    before: { label: "Last month", from: `${lastOfBefore.slice(0, 8)}01`, to: lastOfBefore },
  };
}

export function Report({ route, apps }) {
  const ranges = useMemo(() => presets(), []);
  const get = (name) => route.query.get(name) ?? "";
  const from = dayOf(get("from")) ?? ranges["30d"].from;
  const to = dayOf(get("to")) ?? ranges["30d"].to;
  const by = Object.hasOwn(DIMENSIONS, get("by")) ? get("by") : "model";
  const filters = { app: get("app"), service: get("service"), key: get("key"), model: get("model") };
  const address = (dimension) => withQuery("v1/usage", { from, to, by: dimension, ...filters });
  const daily = useGet(address("day"));
  const grouped = useGet(by === "day" ? null : address(by));
  const shown = by === "day" ? daily : grouped;
  // If nothing costs anything, or prices are unknown, a chart of costs would be empty.
  const measure = Object.hasOwn(MEASURES, get("show")) ? get("show") : daily.data?.totals.cost_usd > 0 ? "cost" : "requests";
  const names = useNames(filters, { from, to });
  const set = (name) => (value) => setQuery(route, { [name]: value });
  const preset = Object.keys(ranges).find((name) => ranges[name].from === from && ranges[name].to === to) ?? "own";
  const [csv, { busy, error }] = useAction(async () => {
    download(`usage-${from}-${to}-by-${by}.csv`, await api.text(address(by), "text/csv"), "text/csv");
  });
  const chooseRange = (name) => ranges[name] && setQuery(route, { from: ranges[name].from, to: ranges[name].to });
  const rangeOptions = [...choices(ranges), ...(preset === "own" ? [{ value: "own", label: "From … to" }] : [])];
  const appOptions = [{ value: "", label: "All apps" }, ...(apps.rows ?? []).map((app) => ({ value: app.id, label: app.name }))];
  if (filters.app && !appOptions.some((option) => option.value === filters.app)) appOptions.push({ value: filters.app, label: names.app ?? shortId(filters.app) });

  return html`<section aria-labelledby="report">
    <h2 id="report" class="unseen">Report</h2>
    <div class="filters">
      <${Select} label="Range" value=${preset} options=${rangeOptions} onChange=${chooseRange} />
      <${Field} label="From" type="date" value=${from} max=${to} onInput=${(value) => value && set("from")(value)} />
      <${Field} label="To" type="date" value=${to} min=${from} onInput=${(value) => value && set("to")(value)} />
      <${Select} label="App" value=${filters.app} options=${appOptions} onChange=${set("app")} />
      <${Select} label="Service" value=${filters.service} options=${[{ value: "", label: "All services" }, { value: "verify", label: "verify" }, { value: "inference", label: "inference" }]} onChange=${set("service")} />
    </div>
    ${["key", "model"].filter((name) => filters[name]).map((name) => html`<p class="chip" key=${name}>Only ${name} <strong>${names[name] ?? filters[name]}</strong> <${Button} small kind="quiet" onClick=${() => setQuery(route, { [name]: "" })}>Show all<span class="unseen"> ${name}s</span></${Button}></p>`)}
    <${Problem} error=${daily.error ?? grouped.error ?? apps.error} retry=${() => { daily.reload(); grouped.reload(); }} />
    ${!daily.data && daily.loading && html`<${Spinner} />`}
    ${daily.data && html`<${Totals} sums=${daily.data.totals} />`}
    ${daily.data && (daily.data.totals.attempts > 0
      ? html`<${DailyChart} report=${daily.data} from=${from} to=${to} measure=${measure} onMeasure=${set("show")} />`
      : html`<${Empty} title="No usage in this period" action=${html`<${Button} kind="primary" href="#/playground">Open the playground</${Button}>`} command=${'mk verify "The Eiffel Tower is in Paris."'}>Choose another range, or make a first request.</${Empty}>`)}
    ${daily.data?.totals.attempts > 0 && html`<div class="section-head breakdown-head">
        <h3>Breakdown</h3>
        <div class="inline-tools"><${Select} label="By" value=${by} options=${choices(DIMENSIONS)} onChange=${set("by")} /><${Button} busy=${busy} onClick=${csv}>Download CSV</${Button}></div>
      </div>
      <${Problem} error=${error} />
      ${shown.data?.by[0] === by ? html`<${Breakdown} report=${shown.data} by=${by} route=${route} />` : shown.loading && html`<${Spinner} />`}
      <${Or} command=${usage({ from, to, by, ...filters })}>on the command line</${Or}>`}
  </section>`;
}

/** The names behind the ids of the filters, also of what was deleted: `{app, key}`. Unknown without usage. */
function useNames({ app, key }, range) {
  const { data } = useGet(app || key ? withQuery("v1/usage", { ...range, by: "app,key", app, key }) : null);
  const rows = data?.data ?? [];
  const found = { app: rows.find((row) => row.app_id === app)?.app, key: rows.find((row) => row.key_id === key)?.key };
  // A range without usage knows no names; what they were does not change.
  const known = useRef(new Map());
  if (found.app) known.current.set(app, found.app);
  if (found.key) known.current.set(key, found.key);
  return { app: known.current.get(app), key: known.current.get(key) };
}

function Totals({ sums }) {
  const figure = (name, value, note) => html`<div class="figure card"><dt>${name}</dt><dd><span class="big">${value}</span><span class="muted">${note}</span></dd></div>`;
  return html`<dl class="figures">
    ${figure("Cost", sums.cost_usd === null ? "unknown" : money(sums.cost_usd), sums.unpriced_attempts > 0 ? `${plural(sums.unpriced_attempts, "call")} without a known price` : "all prices known")}
    ${figure("Requests", count(sums.requests), plural(sums.attempts, "model call"))}
    ${figure("Tokens", tokens(sums.total_tokens), `${tokens(sums.prompt_tokens)} in, ${tokens(sums.completion_tokens)} out`)}
    ${figure("Failed calls", count(sums.errors), sums.attempts > 0 ? `${percent((100 * sums.errors) / sums.attempts)} of model calls` : "")}
  </dl>`;
}

const SUMS = [
  { key: "requests", label: "Requests", number: true, render: (row) => count(row.requests) },
  { key: "attempts", label: "Model calls", number: true, render: (row) => count(row.attempts) },
  { key: "errors", label: "Failed", number: true, render: (row) => count(row.errors) },
  { key: "in", label: "Tokens in", number: true, render: (row) => count(row.prompt_tokens) },
  { key: "out", label: "Tokens out", number: true, render: (row) => count(row.completion_tokens) },
  { key: "cost", label: "Cost", number: true, render: cost },
];

function DailyChart({ report, from, to, measure, onMeasure }) {
  const { label, of, format } = MEASURES[measure];
  const rows = useMemo(() => {
    const byDay = new Map(report.data.map((row) => [row.day, row]));
    return days(report.from, report.to).map((date) => byDay.get(date) ?? { ...NOTHING, day: date });
  }, [report]);
  const dates = useMemo(() => rows.map((row) => row.day), [rows]);
  const values = useMemo(() => rows.map(of), [rows, measure]);
  const columns = [{ key: "day", label: "Day", main: true, render: (row) => day(row.day) }, ...SUMS];
  return html`<div class="card">
    <div class="section-head"><h3>${label} per day</h3><div class="inline-tools"><${Select} label="Show" value=${measure} options=${choices(MEASURES)} onChange=${onMeasure} /></div></div>
    <${DayChart} days=${dates} values=${values} format=${format} isWhole=${measure !== "cost"} height=${220} label=${`Chart of ${label.toLowerCase()} per day, ${day(from)} to ${day(to)}. The numbers are in the table below.`} />
    <details class="numbers"><summary>The numbers as a table</summary><${Table} caption="Usage per day" columns=${columns} rows=${rows} rowKey=${(row) => row.day} /></details>
  </div>`;
}

function Breakdown({ report, by, route }) {
  const total = report.totals.cost_usd ?? 0;
  const share = { key: "share", label: "Share of cost", class: "wide-cell", render: (row) => {
    if (row.cost_usd === null) return "unknown";
    const part = (100 * row.cost_usd) / total;
    return html`<span class="share"><span class="bar plain" aria-hidden="true"><span class="fill" style=${{ width: `${part}%` }}></span></span> ${percent(part)}</span>`;
  } };
  const names = useMemo(() => labels(report.data.map((row) => subject(row, by))), [report, by]);
  const first = { key: by, label: DIMENSIONS[by], main: true, render: (row) => html`<${Subject} id=${subject(row, by).id} names=${names} by=${by} route=${route} />` };
  const note = { model: "A request that asked several models counts once for each of them.", tag: "A request counts for each of its tags." }[by];
  return html`<div class="card flush"><${Table} caption=${`Usage by ${by}`} columns=${[first, ...SUMS, ...(by === "day" || total === 0 ? [] : [share])]} rows=${report.data} rowKey=${(row) => row.day ?? row.key_id ?? row.app_id ?? row.model ?? row.service ?? row.user ?? row.tag} /></div>${note && html`<p class="muted">${note}</p>`}`;
}

/** What a row is about; its id if it was deleted and has no name. */
function subject(row, by) {
  const id = { day: row.day, app: row.app_id, key: row.key_id, model: row.model, service: row.service, user: row.user, tag: row.tag }[by];
  return { id, name: { app: row.app, key: row.key, user: row.user || "nobody in particular" }[by] ?? id };
}

/** The name of what a row is about; clicking it shows only that. */
function Subject({ id, names, by, route }) {
  if (by === "day") return day(id);
  if (by === "user" || by === "tag") return names.get(id);
  const query = new URLSearchParams(route.query);
  query.set(by, id);
  query.set("by", by === "app" ? "key" : by === "model" ? "day" : "model");
  return html`<a href=${`#/usage?${query}`} title=${`Show only this ${by}`}>${names.get(id)}</a>`;
}
