// Server-Sent Events from the body of a `fetch` (an EventSource cannot send a header).
//
// What must hold: bytes may be cut anywhere, within a character or between CR and LF; a frame without a final blank
// line is ignored; nothing that is received grows without a bound; a silent server does not block the page for ever.

/** A stream that cannot be read any further. `code` is `too_large`, `silent` or `cut`. */
export class StreamError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "StreamError";
    this.code = code;
  }
}

/** The longest frame, in characters: far above the largest result of a verification. */
const MAX_FRAME = 8 * 1024 * 1024;
/** The server sends a comment every 15 s on an idle stream. */
const SILENCE_MS = 45_000;

/** Turns chunks of text into frames `{event, data}`; `event` is empty if a frame names none. */
export class FrameParser {
  #rest = "";
  #scanned = 0;
  #event = "";
  #data = [];
  #size = 0;
  #max;

  constructor(max = MAX_FRAME) {
    this.#max = max;
  }

  /** The frames that this chunk completes. */
  push(text) {
    this.#rest += text;
    const frames = [];
    const ends = /\r\n|\n|\r(?=[^])/g;
    ends.lastIndex = this.#scanned;
    let start = 0;
    for (let end = ends.exec(this.#rest); end; end = ends.exec(this.#rest)) {
      const frame = this.#line(this.#rest.slice(start, end.index));
      if (frame) frames.push(frame);
      start = ends.lastIndex;
    }
    this.#rest = this.#rest.slice(start);
    // A CR at the very end may be half of a line end.
    this.#scanned = Math.max(0, this.#rest.length - 1);
    this.#guard(this.#rest.length);
    return frames;
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    if (field === "data") {
      this.#data.push(value);
      this.#size += value.length;
      this.#guard(0);
    }
    return null;
  }

  #dispatch() {
    const frame = this.#data.length > 0 ? { event: this.#event, data: this.#data.join("\n") } : null;
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return frame;
  }

  #guard(pending) {
    if (this.#size + pending > this.#max) throw new StreamError("too_large", "The server sent more at once than this page reads.");
  }
}

/** The frames of a body as they arrive. Ends with the body; leaving the loop cancels the body. */
export async function* frames(body, { silenceMs = SILENCE_MS, maxFrame = MAX_FRAME } = {}) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new FrameParser(maxFrame);
  try {
    for (;;) {
      const { done, value } = await within(silenceMs, reader.read());
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function within(ms, reading) {
  let timer;
  const silence = new Promise((_, reject) => {
    const message = `The server has sent nothing for ${Math.round(ms / 1000)} seconds.`;
    timer = setTimeout(() => reject(new StreamError("silent", message)), ms);
  });
  try {
    return await Promise.race([reading, silence]);
  } catch (cause) {
    if (cause.name === "AbortError" || cause instanceof StreamError) throw cause;
    throw new StreamError("cut", "The connection broke off.");
  } finally {
    clearTimeout(timer);
  }
}

/** The JSON object that a frame's data is; `null` for anything else. */
export function objectOf(data) {
  try {
    const value = JSON.parse(data);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** The chunks of a streamed completion: objects, without the closing `[DONE]`. */
export async function* chunks(body, options) {
  for await (const { data } of frames(body, options)) {
    if (data === "[DONE]") return;
    const chunk = objectOf(data);
    if (chunk) yield chunk;
  }
}
