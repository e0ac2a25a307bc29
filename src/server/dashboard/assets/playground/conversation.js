// The conversation of this page, and the models that it can use.
import { faultOf, faultOfEvent, isStop, send } from "./request.js";
import { createStore } from "./store.js";
import { StreamError, chunks } from "./stream.js";
import { MAX_EXCHANGES, applyChunk, ask, cheapest, isOpen, messagesOf } from "./talk.js";
import { list, text } from "./text.js";

/** The settings; an empty string leaves the choice to the provider. */
const DEFAULTS = { draft: "", model: "", system: "", temperature: "", maxTokens: "" };
/** Chunks arrive faster than the page needs to be redrawn. */
const DRAW_MS = 60;

export const form = createStore(DEFAULTS);
/** Exchanges, oldest first. */
export const exchanges = createStore([]);
/** `{appId, models, fault}`: the models that app may use; `models` is null until it is known. */
export const offer = createStore({ appId: null, models: null, fault: null });

let stop = null;

/** Reads the list of models, unless it has been read. */
export async function loadModels(appId, again = false) {
  const old = offer.get();
  if (old.appId === appId && !again && !old.fault) return;
  offer.set({ appId, models: null, fault: null });
  try {
    const response = await send(appId, "inference", "inference/v1/models", {});
    const models = list((await response.json())?.data, 1000).filter((model) => text(model?.id) !== "");
    if (offer.get().appId !== appId) return;
    offer.set({ appId, models, fault: null });
    if (!models.some(({ id }) => id === form.get().model)) form.set({ model: cheapest(models)?.id ?? "" });
  } catch (cause) {
    if (offer.get().appId === appId) offer.set({ appId, models: null, fault: faultOf(cause) });
  }
}

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
    const response = await send(appId, "inference", "inference/v1/chat/completions", { body, signal: mine.signal });
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

/** Forgets drafts and exchanges. The list of models is no secret, and to read it again would need a key. */
export function reset() {
  clear();
  form.set(({ model }) => ({ ...DEFAULTS, model }));
}
