// Numbers, money and times as people read them. The page is in English whatever the browser's language, so its
// figures are too.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `3,120` */
export function count(number) {
  return WHOLE.format(number ?? 0);
}

/** `3.1K` */
export function compact(number) {
  return COMPACT.format(number ?? 0);
}

/** Tokens: exact if few, `1.2M` if many. */
export function tokens(number) {
  return (number ?? 0) < 100_000 ? count(number) : compact(number);
}

/** US dollars; tiny amounts keep their digits, and unknown ones are not shown as zero. */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "unknown";
  const size = Math.abs(dollars);
  if (size === 0 || size >= 0.1) return fixed(dollars, 2);
  if (size >= 0.01) return fixed(dollars, 4);
  if (size >= 0.000_001) return fixed(dollars, Math.min(9, 1 - Math.floor(Math.log10(size))));
  return "< $0.000001";
}

/** A budget as it was set: whole dollars without cents. */
export function budget(dollars) {
  return Number.isInteger(dollars) ? `$${WHOLE.format(dollars)}` : money(dollars);
}

/** The cost in totals: marked if prices are missing. */
export function cost(sums) {
  if (sums.cost_usd === null) return "unknown";
  return sums.unpriced_attempts > 0 ? `${money(sums.cost_usd)} + unknown` : money(sums.cost_usd);
}

/** What was spent, of which the server knows the known part alone: marked as in totals. */
export function spent(dollars, unpriced = 0) {
  return cost({ cost_usd: unpriced > 0 && dollars === 0 ? null : dollars, unpriced_attempts: unpriced });
}

function fixed(number, digits) {
  const sign = number < 0 ? "-" : "";
  const text = Math.abs(number).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${sign}$${text}`;
}

/** `12.5%`, `0.3%`, `100%` */
export function percent(number) {
  const digits = number >= 10 || Number.isInteger(number) ? 0 : 1;
  return `${number.toFixed(digits)}%`;
}

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const SHORT_MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });
const DATE_TIME = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

/** An instant's date in local time: `20 Nov 2026`. */
export function date(instant) {
  return instant ? DATE.format(new Date(instant)) : "never";
}

/** An instant in local time, with its zone. */
export function dateTime(instant) {
  return instant ? DATE_TIME.format(new Date(instant)) : "never";
}

/** A UTC day, `2026-11-20`, as `20 Nov 2026`; short without its year. */
export function day(text, short = false) {
  return (short ? SHORT_DAY : DAY).format(new Date(`${text}T00:00:00Z`));
}

/** A UTC month, `2026-11`, as `November 2026`, or short. */
export function month(text, short = false) {
  return (short ? SHORT_MONTH : MONTH).format(new Date(`${text}-01T00:00:00Z`));
}

const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** How long ago, or in how long: `3 hours ago`, `in 2 days`. */
export function ago(instant, now = Date.now()) {
  if (!instant) return "never";
  let amount = (new Date(instant).getTime() - now) / 1000;
  if (Math.abs(amount) < 45) return amount > 0 ? "in a moment" : "just now";
  for (const [unit, next] of STEPS) {
    if (Math.abs(amount) < next) return RELATIVE.format(Math.trunc(amount), unit).replace(".", "");
    amount /= next;
  }
  return date(instant);
}

/** Today in UTC, `2026-11-20`, or some days before. */
export function utcDay(daysBack = 0, now = Date.now()) {
  return new Date(now - daysBack * 86_400_000).toISOString().slice(0, 10);
}

/** All days from the first to the last, both included; `YYYY-MM-DD`. */
export function days(from, to) {
  const list = [];
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`); at += 86_400_000) {
    list.push(new Date(at).toISOString().slice(0, 10));
  }
  return list;
}

/** `1 key`, `3 keys` */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A server's message as a sentence; a name at its beginning (`sandbox/alpha is paused`) stays unchanged. */
export function sentence(text) {
  const first = /^\S*[/`_]/.test(text) ? text.charAt(0) : text.charAt(0).toUpperCase();
  return `${first}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

/** The part of a key that may be shown: `mk_verify_…a1B2`. */
export function keyText(key) {
  return `mk_${key.service}_…${key.last4}`;
}

/** The part of an id that distinguishes it: `key_…f3a802`. */
export function shortId(id) {
  return id.length > 14 ? `${id.slice(0, id.indexOf("_") + 1)}…${id.slice(-6)}` : id;
}

/** The labels of apps or keys (`{ id, name }`) in one table, by id: those that share a name also show their id. */
export function labels(things) {
  const ids = new Map();
  for (const { id, name } of things) ids.set(name, (ids.get(name) ?? new Set()).add(id));
  return new Map(things.map(({ id, name }) => [id, ids.get(name).size > 1 && name !== id ? `${name} ${shortId(id)}` : name]));
}
