// The `openai` package for Node: what its callers get, and which of its errors each failure becomes. Run by
// test_node.py, which says in the environment where server and provider are; the models are scripts of provider.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const { MK_BASE_URL, MK_OPENAI_URL, MK_KEY, MK_KEY_ELSEWHERE, MK_KEY_OF_VERIFY, MK_KEY_PER_MINUTE, PROVIDER_URL } = process.env;
const TEXT = "Hello, wörld \u2713";
const ARGUMENTS = '{"city": "Oslo"}';
const messages = [{ role: "user", content: "Hello" }];
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];

const client = (apiKey = MK_KEY, maxRetries = 0) => new OpenAI({ baseURL: MK_BASE_URL, apiKey, maxRetries });
const ask = (more = {}, of = client()) => of.chat.completions.create({ model: "fake/whole", messages, ...more });
const seen = async (model) => (await fetch(`${PROVIDER_URL}/seen/${model}`)).json();

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");

test("plain", async () => {
  const answer = await ask();
  assert.equal(answer.choices[0].message.content, TEXT);
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.model, "fake/whole");
  assert.equal(answer.usage.total_tokens, 10);
  assert.ok(answer._request_id);
});

test("stream", async () => {
  for (const model of ["fake/whole", "fake/no-done"]) {
    const chunks = await collect(await ask({ model, stream: true }));
    assert.equal(textOf(chunks), TEXT);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    assert.ok(chunks.every((chunk) => chunk.usage == null));
  }
});

test("usage of a stream", async () => {
  const chunks = await collect(await ask({ stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.total_tokens, 10);
});

test("tools", async () => {
  const plain = await ask({ model: "fake/tools:node", tools });
  const stream = client().chat.completions.stream({ model: "fake/tools:node", messages, tools });
  const streamed = await stream.finalChatCompletion();
  for (const answer of [plain, streamed]) {
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.equal(answer.choices[0].message.tool_calls[0].function.arguments, ARGUMENTS);
  }
  for (const asked of await seen("tools:node")) assert.deepEqual(asked.tools, tools);
});

test("schema", async () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const response_format = { type: "json_schema", json_schema: { name: "weather", strict: true, schema } };
  const answer = await client().chat.completions.parse({ model: "fake/whole:node", messages, response_format });
  assert.equal(JSON.parse(answer.choices[0].message.content).city, "Oslo");
  assert.deepEqual((await seen("whole:node"))[0].response_format, response_format);
});

test("models", async () => {
  const ids = [];
  for await (const model of client().models.list()) ids.push(model.id);
  assert.ok(ids.includes("fake/whole"));
  assert.equal((await client().models.retrieve("fake/whole")).id, "fake/whole");
  await assert.rejects(client().models.retrieve("fake/nothing"), OpenAI.NotFoundError);
});

test("errors", async () => {
  await ask({}, client(MK_KEY_PER_MINUTE));
  const cases = [
    [OpenAI.AuthenticationError, 401, {}, client("sk-nothing")],
    [OpenAI.AuthenticationError, 401, {}, client(MK_KEY_OF_VERIFY)],
    [OpenAI.PermissionDeniedError, 403, {}, client(MK_KEY_ELSEWHERE)],
    [OpenAI.RateLimitError, 429, {}, client(MK_KEY_PER_MINUTE)],
    [OpenAI.BadRequestError, 400, { temperature: 3 }],
    [OpenAI.BadRequestError, 400, { model: "fake/filtered" }],
    [OpenAI.NotFoundError, 404, { model: "nobody/whole" }],
    [OpenAI.InternalServerError, 502, { model: "fake/status-401" }],
    [OpenAI.InternalServerError, 503, { model: "fake/status-429" }],
    [OpenAI.InternalServerError, 502, { model: "fake/status-500" }],
    [OpenAI.InternalServerError, 503, { model: "fake/status-503" }],
    [OpenAI.InternalServerError, 504, { model: "fake/hang" }],
  ];
  for (const [kind, status, more, of] of cases) {
    for (const stream of [false, true]) {
      await assert.rejects(ask({ ...more, stream }, of), (error) => {
        assert.equal(error.constructor, kind, `${JSON.stringify(more)}: ${error}`);
        assert.equal(error.status, status);
        assert.ok(error.requestID);
        return true;
      });
    }
  }
});

test("a stream that breaks raises", async () => {
  for (const script of ["cut", "ended", "stall", "broken"]) {
    const model = `${script}:node`;
    const chunks = [];
    const reading = async () => {
      const stream = await ask({ model: `fake/${model}`, stream: true }, client(MK_KEY, 2));
      for await (const chunk of stream) chunks.push(chunk);
    };
    const isTold = (error) => error instanceof OpenAI.APIError && /the provider fake/.test(error.message);
    await assert.rejects(reading, isTold);
    assert.equal(textOf(chunks), "Hel", script);
    assert.equal((await seen(model)).length, 1);
  }
});

test("retries", async () => {
  for (const [script, calls] of [["status-500", 3], ["status-401", 1], ["filtered", 1]]) {
    const model = `${script}:node-retries`;
    await assert.rejects(ask({ model: `fake/${model}` }, client(MK_KEY, 2)));
    assert.equal((await seen(model)).length, calls, script);
  }
  assert.equal((await ask({ model: "fake/second-try:node" }, client(MK_KEY, 1))).choices[0].message.content, TEXT);
});

test("responses", async () => {
  const at = new OpenAI({ baseURL: MK_OPENAI_URL, apiKey: MK_KEY, maxRetries: 0 });
  const whole = await at.responses.create({ model: "fake/whole", input: "Hello" });
  assert.equal(whole.output_text, TEXT);
  const stream = at.responses.stream({ model: "fake/whole", input: "Hello" });
  const numbers = [];
  for await (const event of stream) numbers.push(event.sequence_number);
  assert.deepEqual(numbers, [...numbers.keys()]);
  assert.equal((await stream.finalResponse()).output_text, TEXT);
  const broken = await at.responses.create({ model: "fake/cut:responses", input: "Hello", stream: true });
  const events = await collect(broken);
  assert.equal(events.at(-1).type, "response.failed");
  const refused = at.responses.create({ model: "fake/whole", input: "Hello", store: true });
  await assert.rejects(refused, (error) => error.code === "unsupported_parameter" && /`store`/.test(error.message));
});
