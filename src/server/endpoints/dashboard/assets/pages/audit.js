// The audit log: who did what, when, to which object. Newest first.
import { html, useState } from "../lib/html.js";
import { usePages } from "../lib/data.js";
import { audit } from "../lib/commands.js";
import { dateTime, shortId } from "../lib/format.js";
import { setQuery } from "../lib/router.js";
import { Button, Empty, Field, Or, PageHead, Problem, Select, Spinner, Table, Time } from "../lib/ui.js";

const ACTIONS = {
  "app.created": "App created",
  "app.updated": "App changed",
  "app.deleted": "App deleted",
  "key.created": "Key created",
  "key.updated": "Key changed",
  "key.revoked": "Key revoked",
  "key.rotated": "Key rotated",
  "session.created": "Logged in",
  "session.ended": "Logged out",
  "session.refused": "Login refused",
  "console.set_up": "Server set up",
};
const CHANNELS = { api: "API", dashboard: "Dashboard", cli: "Command line", server: "Server" };

export default function Audit({ route }) {
  const filters = Object.fromEntries(["action", "object", "actor"].map((name) => [name, route.query.get(name) ?? ""]));
  const list = usePages("v1/audit", asked(filters));
  const isFiltered = Object.values(filters).some((value) => value !== "");
  const options = [{ value: "", label: "All actions" }, ...Object.entries(ACTIONS).map(([value, label]) => ({ value, label }))];
  const columns = [
    { key: "at", label: "When", render: (entry) => html`<${Time} at=${entry.at} />` },
    { key: "action", label: "What", main: true, render: (entry) => html`${ACTIONS[entry.action] ?? entry.action}<${Details} entry=${entry} />` },
    { key: "object", label: "Object", class: "name-cell", render: (entry) => html`<${Thing} id=${entry.object} name=${entry.object_name} route=${route} filter="object" />` },
    { key: "actor", label: "Who", class: "name-cell", render: (entry) => html`<${Who} entry=${entry} route=${route} />` },
    { key: "address", label: "From", render: (entry) => html`${CHANNELS[entry.channel] ?? entry.channel}${entry.address && html`<span class="sub"><code>${entry.address}</code></span>`}` },
  ];
  return html`<${PageHead} title="Audit" lead="Who changed what on this server. Entries cannot be edited." />
    <div class="filters">
      <${Select} label="Action" value=${filters.action} options=${options} onChange=${(action) => setQuery(route, { action })} />
      <${TextFilter} key=${`o${filters.object}`} label="Object" placeholder="a name or an id" value=${filters.object} onChange=${(object) => setQuery(route, { object })} />
      <${TextFilter} key=${`a${filters.actor}`} label="Who" placeholder="a name or an id" value=${filters.actor} onChange=${(actor) => setQuery(route, { actor })} />
      ${isFiltered && html`<${Button} kind="quiet" class="filter-button" onClick=${() => setQuery(route, { action: "", object: "", actor: "" })}>Clear filters</${Button}>`}
    </div>
    <${Problem} error=${list.error} retry=${list.reload} />
    ${!list.rows && list.loading && html`<${Spinner} />`}
    ${list.rows?.length === 0 && html`<${Empty} title=${isFiltered ? "No matching entries" : "Nothing yet"}>${isFiltered ? "Choose other filters." : "Created, changed and revoked objects will be listed here."}</${Empty}>`}
    ${list.rows?.length > 0 && html`<div class="card flush"><${Table} caption="Audit entries, newest first" columns=${columns} rows=${list.rows} /></div>`}
    ${list.hasMore && html`<p class="load-more"><${Button} busy=${list.loading} onClick=${list.more}>Load more</${Button}></p>`}
    ${list.rows && [filters.object, filters.actor].every((text) => text === "" || isId(text)) && html`<${Or} command=${audit(filters)}>on the command line</${Or}>`}`;
}

const isId = (text) => /^[a-z]+_[0-9a-f]{32}$/.test(text);

/** The parameters of the list: an id is looked for as it is, any other text within names. */
function asked({ action, object, actor }) {
  // As on the command line, an app's entries include those of its keys.
  const ofObject = !isId(object) ? "object_name" : object.startsWith("app_") ? "app" : "object";
  return { action, [ofObject]: object, [isId(actor) ? "actor" : "actor_name"]: actor };
}

/** Takes effect on blur or Enter, not with every letter. */
function TextFilter({ label, placeholder, value, onChange }) {
  const [text, setText] = useState(value);
  const apply = () => text.trim() !== value && onChange(text.trim());
  return html`<${Field} label=${label} placeholder=${placeholder} value=${text} onInput=${setText} onBlur=${apply} onKeyDown=${(event) => event.key === "Enter" && apply()} spellcheck=${false} autocomplete="off" />`;
}

function Who({ entry, route }) {
  if (entry.actor) return html`<${Thing} id=${entry.actor} name=${entry.actor_name} route=${route} filter="actor" />`;
  return entry.actor_name ?? html`<span class="muted">${entry.channel === "server" ? "the server itself" : entry.channel === "cli" ? "the operator" : "unknown"}</span>`;
}

/** A name with its id below; clicking it filters by it. */
function Thing({ id, name, route, filter }) {
  const query = new URLSearchParams(route.query);
  query.set(filter, id);
  return html`<a href=${`#/audit?${query}`} title=${`Show only ${id}`}>${name ?? html`<code>${shortId(id)}</code>`}</a>${name && html`<span class="sub"><code>${shortId(id)}</code></span>`}`;
}

function Details({ entry }) {
  const set = Object.entries(entry.details ?? {});
  return html`<details class="entry"><summary>Details</summary><dl>
    <dt>At</dt><dd>${dateTime(entry.at)}</dd>
    <dt>Object</dt><dd><code>${entry.object}</code></dd>
    ${entry.actor && html`<dt>Key</dt><dd><code>${entry.actor}</code></dd>`}
    <dt>Entry</dt><dd><code>${entry.id}</code></dd>
    ${entry.request_id && html`<dt>Request</dt><dd><code>${entry.request_id}</code></dd>`}
    ${set.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd><code>${typeof value === "string" ? value : JSON.stringify(value)}</code></dd>`)}
  </dl></details>`;
}
