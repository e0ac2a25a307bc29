// The results of a verification, as they arrive and when it is over.
import { html } from "../lib/html.js";
import { count, money, plural } from "../lib/format.js";
import { Table } from "../lib/ui.js";
import { Fault } from "./fault.js";
import { counts, isRunning } from "./run.js";
import { shown, span } from "./text.js";
import { Claim, VERDICTS } from "./verdict.js";
import { VOTES } from "./votes.js";

/** The progress of a run, in a sentence; for the status line, so it changes with each step and not with each token. */
export function stepOf(run) {
  const sums = counts(run);
  const total = run.claims.length;
  switch (run.phase) {
    case "starting": return "Starting the verification.";
    case "extracting": return total === 0 ? "Looking for claims in the statement." : `${plural(total, "claim")} found.`;
    case "verifying": return total === 0 ? "There is nothing to verify." : `Asking models: ${sums.judged} of ${plural(total, "claim")} verified.`;
    case "done": return run.isIncomplete ? `Incomplete: ${checkedOf(run)} ${verdictsOf(run)}`.trim() : `Done. ${verdictsOf(run)}`;
    case "stopped": return `Cancelled. ${partOf(run)}`;
    case "failed": return `Failed. ${partOf(run)}`;
    default: return "";
  }
}

function partOf(run) {
  return run.claims.length > 0 ? `${counts(run).judged} of ${plural(run.claims.length, "claim")} had been verified.` : "";
}

/** How much of an incomplete run's text was checked. A sentence of which only a part was is not. */
function checkedOf(run) {
  if (run.coverage === null) return "a part was not checked.";
  const { sentences, unchecked } = run.coverage;
  return `${count(sentences - Math.max(unchecked, 1))} of ${plural(sentences, "sentence")} checked.`;
}

function verdictsOf(run) {
  if (run.claims.length === 0) return run.isIncomplete ? "" : "There was nothing to verify.";
  return `${plural(run.claims.length, "claim")}: ${kindsOf(run).map(([verdict, sum]) => `${sum} ${verdict.toLowerCase()}`).join(", ")}.`;
}

function kindsOf(run) {
  const sums = counts(run);
  return Object.keys(VERDICTS).map((verdict) => [verdict, sums[verdict]]).filter(([, sum]) => sum > 0);
}

/** The claims, skipped parts, errors and usage. */
export function Outcome({ run }) {
  if (run.phase === "idle") return null;
  const isOver = !isRunning(run);
  const { judged } = counts(run);
  return html`<section class="pg-outcome" aria-labelledby="pg-result">
    <h2 id="pg-result">${isOver ? "Result" : "Running"}${run.mode === "sandbox" && html` <span class="pg-chip">sandbox</span>`}</h2>
    <${Fault} fault=${run.fault} />
    ${!isOver && run.claims.length > 0 && html`<progress class="pg-progress" max=${run.claims.length} value=${judged} aria-label="Claims verified"></progress>`}
    ${run.claims.length > 0 && html`<ol class="pg-claims">${run.claims.map((claim, index) => html`<${Claim} key=${index} claim=${claim} isOver=${isOver} />`)}</ol>`}
    ${run.unlisted > 0 && html`<p class="muted">${plural(run.unlisted, "more claim is", "more claims are")} not listed here.</p>`}
    <${Parts} title="Not checked" parts=${run.skipped.filter(({ isUnchecked }) => isUnchecked)} />
    <${Parts} title="Skipped" parts=${run.skipped.filter(({ isUnchecked }) => !isUnchecked)} />
    ${run.phase === "done" && run.audit?.isDone === false && html`<p class="pg-note"><span class="pg-symbol pg-none" aria-hidden="true">!</span> ${auditOf(run.audit)}</p>`}
    ${run.phase === "done" && run.claims.length === 0 && !run.isIncomplete && html`<p>There was nothing to verify: no part of the statement is a claim that can be checked.</p>`}
    ${run.phase === "done" && html`<${Summary} run=${run} />`}
    ${run.claims.some(({ result }) => result) && html`<p class="muted pg-legend">${LEGEND} Agreement is evidence, not proof.</p>`}
  </section>`;
}

const LETTERS = Object.values(VOTES).map(({ letter, words }) => `${letter} ${words}`).join(", ");
const LEGEND = `Votes in the order of the panel: ${LETTERS}. Each model saw only the question and its options, in a random order: neither the claim nor which option it asserts.`;

function auditOf({ auditor }) {
  return auditor === "" ? "Not audited: no second model compared the claims with the text." : `Not audited: the auditor ${shown(auditor, 200)} failed, so no second model compared the claims with the text.`;
}

function Parts({ title, parts }) {
  if (parts.length === 0) return null;
  return html`<h3>${title}</h3>
    <ul class="pg-skipped">${parts.map((part, index) => html`<li key=${index}>
      <span class="pg-symbol pg-none" aria-hidden="true">!</span> <span>${shown(part.reason, 60).replaceAll("_", " ")}: <bdi>${shown(part.text)}</bdi></span>
    </li>`)}</ul>`;
}

function Summary({ run }) {
  const { summary } = run;
  const parts = [
    kindsOf(run).map(([verdict, sum]) => html`<span key=${verdict} class="pg-sum"><span class=${`pg-symbol pg-${VERDICTS[verdict].look}`} aria-hidden="true">${VERDICTS[verdict].symbol}</span> ${sum} ${verdict.toLowerCase()}</span> `),
    !summary.cached && summary.models > 0 && html`<span class="pg-sum">${plural(summary.models, "model")}</span> `,
    run.elapsed !== null && html`<span class="pg-sum">${span(run.elapsed)}</span> `,
    !summary.cached && summary.tokens !== null && html`<span class="pg-sum">${count(summary.tokens)} tokens</span> `,
    html`<span class="pg-sum">${costText(run)}</span>`,
  ];
  return html`<p class="pg-summary">${parts}</p>
    ${summary.usage.length > 0 && html`<details class="pg-more">
      <summary>Tokens and cost by model</summary>
      <${Table} caption="Tokens and cost by model" columns=${usageColumns(run.mode)} rows=${summary.usage} rowKey=${({ model }) => model} />
    </details>`}`;
}

function usageColumns(mode) {
  return [
    { key: "model", label: "Model", main: true, render: ({ model }) => html`<bdi>${shown(model, 200)}</bdi>` },
    { key: "tokens", label: "Tokens", number: true, render: ({ tokens }) => count(tokens) },
    { key: "cost", label: "Cost", number: true, render: ({ cost }) => (mode === "sandbox" ? "simulated" : money(cost)) },
  ];
}

function costText(run) {
  if (run.summary.cached) return "cached, no cost";
  if (run.mode === "sandbox") return "simulated, no cost";
  return run.summary.cost === null ? "cost unknown" : money(run.summary.cost);
}
