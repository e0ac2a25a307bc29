// The same request as an `mk` command and as curl, to paste into a shell.
//
// What must hold: pasted unchanged, the command sends what the page would send. Text is quoted so that the shell
// expands nothing. Control characters are written as escapes, because a terminal acts on them while they are pasted,
// and so are those that change the direction of text, because a command must be what it looks like. The quoting for
// that, $'…', is supported by bash, zsh and every shell that follows POSIX 2024; everything else is quoted plainly.

/** Above this many bytes a text no longer fits into one argument (Linux: 128 KiB) and goes through a pipe. */
const MAX_ARGUMENT = 100_000;

const CONTROL = /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/u;

/** Text as one word of a shell's command line. */
export function quoted(value) {
  // No argument can contain NUL, and half a surrogate pair is not valid text.
  const clean = String(value).replaceAll("\0", "").replace(/[\uD800-\uDFFF]/gu, "\uFFFD");
  if (CONTROL.test(clean)) return `$'${[...clean].map(escaped).join("")}'`;
  return /^[A-Za-z0-9_@%+:,./-]+$/.test(clean) ? clean : `'${clean.replaceAll("'", `'\\''`)}'`;
}

function escaped(char) {
  if (char === "\n") return "\\n";
  if (char === "\\") return "\\\\";
  const isPlain = char !== "'" && char !== "!" && !CONTROL.test(char);
  return isPlain ? char : `\\u${hex(char)}`;
}

function hex(char) {
  return char.codePointAt(0).toString(16).padStart(4, "0");
}

/** JSON on one line, with all control characters escaped. */
function json(body) {
  return JSON.stringify(body).replace(new RegExp(CONTROL, "gu"), (char) => `\\u${hex(char)}`);
}

function isLong(value) {
  return new TextEncoder().encode(value).length > MAX_ARGUMENT;
}

/** `curl` for a POST of this body to `path`, below the server's address. */
export function curl(base, path, body) {
  const data = json(body);
  const isPiped = isLong(data);
  const lines = [
    `curl -N ${quoted(`${base}/${path}`)}`,
    `-H "Authorization: Bearer $MK_API_KEY"`,
    `-H 'Content-Type: application/json'`,
    isPiped ? "--data-binary @-" : `-d '${data.replaceAll("'", `'\\''`)}'`,
  ];
  return `${isPiped ? `printf %s ${quoted(data)} | ` : ""}${lines.join(" \\\n  ")}`;
}

/** `mk verify` for a body of `POST /verify/v1/stream`. */
export function mkVerify(base, body) {
  const flags = [
    body.domain && ["--domain", body.domain],
    body.minRequired && ["--min-required", String(body.minRequired)],
    body.totalModels && ["--total-models", String(body.totalModels)],
    body.asOf && ["--as-of", body.asOf],
    body.explain && ["--explain"],
    // mk reads a context from a file; standard input needs no file to be created.
    body.context && ["--context", "/dev/stdin"],
  ];
  return mk("verify", base, flags, body.fact, body.context);
}

/** `mk chat` for a body of `POST /inference/v1/chat/completions`, with its last message alone. */
export function mkChat(base, body) {
  const system = body.messages.find(({ role }) => role === "system");
  const flags = [
    ["-m", body.model],
    system && ["--system", system.content],
    body.temperature !== undefined && ["--temperature", String(body.temperature)],
    body.max_tokens !== undefined && ["--max-tokens", String(body.max_tokens)],
  ];
  return mk("chat", base, flags, body.messages.at(-1)?.content ?? "");
}

function mk(command, base, flags, text, input) {
  const lines = [`mk ${command} --server ${quoted(base)}`];
  for (const [flag, value] of flags.filter(Boolean)) lines.push(flagged(flag, value));
  // `-` would read standard input, which is then this text as well.
  const isPiped = input === undefined && (text === "-" || isLong(text));
  if (isPiped) lines.push("-");
  else lines.push(text.startsWith("-") ? `-- ${quoted(text)}` : quoted(text));
  const piped = isPiped ? text : input;
  return `${piped === undefined ? "" : `printf %s ${quoted(piped)} | `}${lines.join(" \\\n  ")}`;
}

/** A flag with its value, as one word if the value could be taken for another flag. */
export function flagged(flag, value) {
  if (value === undefined) return flag;
  return value.startsWith("-") ? `${flag}=${quoted(value)}` : `${flag} ${quoted(value)}`;
}
