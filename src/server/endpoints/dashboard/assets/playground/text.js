// Untrusted values on their way to the page: always of the right type, never longer than anybody reads.

/** The most characters of one text that the page shows. */
const MAX_SHOWN = 4000;

/** A string; anything else becomes empty. */
export function text(value) {
  return typeof value === "string" ? value : "";
}

/** A finite number that is not negative; anything else becomes `null`. */
export function number(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/** An array, cut to its first `max` elements; anything else becomes empty. */
export function list(value, max) {
  return Array.isArray(value) ? value.slice(0, max) : [];
}

/** Text as it is shown: characters beyond the limit are counted instead, and no character is cut in half. */
export function shown(value, max = MAX_SHOWN) {
  const whole = text(value);
  if (whole.length <= max) return whole;
  const head = whole.slice(0, max).replace(/[\uD800-\uDBFF]$/, "");
  return `${head}… (${(whole.length - head.length).toLocaleString("en-US")} more characters)`;
}

/** `90 ms`, `2.4 s`, `1 m 05 s` */
export function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
}
