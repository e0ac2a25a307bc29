// One claim of a verification: its progress, and then the models' choices.
import { html } from "../lib/html.js";
import { shown } from "./text.js";
import { VOTES, groups, kindOf, shortName, tally, votes } from "./votes.js";

/** Symbol, words and class of each assessment. The words are always shown next to the symbol. */
export const VERDICTS = {
  TRUE: { symbol: "✓", words: "TRUE", look: "true" },
  FALSE: { symbol: "✗", words: "FALSE", look: "false" },
  "NO CONSENSUS": { symbol: "~", words: "NO CONSENSUS", look: "none" },
};
const UNKNOWN = { symbol: "!", words: "NOT VERIFIED", look: "none" };

/** A claim of `run.js`. `isOver`: the run has ended, so that nothing more will arrive for an open claim. */
export function Claim({ claim, isOver }) {
  return html`<li class="pg-claim" aria-busy=${!isOver && claim.state === "asking" ? "true" : undefined}>
    <p class="pg-claim-text" dir="auto">${shown(claim.text)}</p>
    ${claim.result ? html`<${Judged} result=${claim.result} />` : html`<${Open} claim=${claim} isOver=${isOver} />`}
  </li>`;
}

function Open({ claim, isOver }) {
  if (isOver) return html`<p class="pg-state"><span class="pg-symbol pg-none" aria-hidden="true">!</span> not verified: the run ended before</p>`;
  if (claim.state === "waiting") return html`<p class="pg-state muted"><span class="pg-symbol" aria-hidden="true">·</span> waiting</p>`;
  const names = { answers: claim.answered.map((model) => ({ model })), errors: [] };
  return html`<p class="pg-state"><span class="wheel" aria-hidden="true"></span>
    asking models${claim.asked > 0 && `, ${claim.done} of ${claim.asked} done`}
    ${claim.answered.map((model) => html` <span class="pg-chip" key=${model}><bdi>${shortName(names, model)}</bdi></span>`)}
  </p>`;
}

function Judged({ result }) {
  const { symbol, words, look } = Object.hasOwn(VERDICTS, result.assessment) ? VERDICTS[result.assessment] : UNKNOWN;
  const cast = groups(result);
  return html`<div class="pg-verdict">
      <p class="pg-state"><span class=${`pg-symbol pg-${look}`} aria-hidden="true">${symbol}</span> <strong>${words}</strong> <span class="muted">${tally(result)}${result.cached && ", cached"}</span></p>
      <${Letters} result=${result} />
    </div>
    ${cast.length > 0 && html`<ul class="pg-groups">${cast.map((group) => html`<li key=${group.says}>
      <bdi class=${group.isConsensus ? "pg-winner" : ""}>${group.says}</bdi>: <bdi>${group.models.join(", ")}</bdi>
    </li>`)}</ul>`}
    ${result.errors.length > 0 && html`<p class="muted">No answer: ${result.errors.map(({ model, code }, index) =>
      html`${index > 0 && ", "}<bdi>${shortName(result, model)}</bdi> (${shown(code.replaceAll("_", " "), 80)})`)}</p>`}
    ${result.question !== "" && html`<${Question} result=${result} />`}`;
}

function Letters({ result }) {
  return html`<ul class="pg-votes" aria-label="Votes">${votes(result).map(({ kind, model }, index) => html`<li key=${index} class=${`pg-vote pg-vote-${kind}`} title=${`${model}: ${VOTES[kind].words}`}>
    <span aria-hidden="true">${VOTES[kind].letter}</span><span class="unseen">${model}: ${VOTES[kind].words}</span>
  </li>`)}</ul>`;
}

function Question({ result }) {
  return html`<details class="pg-question">
    <summary>Question and answers</summary>
    <p dir="auto"><strong>${shown(result.question)}</strong></p>
    <ol class="pg-options">${result.options.map((option) => html`<${Option} key=${option.key} result=${result} option=${option} />`)}</ol>
  </details>`;
}

function Option({ result, option }) {
  const chosenBy = result.answers.filter(({ answer }) => answer === option.key);
  const marks = [option.key === result.claimed && "claimed", option.key === result.consensus && "consensus"].filter(Boolean);
  return html`<li>
    <span class="pg-key">${shown(option.key, 8)}</span>
    <div>
      <bdi>${shown(option.says)}</bdi>${marks.map((mark) => html` <span class="pg-chip" key=${mark}>${mark}</span>`)}
      ${chosenBy.length > 0 && html`<ul class="pg-reasons">${chosenBy.map(({ model, answer, reason }) => html`<li key=${model}>
        <span class="muted" aria-hidden="true">${VOTES[kindOf(result, answer)].letter}</span> <bdi>${shortName(result, model)}</bdi>${reason !== "" && html`: <bdi class="pg-reason">${shown(reason, 2000)}</bdi>`}
      </li>`)}</ul>`}
    </div>
  </li>`;
}
