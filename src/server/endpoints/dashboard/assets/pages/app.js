// One app and its keys.
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { AppForm, DeleteApp } from "../lib/app_dialogs.js";
import { Spent } from "../lib/budget.js";
import { createKey } from "../lib/commands.js";
import { useGet, usePages, useUnpriced } from "../lib/data.js";
import { keyText, plural, shortId } from "../lib/format.js";
import { CreateKey, EditKey, RevokeKey, RotateKey } from "../lib/key_dialogs.js";
import { formOf } from "../lib/key_form.js";
import { go, setQuery } from "../lib/router.js";
import { Button, Empty, PageHead, Problem, rescueFocus, Select, Spinner, Table, Time } from "../lib/ui.js";

const BACK = { href: "#/apps", label: "Apps & keys" };
const SERVICES = [["", "All services"], ["verify", "verify"], ["inference", "inference"], ["console", "console"]];
const STATES = [["", "All states"], ["active", "Active"], ["expired", "Expired"], ["revoked", "Revoked"]];
const choices = (pairs) => pairs.map(([value, label]) => ({ value, label }));

export default function AppPage({ route, session }) {
  const id = route.parts[1];
  const address = `v1/apps/${encodeURIComponent(id)}`;
  const app = useGet(address);
  const unpriced = useUnpriced(id);
  const filters = { service: route.query.get("service") ?? "", state: route.query.get("state") ?? "" };
  const keys = usePages(`${address}/keys`, { ...filters, order: "newest" });
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const changed = () => {
    app.reload();
    keys.reload();
  };

  // A revoked key has no buttons.
  const isLoaded = useRef(false);
  useEffect(() => {
    if (isLoaded.current) rescueFocus();
    isLoaded.current = keys.rows !== null;
  }, [keys.rows]);

  // A link may open a dialog; once it is open, the address no longer says so.
  useEffect(() => {
    if (!app.data) return;
    if (route.query.has("new")) setDialog({ create: true, service: route.query.get("new") });
    else if (route.query.has("budget")) setDialog({ change: true });
    else return;
    go(route.path, { replace: true });
  }, [app.data, route]);

  if (app.error && !app.data) {
    const isGone = app.error.status === 404;
    return html`<${PageHead} title=${isGone ? "No such app" : "App"} back=${BACK} lead=${isGone ? "It was deleted, or the link is wrong." : undefined} />
      ${!isGone && html`<${Problem} error=${app.error} retry=${app.reload} />`}`;
  }
  if (!app.data) return html`<${PageHead} title="App" back=${BACK} /><${Spinner} />`;

  const isFiltered = filters.service !== "" || filters.state !== "";
  const hasRows = keys.rows?.length > 0;
  const create = html`<${Button} kind="primary" onClick=${() => setDialog({ create: true })}>New key</${Button}>`;
  return html`<${PageHead} title=${app.data.name} back=${BACK}>
      <${Button} href=${`#/usage?app=${app.data.id}`}>Usage</${Button}>
      <${Button} onClick=${() => setDialog({ change: true })}>Name and budget</${Button}>
      <${Button} kind="danger-quiet" onClick=${() => setDialog({ remove: true })}>Delete app</${Button}>
    </${PageHead}>
    <dl class="facts">
      <div><dt>Spent this month</dt><dd><${Spent} spent=${app.data.spent_usd} of=${app.data.budget_usd} unpriced=${unpriced.get(id)} />${app.data.budget_usd === null && html` <span class="muted">no budget</span>`}</dd></div>
      <div><dt>Keys</dt><dd>${plural(app.data.active_keys, "active key")}</dd></div>
      <div><dt>Created</dt><dd><${Time} at=${app.data.created_at} absolute /></dd></div>
      <div><dt>Id</dt><dd><code>${app.data.id}</code></dd></div>
    </dl>
    <section aria-labelledby="keys">
      <div class="section-head"><h2 id="keys">Keys</h2>${(hasRows || isFiltered) && create}</div>
      ${(hasRows || isFiltered) && html`<div class="filters">
        <${Select} label="Service" value=${filters.service} options=${choices(SERVICES)} onChange=${(service) => setQuery(route, { service })} />
        <${Select} label="State" value=${filters.state} options=${choices(STATES)} onChange=${(state) => setQuery(route, { state })} />
      </div>`}
      <${Problem} error=${keys.error} retry=${keys.reload} />
      <${Keys} keys=${keys} app=${app.data} isFiltered=${isFiltered} create=${create} setDialog=${setDialog} />
    </section>
    ${dialog?.create && html`<${CreateKey} app=${app.data} service=${known(dialog.service)} onClose=${close} onChanged=${changed} />`}
    ${dialog?.edit && html`<${EditKey} record=${dialog.edit} onClose=${close} onChanged=${changed} />`}
    ${dialog?.rotate && html`<${RotateKey} record=${dialog.rotate} onClose=${close} onChanged=${changed} />`}
    ${dialog?.revoke && html`<${RevokeKey} record=${dialog.revoke} isOwn=${dialog.revoke.id === session.key.id} onClose=${close} onChanged=${changed} />`}
    ${dialog?.change && html`<${AppForm} app=${app.data} focusBudget onClose=${close} onChanged=${changed} />`}
    ${dialog?.remove && html`<${DeleteApp} app=${app.data} onClose=${close} onDeleted=${() => go("/apps")} />`}`;
}

/** If the expiry is not near, its date says more than the time until then. */
const isFar = (instant) => Date.parse(instant) - Date.now() > 7 * 86_400_000;

const known = (service) => (["verify", "inference", "console"].includes(service) ? service : undefined);

function Keys({ keys, app, isFiltered, create, setDialog }) {
  if (!keys.rows) return keys.loading && html`<${Spinner} />`;
  if (keys.rows.length === 0) {
    return isFiltered
      ? html`<${Empty} title="No matching keys">Choose other filters.</${Empty}>`
      : html`<${Empty} title="No keys yet" action=${create} command=${createKey(app, formOf(null))}>Programs call the server with a key.</${Empty}>`;
  }
  const columns = [
    { key: "key", label: "Key", main: true, render: (key) => html`<span class="key-name">${key.name ?? html`<span class="muted">No name</span>`}</span><code class="key-text">${keyText(key)}</code><${Rotated} record=${key} keys=${keys.rows} /><${Restrictions} record=${key} />` },
    { key: "service", label: "Service" },
    { key: "state", label: "State", render: (key) => html`<${State} record=${key} />` },
    { key: "used", label: "Last used", render: (key) => html`<${Time} at=${key.last_used_at} />` },
    { key: "expires", label: "Expires", render: (key) => html`<${Time} at=${key.expires_at} absolute=${isFar(key.expires_at)} />` },
    { key: "created", label: "Created", render: (key) => html`<${Time} at=${key.created_at} absolute />` },
    { key: "do", label: "Actions", hideLabel: true, class: "row-actions", render: (key) => html`<${Actions} record=${key} setDialog=${setDialog} />` },
  ];
  return html`<div class="card flush"><${Table} caption=${`Keys of ${app.name}`} columns=${columns} rows=${keys.rows} /></div>
    ${keys.hasMore && html`<p class="load-more"><${Button} busy=${keys.loading} onClick=${keys.more}>Load more</${Button}></p>`}`;
}

function State({ record }) {
  const words = { active: "Active", expired: "Expired", revoked: "Revoked" };
  return html`<span class=${`tag state-${record.state}`} title=${record.revoked_at ?? undefined}>${words[record.state]}</span>`;
}

/** What tells a key from the one that took its place, or whose place it took. */
function Rotated({ record, keys }) {
  const heir = keys.find(({ id }) => id === record.replaced_by);
  const old = keys.find(({ replaced_by: by }) => by === record.id);
  const named = (key) => html`<code>…${key.last4}</code>`;
  return html`
    ${record.replaced_by && html`<span class="sub">Replaced by ${heir ? named(heir) : html`<code>${shortId(record.replaced_by)}</code>`}${record.state === "active" && html`, works until <${Time} at=${record.expires_at} exact />`}</span>`}
    ${old && html`<span class="sub">Replaces ${named(old)}</span>`}`;
}

function Restrictions({ record }) {
  const { per_minute: minute, per_day: daily } = record.limits;
  const limit = (number, unit) => number !== null && (number === 0 ? `unlimited per ${unit}` : `${number} per ${unit}`);
  const parts = [
    limit(minute, "minute"),
    limit(daily, "day"),
    record.models.length > 0 && `models: ${record.models.join(", ")}`,
    record.addresses.length > 0 && `from ${record.addresses.join(", ")}`,
    record.cache && `answers cached for ${record.cache}`,
    record.verify && `answers verified (${record.verify})`,
    record.end_users && "own limits for end users",
  ].filter(Boolean);
  if (parts.length === 0 && record.budget_usd === null) return null;
  return html`<span class="restrictions">${record.budget_usd !== null && html`<${Spent} spent=${record.spent_usd} of=${record.budget_usd} />`}${parts.length > 0 && html`<span>${parts.join(" · ")}</span>`}</span>`;
}

function Actions({ record, setDialog }) {
  if (record.state === "revoked") return null;
  const named = html`<span class="unseen"> ${record.name ?? keyText(record)}</span>`;
  return html`<${Button} small kind="quiet" onClick=${() => setDialog({ edit: record })}>Change${named}</${Button}>
    <${Button} small kind="quiet" onClick=${() => setDialog({ rotate: record })}>Rotate${named}</${Button}>
    <${Button} small kind="quiet" class="danger-text" onClick=${() => setDialog({ revoke: record })}>Revoke${named}</${Button}>`;
}
