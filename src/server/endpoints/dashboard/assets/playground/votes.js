// How the models voted on a claim: letters as a summary, groups for the details. The same presentation as in `mk
// verify`.
import { list, shown, text } from "./text.js";

/** Letter and words of each kind of vote. */
export const VOTES = {
  claimed: { letter: "T", words: "the claimed answer" },
  other: { letter: "F", words: "another answer" },
  undecided: { letter: "U", words: "cannot be determined" },
  missing: { letter: "-", words: "no answer" },
};

const MAX_OPTIONS = 26;
const MAX_MODELS = 32;

/** A claim's result as this page uses it, from what the server sent; `null` if that is not a result. */
export function readResult(data) {
  if (data === null || typeof data !== "object") return null;
  const options = data.original_options !== null && typeof data.original_options === "object" ? Object.entries(data.original_options) : [];
  return {
    assessment: text(data.assessment),
    question: text(data.original_question),
    options: list(options, MAX_OPTIONS).map(([key, says]) => ({ key, says: text(says) })),
    claimed: text(data.claimed_answer),
    consensus: text(data.consensus_answer),
    reasonCode: text(data.reason_code),
    cached: data.cached === true,
    answers: list(data.model_answers, MAX_MODELS).map((given) => ({
      model: text(given?.model), answer: text(given?.answer), reason: text(given?.reason),
    })),
    errors: list(data.model_errors, MAX_MODELS).map((failed) => ({ model: text(failed?.model), code: text(failed?.code) })),
  };
}

/** The kind of vote of an answer's key; the last option of a question is always "Cannot be determined". */
export function kindOf(result, key) {
  if (key === result.claimed) return "claimed";
  return result.options.length > 0 && key === result.options.at(-1).key ? "undecided" : "other";
}

/** The votes in panel order, `{kind, model}`: the models that answered, then those that did not. */
export function votes(result) {
  return [
    ...result.answers.map(({ model, answer }) => ({ kind: kindOf(result, answer), model: shortName(result, model) })),
    ...result.errors.map(({ model }) => ({ kind: "missing", model: shortName(result, model) })),
  ];
}

/** The answers by option, the consensus first, then the claimed one: `{says, isConsensus, models}`. */
export function groups(result) {
  const keys = new Set([result.consensus, result.claimed, ...result.options.map(({ key }) => key)]);
  return [...keys].map((key) => group(result, key)).filter(({ models }) => models.length > 0);
}

function group(result, key) {
  const models = result.answers.filter(({ answer }) => answer === key).map(({ model }) => shortName(result, model));
  return { says: says(result, key), isConsensus: key !== "" && key === result.consensus, models };
}

function says(result, key) {
  if (key === result.claimed) return "as claimed";
  if (result.options.length > 0 && key === result.options.at(-1).key) return "cannot tell";
  if (result.options.length > 1 && key === result.options.at(-2).key) return "none of these";
  return shown(result.options.find((option) => option.key === key)?.says ?? key, 200);
}

/** `2 of 3 models agree`, or without consensus the votes and the reason. */
export function tally(result) {
  if (result.assessment !== "NO CONSENSUS") {
    const agreeing = result.answers.filter(({ answer }) => answer === result.consensus).length;
    return `${agreeing} of ${result.answers.length} models agree`;
  }
  const counted = [["claimed", "true"], ["other", "false"], ["undecided", "undecided"]]
    .map(([kind, word]) => [result.answers.filter(({ answer }) => kindOf(result, answer) === kind).length, word])
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  return [counted.join(", "), WHY[result.reasonCode]].filter(Boolean).join(": ");
}

const WHY = {
  split: "the answers differ",
  tie: "two answers have equally many votes",
  abstained: "too many models cannot tell",
  insufficient_answers: "too few models answered",
  unconfirmed: "no model can tell",
  not_in_context: "the context does not say",
  rejected: "no model chose the claimed answer",
};

/** A model's name without its provider, unless two models of the claim would then look the same. */
export function shortName(result, model) {
  const all = [...result.answers, ...result.errors].map((cast) => cast.model);
  const isAmbiguous = all.some((other) => other !== model && bare(other) === bare(model));
  return shown(isAmbiguous ? model : bare(model), 120);
}

function bare(model) {
  return model.slice(model.indexOf("/") + 1);
}
