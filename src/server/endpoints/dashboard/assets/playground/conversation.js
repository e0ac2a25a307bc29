// The conversation of this page.
import { keep } from "./kept.js";
import { faultOf, faultOfEvent, isStop, send } from "./request.js";
import { createStore } from "./store.js";
import { StreamError, chunks } from "./stream.js";
import { MAX_EXCHANGES, applyChunk, ask, isOpen, messagesOf } from "./talk.js";

/** The settings; an empty string leaves the choice to the provider. */
const DEFAULTS = { draft: "", model: "", system: "", temperature: "", maxTokens: "" };
/** Chunks arrive faster than the page needs to be redrawn. */
const DRAW_MS = 60;

export const form = createStore(DEFAULTS);
/** Exchanges, oldest first. */
export const exchanges = createStore([]);
keep("chat form", form);
// An answer that is still expected has ended with the page.
keep("chat", exchanges, (all) => all.map((exchange) => (isOpen(exchange) ? { ...exchange, phase: "stopped" } : exchange)));

let stop = null;

/** The request's body for a question after the exchanges so far. */
export function bodyOf(set, before, question) {
  const body = { model: set.model, messages: messagesOf(set.system, before, question) };
  if (set.temperature !== "") body.temperature = Number(set.temperature);
  if (set.maxTokens !== "") body.max_tokens = Number(set.maxTokens);
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

/** Sends the form's draft, on an app's account. */
export async function start(appId) {
  const before = exchanges.get();
  const { draft: question, model } = form.get();
  if (isOpen(before.at(-1)) || before.length >= MAX_EXCHANGES) return;
  const mine = new AbortController();
  stop = mine;
  const begun = performance.now();
  const body = bodyOf(form.get(), before, question);
  let exchange = ask(question, model);
  let timer = null;
  const draw = () => {
    clearTimeout(timer);
    timer = null;
    if (stop === mine) exchanges.set(() => [...before, exchange]);
  };
  draw();
  form.set({ draft: "" });
  try {
    const response = await send(appId, "chat", { body, signal: mine.signal });
    for await (const chunk of chunks(response.body)) {
      exchange = applyChunk(exchange, chunk);
      if (chunk.error) exchange = { ...exchange, fault: faultOfEvent(chunk.error, "The answer is incomplete") };
      timer ??= setTimeout(draw, DRAW_MS);
    }
    if (!exchange.fault && exchange.finish === "") throw new StreamError("cut", "The stream ended before the answer was complete.");
    exchange = { ...exchange, phase: exchange.fault ? "failed" : "done" };
  } catch (cause) {
    exchange = { ...exchange, ...(isStop(cause) ? { phase: "stopped" } : { phase: "failed", fault: faultOf(cause) }) };
  }
  exchange = { ...exchange, elapsed: performance.now() - begun };
  draw();
}

/** Sends the last question again; its failed answer is removed from the list. */
export function askAgain(appId) {
  const last = exchanges.get().at(-1);
  if (!last || isOpen(last)) return Promise.resolve();
  const { draft } = form.get();
  exchanges.set((all) => all.slice(0, -1));
  form.set({ draft: last.question });
  const asked = start(appId);
  form.set({ draft });
  return asked;
}

/** Stops the answer: the server sees the connection close and ends its work. */
export function cancel() {
  stop?.abort();
}

/** Starts a new conversation; the settings stay. */
export function clear() {
  cancel();
  stop = null;
  exchanges.reset();
}

/** Forgets settings and exchanges. */
export function reset() {
  clear();
  form.reset();
}
