// The `@anthropic-ai/sdk` package for Node at the door `/anthropic`. Run by test_node.py, which says in the environment
// where the server is; the models are scripts of provider.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";

const { MK_ADDRESS, MK_KEY } = process.env;
const TEXT = "Hello, wörld \u2713";
const asked = { model: "fake/whole", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] };
const tools = [{ name: "weather", input_schema: { type: "object" } }];

const client = (apiKey = MK_KEY, maxRetries = 0) =>
  new Anthropic({ baseURL: `${MK_ADDRESS}/anthropic`, apiKey, maxRetries });

test("plain", async () => {
  const answer = await client().messages.create(asked);
  assert.deepEqual(answer.content, [{ type: "text", text: TEXT }]);
  assert.equal(answer.stop_reason, "end_turn");
  assert.equal(answer.usage.input_tokens, 7);
});

test("stream", async () => {
  const answer = await client().messages.stream(asked).finalMessage();
  assert.equal(answer.content[0].text, TEXT);
  assert.equal(answer.usage.output_tokens, 3);
});

test("tools", async () => {
  const answer = await client().messages.stream({ ...asked, model: "fake/tools", tools }).finalMessage();
  assert.deepEqual(answer.content[0].input, { city: "Oslo" });
  assert.equal(answer.stop_reason, "tool_use");
});

test("models", async () => {
  const ids = [];
  for await (const model of client().models.list({ limit: 1000 })) ids.push(model.id);
  assert.ok(ids.includes("fake/whole"));
});

test("errors show what happened", async () => {
  const refused = client("mk_inference_nonsense", 5).messages.create(asked);
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof Anthropic.AuthenticationError);
    assert.match(error.message, /Invalid or missing API key/);
    return true;
  });
  await assert.rejects(client().messages.create({ ...asked, model: "fake/status-400" }), /top_k is out of range/);
  await assert.rejects(client().messages.stream({ ...asked, model: "fake/cut" }).finalMessage(), Anthropic.APIError);
});
