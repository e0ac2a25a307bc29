import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [{ MAX_ANSWER, applyChunk, ask, costOf, messagesOf }, { shown, span }] = await load("playground/talk.js", "playground/text.js");

const delta = (content, finish_reason = null) => ({ model: "p/m", choices: [{ index: 0, delta: { content }, finish_reason }] });

test("chunks add up to an answer with its finish reason and its usage", () => {
  const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } };
  const exchange = [delta(""), delta("Hello "), delta("you"), delta(undefined, "length"), usage].reduce(applyChunk, ask("Hi", "p/asked"));
  assert.deepEqual([exchange.answer, exchange.finish, exchange.model, exchange.usage.total], ["Hello you", "length", "p/m", 5]);
});

test("unexpected chunks of any shape are ignored", () => {
  for (const chunk of [{}, { choices: 3 }, { choices: [null] }, { choices: [{ delta: 1 }] }, { choices: [{ delta: { content: {} } }] }, { usage: "x" }]) {
    assert.equal(applyChunk(ask("Hi", "p/m"), chunk).answer, "");
  }
});

test("an answer that would slow the page down is cut", () => {
  const exchange = applyChunk(applyChunk(ask("Hi", "p/m"), delta("x".repeat(MAX_ANSWER))), delta("yz"));
  assert.deepEqual([exchange.answer.length, exchange.isCut], [MAX_ANSWER, true]);
});

test("an answer that broke off is no part of the conversation", () => {
  const said = (phase, answer) => ({ ...ask("q", "p/m"), phase, answer });
  const all = [said("done", "yes"), said("failed", "ye"), said("stopped", "y"), said("done", "")];
  assert.deepEqual(messagesOf("be short", all, "next"), [
    { role: "system", content: "be short" }, { role: "user", content: "q" }, { role: "assistant", content: "yes" }, { role: "user", content: "next" },
  ]);
  assert.deepEqual(messagesOf(" ", [], "x"), [{ role: "user", content: "x" }]);
});

test("an unknown price gives no cost", () => {
  const usage = { prompt: 1_000_000, completion: 500_000 };
  assert.equal(costOf(usage, { input_usd_per_mtok: 2, output_usd_per_mtok: 8 }), 6);
  assert.equal(costOf(usage, { input_usd_per_mtok: 2 }), null);
  assert.equal(costOf(usage, undefined), null);
});

test("characters beyond the limit are counted, and none is cut in half", () => {
  assert.equal(shown("abc", 3), "abc");
  assert.equal(shown("ab🧀d", 3), "ab… (3 more characters)");
  assert.equal(shown(undefined), "");
});

test("durations are short", () => {
  assert.deepEqual([90, 2440, 59_960, 65_000].map(span), ["90 ms", "2.4 s", "1 m 00 s", "1 m 05 s"]);
});
