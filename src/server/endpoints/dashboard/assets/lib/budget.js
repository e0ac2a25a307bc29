// Budgets: how much of them is used, in words and as a bar.
import { html } from "./html.js";
import { budget, percent, spent as amount } from "./format.js";

/** The threshold that is reached: 100, 80, 50, or null. */
export function threshold(usedPercent) {
  return [100, 80, 50].find((level) => usedPercent >= level) ?? null;
}

const WORDS = { 100: "Used up", 80: "80% reached", 50: "50% reached" };

/** The text for a budget at a threshold; nothing below 50%. */
export function ThresholdTag({ level }) {
  if (!level) return null;
  return html`<span class=${`tag level-${level}`}>${WORDS[level]}</span>`;
}

/** A bar with marks at 50 and 80%. It only repeats the text beside it. */
export function BudgetBar({ usedPercent }) {
  const level = threshold(usedPercent);
  return html`<span class=${`bar ${level ? `level-${level}` : ""}`} aria-hidden="true"><span class="fill" style=${{ width: `${Math.min(100, usedPercent)}%` }}></span></span>`;
}

/** `$12.30 of $50`, with bar and threshold; without a budget only what was spent. `unpriced` calls are not in it. */
export function Spent({ spent, of, unpriced = 0 }) {
  if (of === null || of === undefined) return html`<span>${amount(spent, unpriced)}</span>`;
  const used = of > 0 ? (100 * spent) / of : 100;
  return html`<span class="spent"><span>${amount(spent, unpriced)} of ${budget(of)} <span class="muted">(${percent(used)})</span></span> <${BudgetBar} usedPercent=${used} /> <${ThresholdTag} level=${threshold(used)} /></span>`;
}
