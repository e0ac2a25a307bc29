// Creating, changing and deleting an app.
import { html, useRef, useState } from "./html.js";
import { api } from "./api.js";
import * as commands from "./commands.js";
import { complaint, useAction } from "./data.js";
import { plural } from "./format.js";
import { isAmount } from "./key_form.js";
import { Button, Dialog, Field, notify, Or, Problem } from "./ui.js";

/** Creates an app, or with `app` changes its name or budget. `onChanged` gets the new record. */
export function AppForm({ app, focusBudget = false, onClose, onChanged }) {
  const [name, setName] = useState(app?.name ?? "");
  const [budget, setBudget] = useState(app?.budget_usd?.toString() ?? "");
  const [wrong, setWrong] = useState(null);
  const first = useRef(null);
  const amount = budget.trim() === "" ? null : Number(budget.trim().replace(/^\$/, ""));
  const whole = { name: name.trim(), budget_usd: amount };
  if (!app && amount === null) delete whole.budget_usd;
  const body = app ? changes(app, whole) : whole;
  const [save, { busy, error }] = useAction(async () => {
    const found = wrongWith(name, amount);
    setWrong(found);
    if (found) return;
    const saved = app ? await api.patch(`v1/apps/${app.id}`, body) : await api.post("v1/apps", body);
    notify(app ? "App saved." : `App ${saved.name} created.`);
    onChanged(saved);
    onClose();
  });
  const shown = wrong ?? error;
  const isGeneral = shown && !complaint(shown, "name", "budget_usd");
  const taken = isGeneral && shown.status === 409 ? shown.message : undefined;
  const actions = html`<${Button} onClick=${onClose}>Cancel</${Button}><${Button} kind="primary" type="submit" busy=${busy}>${app ? "Save" : "Create app"}</${Button}>`;
  const command = app ? commands.updateApp(app, body) : commands.createApp(body);
  return html`<${Dialog} title=${app ? `Change ${app.name}` : "New app"} onClose=${onClose} initialFocus=${first} onSubmit=${save} actions=${actions}>
    ${isGeneral && !taken && html`<${Problem} error=${shown} />`}
    <${Field} label="Name" value=${name} onInput=${setName} inputRef=${focusBudget ? undefined : first} error=${complaint(shown, "name") ?? taken} autocomplete="off" maxlength="64" />
    <${Field} label="Monthly budget" optional prefix="$" inputmode="decimal" value=${budget} onInput=${setBudget} inputRef=${focusBudget ? first : undefined} error=${complaint(shown, "budget_usd")}
      hint="For all its keys together. Once it is used up, requests are refused with 402 until the next month (UTC)." />
    ${command && html`<${Or} command=${command} />`}
  </${Dialog}>`;
}

function wrongWith(name, amount) {
  if (!name.trim()) return { param: "name", message: "Enter a name." };
  if (amount !== null && !isAmount(amount)) return { param: "budget_usd", message: "Enter an amount in US dollars, such as 50." };
  return null;
}

function changes(app, body) {
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== app[name]));
}

export function DeleteApp({ app, onClose, onDeleted }) {
  const [typed, setTyped] = useState("");
  const safe = useRef(null);
  const isSure = app.active_keys === 0 || typed.trim() === app.name;
  const [remove, { busy, error }] = useAction(async () => {
    if (!isSure) return;
    const { revoked_keys: revoked } = await api.del(`v1/apps/${app.id}`);
    notify(`Deleted: ${app.name}, with ${plural(Array.isArray(revoked) ? revoked.length : revoked ?? 0, "key")}`);
    onDeleted();
    onClose();
  });
  const actions = html`<${Button} onClick=${onClose} buttonRef=${safe}>Keep the app</${Button}><${Button} kind="danger" type="submit" busy=${busy} disabled=${!isSure}>Delete app</${Button}>`;
  return html`<${Dialog} title=${`Delete ${app.name}?`} onClose=${onClose} initialFocus=${safe} onSubmit=${remove} actions=${actions}>
    <p>${app.active_keys > 0 ? html`<strong>${plural(app.active_keys, "active key")}</strong> will be revoked: requests with them are then refused with 401. ` : "It has no active keys. "}
      Its usage stays in the reports. <strong>This cannot be undone.</strong></p>
    <${Problem} error=${error} />
    ${app.active_keys > 0 && html`<${Field} label=${`Type “${app.name}” to confirm`} value=${typed} onInput=${setTyped} autocomplete="off" spellcheck=${false} />`}
    <${Or} command=${commands.deleteApp(app)} />
  </${Dialog}>`;
}
