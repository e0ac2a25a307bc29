// The fields of a key: as text in a form, and as the API takes them.
import { html, useRef } from "./html.js";
import { complaint } from "./data.js";
import { Field, Select } from "./ui.js";

const SERVICES = [
  { value: "verify", label: "verify: check facts" },
  { value: "inference", label: "inference: chat with models" },
  { value: "console", label: "console: manage this server" },
];

const EXPIRIES = [
  { value: "", label: "Never" },
  { value: "7", label: "In 7 days" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "date", label: "On a date…" },
];

const GUARDS = [
  { value: "", label: "As set for the server" },
  { value: "flag", label: "flag: add the verdicts" },
  { value: "block", label: "block: withhold what is false" },
];

/** A key's limits for each end user, in the API and with "user_" before them in the form. */
export const USER_LIMITS = ["per_minute", "per_day", "budget_usd_per_day", "budget_usd_per_month"];
const isBudget = (name) => name.startsWith("budget");

/** Whether a number is valid for one of these limits. */
export const isUserLimit = (name, number) => isAmount(number) && (isBudget(name) || Number.isInteger(number));

/** An empty form, or one with the values of a key. */
export function formOf(key, service = "verify") {
  return {
    service: key?.service ?? service,
    name: key?.name ?? "",
    expires: key?.expires_at ? "keep" : "",
    date: "",
    per_minute: key?.limits.per_minute?.toString() ?? "",
    per_day: key?.limits.per_day?.toString() ?? "",
    models: (key?.models ?? []).join("\n"),
    addresses: (key?.addresses ?? []).join("\n"),
    budget_usd: key?.budget_usd?.toString() ?? "",
    cache: key?.cache ?? "",
    verify: key?.verify ?? "",
    ...Object.fromEntries(USER_LIMITS.map((name) => [`user_${name}`, key?.end_users?.[name]?.toString() ?? ""])),
  };
}

const lines = (text) => text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean);
const number = (text) => (text.trim() === "" ? null : Number(text.trim().replace(/^\$/, "")));

/** Whether a text is a number of requests, or empty. */
export const isWhole = (text) => /^\d*$/.test(text.trim());

/** Whether a number is a valid amount in US dollars. */
export const isAmount = (number) => number >= 0 && number !== Infinity;

/** The errors of a form before it is sent, in the format of the API's errors; null if there are none. */
export function wrongWith(form) {
  for (const name of ["per_minute", "per_day"]) {
    if (!isWhole(form[name])) return { param: `limits.${name}`, message: "Enter a whole number of requests; 0 is unlimited." };
  }
  const budget = number(form.budget_usd);
  if (budget !== null && !isAmount(budget)) return { param: "budget_usd", message: "Enter an amount in US dollars, such as 50." };
  for (const name of USER_LIMITS) {
    const limit = number(form[`user_${name}`]);
    const what = isBudget(name) ? "an amount in US dollars, such as 0.50." : "a whole number of requests; 0 is unlimited.";
    if (limit !== null && !isUserLimit(name, limit)) return { param: `end_users.${name}`, message: `Enter ${what}` };
  }
  if (form.expires === "date" && !form.date) return { param: "expires_at", message: "Choose the day on which it expires." };
  return null;
}

/** The body for a new key: only the fields that were set. */
export function newKeyBody(form, now = Date.now()) {
  const all = { service: form.service, ...fields(form, now) };
  if (all.limits.per_minute === null && all.limits.per_day === null) delete all.limits;
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null && value?.length !== 0));
}

/** The body for a change: only the fields that differ from the key; null removes a value. */
export function changeBody(form, key, now = Date.now()) {
  const before = { ...fields(formOf(key), now), expires_at: key.expires_at };
  const after = fields(form, now);
  if (form.expires === "keep") after.expires_at = key.expires_at;
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
}

function fields(form, now) {
  return {
    name: form.name.trim() || null,
    expires_at: expiry(form, now),
    limits: { per_minute: number(form.per_minute), per_day: number(form.per_day) },
    models: lines(form.models),
    addresses: lines(form.addresses),
    budget_usd: number(form.budget_usd),
    ...(form.service === "inference" && { cache: form.cache.trim() || null, verify: form.verify || null, end_users: endUsers(form) }),
  };
}

function endUsers(form) {
  const limits = Object.fromEntries(USER_LIMITS.map((name) => [name, number(form[`user_${name}`])]));
  return Object.values(limits).some((limit) => limit !== null) ? limits : null;
}

function expiry({ expires, date }, now) {
  if (expires === "" || expires === "keep") return null;
  if (expires === "date") return `${date}T00:00:00.000Z`;
  return new Date(now + Number(expires) * 86_400_000).toISOString();
}

/** The inputs. `set(name)` gives the setter of a field; an existing key (`isNew` false) keeps its service. */
export function KeyFields({ form, set, error, isNew, firstRef, open = false, keptUntil }) {
  const expiries = keptUntil ? [{ value: "keep", label: `As it is: ${keptUntil}` }, ...EXPIRIES] : EXPIRIES;
  // Once opened because of an error, it stays open while that is being corrected.
  const isMore = useRef(open);
  isMore.current ||= ["limits", "models", "addresses", "budget_usd", "cache", "verify", "end_users"].some((name) => complaint(error, name));
  return html`
    ${isNew && html`<${Select} label="Service" inputRef=${firstRef} value=${form.service} onChange=${set("service")} options=${SERVICES} error=${complaint(error, "service")}
      hint=${form.service === "console" ? "Anyone with a console key can manage all apps and keys of this server." : undefined} />`}
    <${Field} label="Name" optional value=${form.name} onInput=${set("name")} inputRef=${isNew ? undefined : firstRef} error=${complaint(error, "name")} autocomplete="off" maxlength="100" hint="To remember what it is for." />
    <${Select} label="Expires" value=${form.expires} onChange=${set("expires")} options=${expiries} error=${form.expires === "date" ? undefined : complaint(error, "expires_at")} />
    ${form.expires === "date" && html`<${Field} label="Day" type="date" value=${form.date} onInput=${set("date")} error=${complaint(error, "expires_at")} hint="It expires at the start of this day (UTC)." />`}
    <details class="more" open=${isMore.current}>
      <summary>More options</summary>
      <div class="pair">
        <${Field} label="Requests per minute" optional inputmode="numeric" value=${form.per_minute} onInput=${set("per_minute")} error=${complaint(error, "limits.per_minute")} hint="Empty: the server's limit. 0: unlimited." />
        <${Field} label="Requests per day" optional inputmode="numeric" value=${form.per_day} onInput=${set("per_day")} error=${complaint(error, "limits.per_day")} hint="Counted by UTC day." />
      </div>
      <${Field} label="Monthly budget" optional prefix="$" inputmode="decimal" value=${form.budget_usd} onInput=${set("budget_usd")} error=${complaint(error, "budget_usd")} hint="Once it is used up, requests are refused until the next month (UTC)." />
      <${Field} label="Models" optional lines="2" value=${form.models} onInput=${set("models")} error=${complaint(error, "models")} spellcheck=${false} hint="One per line: provider/model, or provider/* for all of a provider. Empty: all." />
      <${Field} label="Addresses" optional lines="2" value=${form.addresses} onInput=${set("addresses")} error=${complaint(error, "addresses")} spellcheck=${false} hint="Networks it may be used from, one per line, such as 10.0.0.0/8. Empty: anywhere." />
      ${form.service === "inference" && html`<${AnswerFields} form=${form} set=${set} error=${error} />`}
    </details>`;
}

/** What only keys for inference have. */
function AnswerFields({ form, set, error }) {
  const limit = (name, label, hint) => html`<${Field} label=${label} optional prefix=${isBudget(name) ? "$" : undefined} inputmode=${isBudget(name) ? "decimal" : "numeric"}
    value=${form[`user_${name}`]} onInput=${set(`user_${name}`)} error=${complaint(error, `end_users.${name}`)} hint=${hint} />`;
  return html`
    <div class="pair">
      <${Field} label="Cache answers for" optional value=${form.cache} onInput=${set("cache")} error=${complaint(error, "cache")} hint="Such as 1h or 7d. Empty: not at all." />
      <${Select} label="Verify answers" value=${form.verify} onChange=${set("verify")} options=${GUARDS} error=${complaint(error, "verify")} hint="Each answer then costs a verification, too." />
    </div>
    <div class="pair">
      ${limit("per_minute", "Each end user, per minute", "Requests. Empty: the server's limit.")}
      ${limit("per_day", "Each end user, per day", "Requests. 0: unlimited.")}
    </div>
    <div class="pair">
      ${limit("budget_usd_per_day", "Each end user's budget per day", "Empty: the server's.")}
      ${limit("budget_usd_per_month", "Each end user's budget per month", "Requests name them as user.")}
    </div>`;
}
