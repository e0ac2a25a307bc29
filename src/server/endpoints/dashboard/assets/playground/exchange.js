// One question of a conversation and its answer.
import { html } from "../lib/html.js";
import { count, money } from "../lib/format.js";
import { Button } from "../lib/ui.js";
import { Fault } from "./fault.js";
import { MAX_ANSWER, costOf, isOpen } from "./talk.js";
import { shown, span } from "./text.js";

/** The progress of an answer, in a sentence; for the status line. */
export function stepOf(exchange) {
  switch (exchange?.phase) {
    case "asking": return `Waiting for ${shown(exchange.model, 120)}.`;
    case "answering": return `${shown(exchange.model, 120)} is answering.`;
    case "done": return exchange.finish === "stop" ? "The answer is complete." : "The answer ended early.";
    case "stopped": return "Stopped.";
    case "failed": return "The answer failed.";
    default: return "";
  }
}

/** An exchange of `talk.js`; `model` is its model's record, for the price; `again` sends it again. */
export function Exchange({ exchange, model, again }) {
  const isWaiting = isOpen(exchange);
  const isLost = exchange.phase === "failed" || exchange.phase === "stopped";
  return html`<li class="pg-exchange">
    <div class="pg-said"><p class="pg-who">You</p><p class="pg-words" dir="auto">${shown(exchange.question)}</p></div>
    <div class="pg-said pg-answer" aria-busy=${isWaiting ? "true" : undefined}>
      <p class="pg-who"><bdi>${shown(exchange.model, 200)}</bdi>${exchange.simulated && html` <span class="pg-chip">sandbox</span>`}</p>
      ${exchange.answer !== "" && html`<p class="pg-words" dir="auto">${exchange.answer}</p>`}
      ${isWaiting && html`<p class="muted"><span class="wheel" aria-hidden="true"></span>${exchange.answer === "" && " waiting for the first words"}</p>`}
      ${exchange.isCut && html`<p class="muted">Only the first ${count(MAX_ANSWER)} characters are shown and kept.</p>`}
      <${Ending} exchange=${exchange} />
      <${Fault} fault=${exchange.fault} />
      ${isLost && html`<p class="pg-actions"><span class="muted">${exchange.answer !== "" && "Incomplete. "}Not part of the conversation.</span> ${again && html`<${Button} small onClick=${again}>Ask again</${Button}>`}</p>`}
      ${!isWaiting && html`<p class="pg-figures muted">${figures(exchange, model)}</p>`}
    </div>
  </li>`;
}

const ENDINGS = {
  length: "The answer was cut off at its token limit (finish_reason: length). Raise the limit to get more.",
  content_filter: "The provider withheld all or part of the answer (finish_reason: content_filter).",
};

function Ending({ exchange }) {
  if (exchange.phase !== "done" || exchange.finish === "stop") return null;
  const words = Object.hasOwn(ENDINGS, exchange.finish) ? ENDINGS[exchange.finish] : `The answer ended for another reason (finish_reason: ${shown(exchange.finish, 60)}).`;
  return html`<p class="pg-note"><span class="pg-symbol pg-none" aria-hidden="true">!</span> ${words}</p>`;
}

/** `12 tokens in, 40 out · $0.0031 · 2.4 s` */
function figures(exchange, model) {
  const { usage } = exchange;
  const parts = [];
  if (usage) parts.push(`${usage.isEstimated ? "about " : ""}${count(usage.prompt)} tokens in, ${count(usage.completion)} out`);
  if (usage) parts.push(exchange.simulated ? "simulated, no cost" : costWords(costOf(usage, model)));
  if (exchange.elapsed !== null) parts.push(span(exchange.elapsed));
  return parts.join(" · ");
}

function costWords(cost) {
  return cost === null ? "cost unknown" : money(cost);
}
