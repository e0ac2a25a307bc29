// A conversation: exchanges of a question and its answer, and the chunks of a stream applied to one of them.
//
// What must hold: an answer counts as complete only with its `finish_reason`; one that broke off or was stopped is
// still shown, but is not part of the conversation that is sent, as in `mk chat`.
import { list, number, text } from "./text.js";

/** Longer answers are cut here, so that the page does not become slow. */
export const MAX_ANSWER = 200_000;
/** The most exchanges of a conversation. */
export const MAX_EXCHANGES = 100;

/** An exchange that has just been requested. `phase`: asking, answering, done, stopped, failed. */
export function ask(question, model) {
  return { question, model, phase: "asking", answer: "", isCut: false, finish: "", usage: null, fault: null, elapsed: null, simulated: false };
}

/** Whether an answer is still expected. */
export function isOpen(exchange) {
  return exchange?.phase === "asking" || exchange?.phase === "answering";
}

/** The exchange after a chunk; a chunk's `error` is left to the caller. */
export function applyChunk(exchange, chunk) {
  const choice = list(chunk.choices, 1)[0];
  const piece = text(choice?.delta?.content) + text(choice?.delta?.refusal);
  const whole = exchange.answer + piece;
  return {
    ...exchange,
    phase: "answering",
    model: text(chunk.model) || exchange.model,
    answer: whole.slice(0, MAX_ANSWER),
    isCut: exchange.isCut || whole.length > MAX_ANSWER,
    finish: text(choice?.finish_reason) || exchange.finish,
    usage: readUsage(chunk.usage) ?? exchange.usage,
    simulated: exchange.simulated || chunk.system_fingerprint === "sandbox",
  };
}

function readUsage(usage) {
  const total = number(usage?.total_tokens);
  if (total === null) return null;
  const [prompt, completion] = [number(usage.prompt_tokens) ?? 0, number(usage.completion_tokens) ?? 0];
  return { prompt, completion, total, isEstimated: usage.estimated === true };
}

/** The messages of a request: the system prompt, the complete exchanges so far, the question. */
export function messagesOf(system, exchanges, question) {
  const messages = system.trim() === "" ? [] : [{ role: "system", content: system }];
  for (const exchange of exchanges) {
    if (exchange.phase !== "done" || exchange.answer === "") continue;
    messages.push({ role: "user", content: exchange.question }, { role: "assistant", content: exchange.answer });
  }
  messages.push({ role: "user", content: question });
  return messages;
}

/** The cost of an answer in US dollars; `null` if the price is unknown. */
export function costOf(usage, model) {
  const [input, output] = [number(model?.input_usd_per_mtok), number(model?.output_usd_per_mtok)];
  if (!usage || input === null || output === null) return null;
  return (usage.prompt * input + usage.completion * output) / 1_000_000;
}
