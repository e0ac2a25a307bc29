import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [{ FrameParser, StreamError, chunks, frames, objectOf }] = await load("playground/stream.js");

const encoder = new TextEncoder();

/** A body that sends these bytes and then ends, unless it is to stay open. */
function bodyOf(pieces, { staysOpen = false, onCancel } = {}) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      if (!staysOpen) controller.close();
    },
    cancel: onCancel,
  });
}

async function all(iterable) {
  const found = [];
  for await (const item of iterable) found.push(item);
  return found;
}

const STREAM = 'event: starting\ndata: {"status":"starting"}\n\n: keep-alive\n\nevent: claims_extracted\r\ndata: {"claims":["Käse 🧀"]}\r\n\r\ndata: a\ndata: b\r\r';
const FRAMES = [
  { event: "starting", data: '{"status":"starting"}' },
  { event: "claims_extracted", data: '{"claims":["Käse 🧀"]}' },
  { event: "", data: "a\nb" },
];

test("frames are the same wherever the bytes are split", async () => {
  const bytes = encoder.encode(`${STREAM}\n`);
  for (let at = 0; at <= bytes.length; at += 1) {
    assert.deepEqual(await all(frames(bodyOf([bytes.slice(0, at), bytes.slice(at)]))), FRAMES, `cut at ${at}`);
  }
  assert.deepEqual(await all(frames(bodyOf([...bytes].map((byte) => Uint8Array.of(byte))))), FRAMES);
});

test("a frame without a final blank line is ignored", async () => {
  assert.deepEqual(await all(frames(bodyOf(["event: completed\ndata: {}\n"]))), []);
});

test("a field without a colon or a space is read, an unknown one ignored", () => {
  const parser = new FrameParser();
  assert.deepEqual(parser.push("event:x\nid: 7\nretry: 1\ndata\ndata:y\n\n"), [{ event: "x", data: "\ny" }]);
  assert.deepEqual(parser.push("event: lost\n\ndata: z\n\n"), [{ event: "", data: "z" }]);
});

test("nothing grows without a bound", () => {
  assert.throws(() => new FrameParser(10).push("x".repeat(11)), (error) => error instanceof StreamError && error.code === "too_large");
  const parser = new FrameParser(10);
  parser.push("data: 12345\n");
  assert.throws(() => parser.push("data: 123456\n"), StreamError);
});

test("silence ends the stream and cancels the body", async () => {
  let isCancelled = false;
  const body = bodyOf(["data: x\n\n"], { staysOpen: true, onCancel: () => (isCancelled = true) });
  const reading = frames(body, { silenceMs: 20 });
  assert.equal((await reading.next()).value.data, "x");
  await assert.rejects(reading.next(), (error) => error.code === "silent");
  assert.ok(isCancelled);
});

test("leaving the loop cancels the body", async () => {
  let isCancelled = false;
  for await (const frame of frames(bodyOf(["data: x\n\n"], { staysOpen: true, onCancel: () => (isCancelled = true) }))) {
    assert.equal(frame.data, "x");
    break;
  }
  assert.ok(isCancelled);
});

test("a broken connection is reported, an aborted one stays an AbortError", async () => {
  const failing = (cause) => new ReadableStream({ pull: (controller) => controller.error(cause) });
  await assert.rejects(all(frames(failing(new TypeError("network error")))), (error) => error instanceof StreamError && error.code === "cut");
  await assert.rejects(all(frames(failing(new DOMException("stop", "AbortError")))), { name: "AbortError" });
});

test("chunks end with [DONE] and skip what is not an object", async () => {
  const body = bodyOf(['data: {"id":"1"}\n\ndata: oops\n\ndata: [1]\n\ndata: [DONE]\n\ndata: {"id":"2"}\n\n'], { staysOpen: true });
  assert.deepEqual(await all(chunks(body)), [{ id: "1" }]);
  assert.deepEqual(["{", "null", "3", "[]", "{}"].map(objectOf), [null, null, null, null, {}]);
});
