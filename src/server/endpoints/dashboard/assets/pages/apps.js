// The list of apps.
import { html, useState } from "../lib/html.js";
import { AppForm, DeleteApp } from "../lib/app_dialogs.js";
import { Spent } from "../lib/budget.js";
import { usePages, useUnpriced } from "../lib/data.js";
import { count } from "../lib/format.js";
import { go } from "../lib/router.js";
import { Button, Empty, PageHead, Problem, Spinner, Table, Time } from "../lib/ui.js";

const NEWEST_FIRST = { order: "newest" };

export default function Apps() {
  const { rows, error, loading, hasMore, more, reload } = usePages("v1/apps", NEWEST_FIRST);
  const unpriced = useUnpriced();
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const columns = [
    { key: "name", label: "App", main: true, render: (app) => html`<a class="row-link" href=${`#/apps/${app.id}`}>${app.name}</a>` },
    { key: "keys", label: "Active keys", number: true, render: (app) => count(app.active_keys) },
    { key: "spent", label: "Spent this month", class: "wide-cell", render: (app) => html`<${Spent} spent=${app.spent_usd} of=${app.budget_usd} unpriced=${unpriced.get(app.id)} />` },
    { key: "created", label: "Created", render: (app) => html`<${Time} at=${app.created_at} absolute />` },
    { key: "do", label: "Actions", hideLabel: true, class: "row-actions", render: (app) => html`
      <${Button} small kind="quiet" onClick=${() => setDialog({ change: app })}>Change<span class="unseen"> ${app.name}</span></${Button}>
      <${Button} small kind="quiet" class="danger-text" onClick=${() => setDialog({ remove: app })}>Delete<span class="unseen"> ${app.name}</span></${Button}>` },
  ];
  const create = html`<${Button} kind="primary" onClick=${() => setDialog({ create: true })}>New app</${Button}>`;
  return html`<${PageHead} title="Apps & keys" lead="An app groups keys, their usage and a budget.">${rows?.length > 0 && create}</${PageHead}>
    <${Problem} error=${error} retry=${reload} />
    ${!rows && loading && html`<${Spinner} />`}
    ${rows?.length === 0 && html`<${Empty} title="No apps yet" action=${create} command="mk apps create NAME">Keys live in apps.</${Empty}>`}
    ${rows?.length > 0 && html`<div class="card flush"><${Table} caption="Apps" columns=${columns} rows=${rows} /></div>`}
    ${hasMore && html`<p class="load-more"><${Button} busy=${loading} onClick=${more}>Load more</${Button}></p>`}
    ${dialog?.create && html`<${AppForm} onClose=${close} onChanged=${(app) => go(`/apps/${app.id}`)} />`}
    ${dialog?.change && html`<${AppForm} app=${dialog.change} onClose=${close} onChanged=${reload} />`}
    ${dialog?.remove && html`<${DeleteApp} app=${dialog.remove} onClose=${close} onDeleted=${reload} />`}`;
}
