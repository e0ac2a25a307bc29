// What a form would send, as an `mk` command to paste into a shell.
//
// What must hold: the command requests what the form requests. It is built from the body that is sent; invalid fields
// are left out, as they are not sent either.
import { isAmount, isUserLimit, isWhole, newKeyBody, USER_LIMITS } from "./key_form.js";
import { flagged, quoted } from "../playground/command.js";

/** `mk keys create` in this app. A number of days stays relative, whenever the command is run. */
export function createKey(app, form) {
  const body = newKeyBody(form);
  const expires = form.expires === "date" ? form.date : form.expires && `${form.expires}d`;
  return mk("keys create", [
    ["service", body.service],
    ["app", named(app)],
    ["name", body.name],
    ["expires", expires],
    ["per-minute", isWhole(form.per_minute) ? body.limits?.per_minute : null],
    ["per-day", isWhole(form.per_day) ? body.limits?.per_day : null],
    ...(body.models ?? []).map((model) => ["model", model]),
    ...(body.addresses ?? []).map((address) => ["address", address]),
    ["budget-usd", amount(body)],
    ["cache", body.cache],
    ["verify", body.verify],
    ["end-users", userLimits(body)],
  ]);
}

/** `mk apps create` for the body of a new app. */
export function createApp(body) {
  const flags = [["budget-usd", amount(body)]];
  const name = body.name || "NAME";
  return name.startsWith("-") ? `${mk("apps create", flags)} -- ${quoted(name)}` : mk(`apps create ${quoted(name)}`, flags);
}

/** `mk apps update` for what changes; null if nothing does. */
export function updateApp(app, changes) {
  const flags = [["name", changes.name], ["budget-usd", amount(changes)]].filter(isSet);
  const rest = changes.budget_usd === null ? " --no-budget" : "";
  return flags.length > 0 || rest ? mk(`apps update ${quoted(named(app))}`, flags) + rest : null;
}

/** `mk apps delete`, which asks first. */
export function deleteApp(app) {
  return `mk apps delete ${quoted(named(app))}`;
}

/** `mk usage` for a report; `asked` as in its address. */
export function usage(asked) {
  return mk("usage", ["from", "to", "by", "app", "service", "key", "model"].map((name) => [name, asked[name]]));
}

/** `mk audit` for these filters, which are ids except for the action. */
export function audit({ action, object, actor }) {
  const flag = object?.startsWith("app_") ? "app" : "key";
  return mk("audit", [[flag, object], ["action", action], ["actor", actor]]);
}

/** An app as an argument: its id if its name could be taken for a flag. */
function named({ id, name }) {
  return name.startsWith("-") ? id : name;
}

/** A budget; null if it is empty or not an amount. */
function amount({ budget_usd: budget }) {
  return isAmount(budget) ? budget : null;
}

/** The limits for each end user as the flag takes them; null if there are none. */
function userLimits({ end_users: limits }) {
  const set = USER_LIMITS.filter((name) => isUserLimit(name, limits?.[name] ?? NaN));
  return set.length > 0 ? set.map((name) => `${name}=${limits[name]}`).join(",") : null;
}

function isSet([, value]) {
  return value !== undefined && value !== null && value !== "";
}

function mk(command, flags) {
  return ["mk", command, ...flags.filter(isSet).map(([name, value]) => flagged(`--${name}`, String(value)))].join(" ");
}
