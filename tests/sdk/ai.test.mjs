// The AI SDK: `openai(id)`, its default mode, which is Responses. Run by test_node.py, as openai.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

const { MK_OPENAI_URL, MK_KEY } = process.env;
const TEXT = "Hello, wörld \u2713";
const openai = createOpenAI({ baseURL: MK_OPENAI_URL, apiKey: MK_KEY });
// Nothing is stored: without this, earlier answers are sent as references.
const providerOptions = { openai: { store: false } };
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const asked = (name, prompt = "Hello") => ({ model: openai(`fake/${name}`), prompt, maxRetries: 0, providerOptions });

test("text", async () => {
  const whole = await generateText(asked("whole"));
  assert.equal(whole.text, TEXT);
  assert.equal(whole.usage.totalTokens, 10);
  const stream = streamText(asked("whole"));
  assert.equal(await stream.text, TEXT);
  assert.equal(await stream.finishReason, "stop");
});

test("tools", async () => {
  const weather = (told) =>
    tool({ inputSchema: jsonSchema(CITY), execute: ({ city }) => (told.push(city), `7 degrees in ${city}`) });
  for (const ask of [generateText, streamText]) {
    const told = [];
    const answer = ask({ ...asked("called:ai"), tools: { weather: weather(told) }, stopWhen: stepCountIs(3) });
    assert.equal(await (await answer).text, TEXT);
    assert.deepEqual(told, ["Oslo"]);
  }
});

test("schema", async () => {
  const { object } = await generateObject({ ...asked("whole:ai"), schema: jsonSchema(CITY) });
  assert.equal(object.city, "Oslo");
});

test("errors", async () => {
  await assert.rejects(generateText(asked("too-long")), /maximum context length/);
  await assert.rejects(generateText({ ...asked("whole"), model: openai("nobody/whole") }), /configured providers/);
  const conversation = [{ role: "user", content: "Hello" }];
  const { response } = await generateText({ ...asked("whole"), prompt: conversation, providerOptions: {} });
  const more = [...conversation, ...response.messages, { role: "user", content: "And?" }];
  await assert.rejects(generateText({ ...asked("whole"), prompt: more, providerOptions: {} }), /not stored.*`store: false`/s);
});

test("a stream that breaks says so", async () => {
  const failures = [];
  const stream = streamText({ ...asked("cut:ai"), onError: ({ error }) => failures.push(error) });
  for await (const _ of stream.textStream);
  assert.match(JSON.stringify(failures) + failures, /the provider fake/);
});
