import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { load } from "./modules.mjs";

const [{ curl, mkChat, mkVerify, quoted }] = await load("playground/command.js");

const BASE = "http://127.0.0.1:8080/mk";
const NASTY = [
  "plain", "", "two words", "it's", "'", "''", "$(touch /tmp/x) `id` $HOME", 'say "hi"', "back\\slash \\n", "line\nend\n", "tab\tbell\u0007esc\u001b[201~\u0003", "!history !!",
  "ctrl\u0001 it's !x \\ $Y", "\u0085\u009b31m", "日本 🧀 é", "*?[a]{b,c}~#;&|<>()", "-n", "--help", "a=b", "~", "%s\\n%d", "\r\n", "a\u202Eb\u2066c\u2028d",
];

const folder = mkdtempSync(join(tmpdir(), "mk-web-"));
after(() => rmSync(folder, { recursive: true }));

/** The arguments and the standard input that a shell passes on for `text`, reported by stand-ins for the programs. */
function run(text) {
  const tell = `() { node -e 'console.log(JSON.stringify({args: process.argv.slice(1), input: process.env.PIPED ? require("fs").readFileSync(0, "utf8") : ""}))' -- "$@"; }\n`;
  const script = `curl ${tell}mk ${tell}${text}`;
  const env = { ...process.env, LC_ALL: "C.UTF-8", MK_API_KEY: "KEY", PIPED: text.startsWith("printf") ? "1" : "" };
  const file = join(folder, "script");
  writeFileSync(file, script);
  return JSON.parse(execFileSync("bash", [file], { env, encoding: "utf8" }));
}

test("a quoted text is one word with exactly that text", () => {
  const words = NASTY.map(quoted).join(" ");
  const program = "console.log(JSON.stringify(process.argv.slice(1)))";
  const out = execFileSync("bash", ["-c", `node -e '${program}' -- ${words}`], { env: { ...process.env, LC_ALL: "C.UTF-8" }, encoding: "utf8" });
  assert.deepEqual(JSON.parse(out), NASTY);
});

test("no command contains a character that acts on a terminal, except line ends", () => {
  for (const fact of NASTY) {
    for (const command of [curl(BASE, "verify/v1/stream", { fact }), mkVerify(BASE, { fact })]) {
      assert.doesNotMatch(command, /(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
    }
  }
});

test("curl sends the same body as the page", () => {
  for (const fact of NASTY) {
    const { args } = run(curl(BASE, "verify/v1/stream", { fact, explain: true }));
    assert.equal(args[1], `${BASE}/verify/v1/stream`);
    assert.ok(args.includes("Authorization: Bearer KEY"));
    assert.deepEqual(JSON.parse(args[args.indexOf("-d") + 1]), { fact, explain: true });
  }
});

test("a text that is too long for an argument goes through a pipe", () => {
  const body = { fact: "x", context: "it's\n".repeat(40_000) };
  const posted = run(curl(BASE, "verify/v1/stream", body));
  assert.ok(posted.args.includes("@-"));
  assert.deepEqual(JSON.parse(posted.input), body);
  const asked = run(mkChat(BASE, { model: "p/m", messages: [{ role: "user", content: body.context }] }));
  assert.equal(asked.args.at(-1), "-");
  assert.equal(asked.input, body.context);
});

test("mk verify gets every option that differs from the default", () => {
  const body = { fact: "A.", domain: "legal", minRequired: 3, totalModels: 5, asOf: "2026-01-02", explain: true, context: "it's so\n" };
  const { args, input } = run(mkVerify(BASE, body));
  assert.deepEqual(args, [
    "verify", "--server", BASE, "--domain", "legal", "--min-required", "3", "--total-models", "5", "--as-of", "2026-01-02", "--explain", "--context", "/dev/stdin", "A.",
  ]);
  assert.equal(input, "it's so\n");
});

test("mk gets the text as text, whatever it starts with", () => {
  for (const fact of NASTY) {
    const { args } = run(mkVerify(BASE, { fact }));
    assert.deepEqual(args, ["verify", "--server", BASE, ...(fact.startsWith("-") ? ["--"] : []), fact]);
  }
  const dash = run(mkVerify(BASE, { fact: "-" }));
  assert.deepEqual([dash.args.at(-1), dash.input], ["-", "-"]);
});

test("mk chat gets the last message, the system prompt and the numbers", () => {
  const messages = [
    { role: "system", content: "-terse" }, { role: "user", content: "one" }, { role: "assistant", content: "two" }, { role: "user", content: "three?" },
  ];
  const { args } = run(mkChat(BASE, { model: "p/a b", messages, temperature: 0, max_tokens: 7 }));
  assert.deepEqual(args, ["chat", "--server", BASE, "-m", "p/a b", "--system=-terse", "--temperature", "0", "--max-tokens", "7", "three?"]);
});
