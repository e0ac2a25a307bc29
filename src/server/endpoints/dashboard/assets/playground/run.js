// The progress of a verification: the frames of its stream, applied one after another to a plain state.
//
// Frames are untrusted: what is not as expected is ignored, and nothing grows beyond what a page can show. A run is
// over only with its own terminal frame; a stream that ends before is an incomplete run.
import { list, number, text } from "./text.js";
import { readResult } from "./votes.js";

/** No run. `phase`: idle, starting, extracting, verifying, done, failed, stopped. */
export const IDLE = { phase: "idle", claims: [], unlisted: 0, skipped: [], isIncomplete: false, coverage: null, audit: null, fault: null, summary: null, mode: "", requestId: "", elapsed: null };

/** More claims than this are counted, not listed. */
export const MAX_CLAIMS = 200;
const MAX_ANSWERED = 32;

/** A run that has just been requested. */
export function begin() {
  return { ...IDLE, phase: "starting" };
}

/** Whether a run is in progress. */
export function isRunning({ phase }) {
  return phase === "starting" || phase === "extracting" || phase === "verifying";
}

/** The state after a frame. An `error` frame is left to the caller, which turns it into a message. */
export function apply(state, name, data) {
  switch (name) {
    case "starting": return { ...state, requestId: text(data.requestId), mode: text(data.mode) };
    case "extracting_claims": return { ...state, phase: "extracting" };
    case "claims_extracted": return extracted(state, data);
    case "verifying_claims": return { ...state, phase: "verifying" };
    case "verifying_claim": return onClaim(state, data, (claim) => ({ ...claim, state: "asking" }));
    case "model_answered": return onClaim(state, data, (claim) => answered(claim, data));
    case "claim_verified": return onClaim(state, data, (claim) => judged(claim, data.result ?? data));
    case "completed": return completed(state, data);
    default: return state;
  }
}

function extracted(state, data) {
  const all = list(data.claims, Infinity);
  const claims = all.slice(0, MAX_CLAIMS).map((claim) => ({
    text: text(claim), state: "waiting", answered: [], done: 0, asked: 0, result: null,
  }));
  return { ...state, claims, unlisted: all.length - claims.length, skipped: readSkipped(data.skipped) };
}

/** Why a part that may hold claims was not checked; a part with any other reason was read, and has nothing to check. */
const UNCHECKED = ["over_limit", "not_extracted", "unfaithful"];

function readSkipped(parts) {
  return list(parts, MAX_CLAIMS).map((part) => {
    const reason = text(part?.reason);
    return { text: text(part?.text), reason: reason.replaceAll("_", " "), isUnchecked: UNCHECKED.includes(reason) };
  });
}

function onClaim(state, data, change) {
  const index = data.claimIndex;
  if (!Number.isInteger(index) || !(index in state.claims)) return state;
  return { ...state, claims: state.claims.map((claim, at) => (at === index ? change(claim) : claim)) };
}

function answered(claim, data) {
  if (claim.result) return claim;
  const models = [...claim.answered, text(data.model)].slice(-MAX_ANSWERED);
  return { ...claim, state: "asking", answered: models, done: number(data.answered) ?? claim.done, asked: number(data.asked) ?? claim.asked };
}

function judged(claim, data) {
  const result = readResult(data);
  return result ? { ...claim, state: "judged", result } : claim;
}

function completed(state, data) {
  const results = list(data.results, MAX_CLAIMS);
  const claims = results.map((result, index) => {
    const known = state.claims[index] ?? { text: text(result?.claim), answered: [], done: 0, asked: 0, result: null };
    return judged({ ...known, state: "judged" }, result);
  });
  return {
    ...state,
    phase: "done",
    claims,
    unlisted: list(data.results, Infinity).length - claims.length,
    skipped: readSkipped(data.skipped),
    mode: text(data.mode) || state.mode,
    requestId: text(data.requestId) || state.requestId,
    isIncomplete: data.complete === false,
    coverage: readCoverage(data.coverage),
    audit: { isDone: data.audited === true, auditor: text(data.auditor) },
    summary: summary(data, claims),
  };
}

/** How many sentences there are and how many were checked; null where the server did not tell. */
function readCoverage(data) {
  const sentences = number(data?.sentences);
  return sentences > 0 ? { sentences, unchecked: number(data.unchecked) ?? 0 } : null;
}

function summary(data, claims) {
  const usage = list(data.tokenUsage?.modelUsage, 64).map((used) => ({
    model: text(used?.model), tokens: number(used?.totalTokens) ?? 0, cost: number(used?.cost_usd),
  }));
  const models = new Set(claims.flatMap(({ result }) => [...(result?.answers ?? []), ...(result?.errors ?? [])].map(({ model }) => model)));
  return { models: models.size, tokens: number(data.tokenUsage?.totalTokens), usage, cost: costOf(usage), minRequired: number(data.minRequired), cached: data.cached === true };
}

/** The cost in US dollars; `null` if the price of a model that used tokens is unknown. */
function costOf(usage) {
  if (usage.length === 0 || usage.some(({ cost, tokens }) => cost === null && tokens > 0)) return null;
  return usage.reduce((sum, { cost }) => sum + cost, 0);
}

/** How many claims have which assessment: `{TRUE, FALSE, "NO CONSENSUS", judged}`. */
export function counts({ claims }) {
  const sums = { TRUE: 0, FALSE: 0, "NO CONSENSUS": 0, judged: 0 };
  for (const { result } of claims) {
    if (!result) continue;
    sums.judged += 1;
    if (Object.hasOwn(sums, result.assessment) && result.assessment !== "judged") sums[result.assessment] += 1;
  }
  return sums;
}
