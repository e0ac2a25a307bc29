// Creating, changing, rotating and revoking a key.
import { html, useRef, useState } from "./html.js";
import { api } from "./api.js";
import * as commands from "./commands.js";
import { complaint, useAction } from "./data.js";
import { ago, date, dateTime, keyText } from "./format.js";
import { changeBody, formOf, KeyFields, newKeyBody, wrongWith } from "./key_form.js";
import { KeyOnce } from "./key_once.js";
import { Button, Dialog, notify, Or, Problem, Select } from "./ui.js";

/** An error that belongs to no field. */
const general = (error, ...fields) => (error && !complaint(error, ...fields) ? error : null);
const FIELDS = ["service", "name", "expires_at", "limits", "models", "addresses", "budget_usd", "cache", "verify", "end_users"];

/** A key's form, its setters, and `submit`, which calls `send` if the form is valid. A change clears the errors. */
function useForm(initial, send) {
  const [form, setForm] = useState(initial);
  const [wrong, setWrong] = useState(null);
  const [submit, { busy, error, clear }] = useAction(async () => {
    const found = wrongWith(form);
    setWrong(found);
    if (!found) await send(form);
  });
  const set = (name) => (value) => {
    setForm((old) => ({ ...old, [name]: value }));
    setWrong(null);
    clear();
  };
  return { form, set, submit, busy, error: wrong ?? error };
}

/** `onClose` closes it; `onChanged` is called as soon as there is a new key. */
export function CreateKey({ app, service, onClose, onChanged }) {
  const [created, setCreated] = useState(null);
  const first = useRef(null);
  const { form, set, submit, busy, error } = useForm(() => formOf(null, service), async (filled) => {
    setCreated(await api.post(`v1/apps/${app.id}/keys`, newKeyBody(filled)));
    onChanged();
  });
  if (created) {
    const note = html`Programs send it in the header <code>Authorization: Bearer …</code>; <code>mk</code> reads it from <code>MK_API_KEY</code>.`;
    return html`<${KeyOnce} created=${created} note=${note} onDone=${() => { setCreated(null); onClose(); }} />`;
  }
  const actions = html`<${Button} onClick=${onClose}>Cancel</${Button}><${Button} kind="primary" type="submit" busy=${busy}>Create key</${Button}>`;
  return html`<${Dialog} title=${`New key in ${app.name}`} onClose=${onClose} initialFocus=${first} onSubmit=${submit} actions=${actions}>
    <${Problem} error=${general(error, ...FIELDS)} />
    <${KeyFields} form=${form} set=${set} error=${error} isNew firstRef=${first} />
    <${Or} command=${commands.createKey(app, form)} />
  </${Dialog}>`;
}

export function EditKey({ record, onClose, onChanged }) {
  const first = useRef(null);
  const { form, set, submit, busy, error } = useForm(() => formOf(record), async (filled) => {
    const body = changeBody(filled, record);
    if (Object.keys(body).length > 0) {
      await api.patch(`v1/apps/${record.app_id}/keys/${record.id}`, body);
      onChanged();
      notify("Key saved.");
    }
    onClose();
  });
  const actions = html`<${Button} onClick=${onClose}>Cancel</${Button}><${Button} kind="primary" type="submit" busy=${busy}>Save</${Button}>`;
  return html`<${Dialog} title="Change key" onClose=${onClose} initialFocus=${first} onSubmit=${submit} actions=${actions}>
    <p class="muted"><code>${keyText(record)}</code></p>
    <${Problem} error=${general(error, ...FIELDS)} />
    <${KeyFields} form=${form} set=${set} error=${error} firstRef=${first} open keptUntil=${record.expires_at && date(record.expires_at)} />
  </${Dialog}>`;
}

const GRACES = [
  { value: "0", label: "No time: it stops at once" },
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "24 hours" },
  { value: "604800", label: "7 days" },
];

export function RotateKey({ record, onClose, onChanged }) {
  const [grace, setGrace] = useState("86400");
  const [created, setCreated] = useState(null);
  const safe = useRef(null);
  const [rotate, { busy, error }] = useAction(async () => {
    setCreated(await api.post(`v1/apps/${record.app_id}/keys/${record.id}/rotate`, { grace_seconds: Number(grace) }));
    onChanged();
  });
  if (created) {
    const end = GRACES.find(({ value }) => value === grace).label;
    const note = grace === "0" ? "The old key has stopped working." : `The old key keeps working for ${end}.`;
    return html`<${KeyOnce} created=${created} title="The new key" note=${note} onDone=${() => { setCreated(null); onClose(); }} />`;
  }
  const actions = html`<${Button} onClick=${onClose} buttonRef=${safe}>Cancel</${Button}><${Button} kind="primary" type="submit" busy=${busy}>Rotate key</${Button}>`;
  return html`<${Dialog} title=${`Rotate ${record.name ?? "key"}?`} onClose=${onClose} initialFocus=${safe} onSubmit=${rotate} actions=${actions}>
    <p>A new key replaces <code>${keyText(record)}</code>, with the same name, limits and budget.</p>
    <${Problem} error=${error} />
    <${Select} label="The old key keeps working for" value=${grace} onChange=${setGrace} options=${GRACES} hint="Use this time to switch to the new key." />
    <${Or} command=${`mk keys rotate ${record.id} --grace ${Number(grace) / 3600}h`} />
  </${Dialog}>`;
}

export function RevokeKey({ record, isOwn, onClose, onChanged }) {
  const safe = useRef(null);
  const [revoke, { busy, error }] = useAction(async () => {
    await api.del(`v1/apps/${record.app_id}/keys/${record.id}`);
    onChanged();
    notify(`Revoked: ${record.name ?? keyText(record)}`);
    onClose();
  });
  const actions = html`<${Button} onClick=${onClose} buttonRef=${safe}>Keep the key</${Button}><${Button} kind="danger" type="submit" busy=${busy}>Revoke key</${Button}>`;
  const used = record.last_used_at ? html`It was last used <strong title=${dateTime(record.last_used_at)}>${ago(record.last_used_at)}</strong>.` : "It has never been used.";
  return html`<${Dialog} title=${`Revoke ${record.name ?? "this key"}?`} onClose=${onClose} initialFocus=${safe} onSubmit=${revoke} actions=${actions}>
    <p><code>${keyText(record)}</code> of the app <strong>${record.app}</strong>. ${used}</p>
    <p>Every request with it is then refused with 401, and its running streams end. <strong>This cannot be undone.</strong></p>
    ${isOwn && html`<p><strong>You are logged in with this key:</strong> revoking it logs you out, here and everywhere.</p>`}
    <${Problem} error=${error} />
    <${Or} command=${`mk keys revoke ${record.id}`} />
  </${Dialog}>`;
}
