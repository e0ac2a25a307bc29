import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [{ MAX_CLAIMS, apply, begin, counts, isRunning }, { groups, readResult, tally, votes }] = await load("playground/run.js", "playground/votes.js");
const [{ stepOf }] = await load("playground/outcome.js");

/** A claim's result; `answers` are option letters by model, or `!code` for an error. */
function result(assessment, consensus, answers, reason = "consensus") {
  const cast = Object.entries(answers);
  return {
    claim: "It was completed in 1925.", assessment, consensus_answer: consensus, claimed_answer: "A", reason_code: reason,
    original_question: "In which year was it completed?",
    original_options: { A: "1925", B: "1889", C: "1900", D: "None of these", E: "Cannot be determined" },
    model_answers: cast.filter(([, answer]) => !answer.startsWith("!")).map(([model, answer]) => ({ model, answer })),
    model_errors: cast.filter(([, answer]) => answer.startsWith("!")).map(([model, answer]) => ({ model, code: answer.slice(1) })),
  };
}

function follow(...steps) {
  return steps.reduce((state, [name, data]) => apply(state, name, data), begin());
}

const FOUND = ["claims_extracted", { claims: ["one", "two"], count: 2, skipped: [{ text: "nice", reason: "over_limit" }] }];

test("a run goes through all phases to its completed frame", () => {
  const first = result("FALSE", "B", { "p/a": "B", "p/b": "B" });
  const before = follow(
    ["starting", { requestId: "ver_1", mode: "sandbox" }], ["extracting_claims", {}], FOUND, ["verifying_claims", { totalClaims: 2 }],
    ["verifying_claim", { claimIndex: 0 }], ["model_answered", { claimIndex: 0, model: "p/a", answered: 1, asked: 2 }],
    ["claim_verified", { claimIndex: 0, assessment: "FALSE", result: first }],
  );
  assert.ok(isRunning(before));
  assert.deepEqual(before.claims.map(({ state }) => state), ["judged", "waiting"]);
  assert.deepEqual(before.claims[0].answered, ["p/a"]);
  assert.deepEqual(before.skipped, [{ text: "nice", reason: "over limit", isUnchecked: true }]);
  const done = apply(before, "completed", {
    requestId: "ver_1", results: [first, result("TRUE", "A", { "p/a": "A", "p/c": "!timeout" })], minRequired: 2, skipped: [],
    tokenUsage: { totalTokens: 30, modelUsage: [{ model: "p/a", totalTokens: 20, cost_usd: 0.5 }, { model: "p/b", totalTokens: 10 }] },
  });
  assert.ok(!isRunning(done));
  assert.deepEqual(counts(done), { TRUE: 1, FALSE: 1, "NO CONSENSUS": 0, judged: 2 });
  assert.deepEqual([done.summary.models, done.summary.tokens, done.summary.cost], [3, 30, null]);
});

test("what was not checked never looks done", () => {
  const end = (data) => stepOf(follow(["completed", { results: [], tokenUsage: {}, audited: true, ...data }]));
  const [yes, no] = [result("TRUE", "A", { "p/a": "A" }), [{ text: "x", reason: "not_extracted" }]];
  assert.equal(end({ complete: true, skipped: [{ text: "x", reason: "opinion" }] }), "Done. There was nothing to verify.");
  assert.equal(end({ complete: false, skipped: no, coverage: { sentences: 1, checked: 0, skipped: 0, unchecked: 1 } }), "Incomplete: 0 of 1 sentence checked.");
  assert.equal(end({ complete: false, skipped: no, results: [yes], coverage: { sentences: 2, checked: 1, skipped: 0, unchecked: 1 } }), "Incomplete: 1 of 2 sentences checked. 1 claim: 1 true.");
  // A server that says nothing about sentences.
  assert.equal(end({ complete: false, skipped: no, results: [yes] }), "Incomplete: a part was not checked. 1 claim: 1 true.");
});

test("a cost is known only if every price is known", () => {
  const cost = (...costs) => follow(["completed", { results: [], tokenUsage: { modelUsage: costs.map((cost) => ({ model: "m", totalTokens: 1, cost_usd: cost })) } }]).summary.cost;
  assert.equal(cost(0.5, 0.25), 0.75);
  assert.equal(cost(0.5, undefined), null);
  assert.equal(cost(), null);
  const unused = [{ model: "m", totalTokens: 1, cost_usd: 0.5 }, { model: "n", totalTokens: 0 }];
  assert.equal(follow(["completed", { results: [], tokenUsage: { modelUsage: unused } }]).summary.cost, 0.5);
});

test("what the server knew is told apart, and only if it says so plainly", () => {
  const known = { ...result("TRUE", "A", { "p/a": "A" }), cached: true };
  const done = (more) => follow(["completed", { results: [known, result("TRUE", "A", { "p/a": "A" })], tokenUsage: { modelUsage: [] }, ...more }]);
  assert.deepEqual(done({}).claims.map((claim) => claim.result.cached), [true, false]);
  assert.deepEqual([{}, { cached: true }, { cached: "true" }, { cached: 1 }].map((more) => done(more).summary.cached), [false, true, false, false]);
});

test("unexpected frames of any shape are ignored", () => {
  const values = [undefined, null, 7, "x", [], {}, [null], { claimIndex: 99 }, { claimIndex: "0" }, { claimIndex: -1 }, { claims: [1, null, {}] }, { claimIndex: 0, result: 3 }];
  const names = ["starting", "extracting_claims", "claims_extracted", "verifying_claims", "verifying_claim", "model_answered", "claim_verified", "completed", "new_one"];
  for (const name of names) {
    for (const value of values) {
      const data = typeof value === "object" && value !== null && !Array.isArray(value) ? value : { claims: value, results: value, skipped: value, tokenUsage: value, claimIndex: 0, model: value };
      assert.ok(Array.isArray(follow(FOUND, [name, data]).claims), name);
    }
  }
});

test("more claims than a page can show are counted", () => {
  const state = follow(["claims_extracted", { claims: Array(MAX_CLAIMS + 5).fill("x") }]);
  assert.deepEqual([state.claims.length, state.unlisted], [MAX_CLAIMS, 5]);
});

test("votes are shown as letters, and groups start with the consensus", () => {
  const mixed = readResult(result("NO CONSENSUS", "", { "p/a": "A", "p/b": "B", "p/c": "D", "p/d": "E", "p/e": "!timeout" }, "split"));
  assert.deepEqual(votes(mixed).map(({ kind }) => kind), ["claimed", "other", "other", "undecided", "missing"]);
  assert.equal(tally(mixed), "1 true, 2 false, 1 undecided: the answers differ");
  const found = readResult(result("FALSE", "B", { "p/gpt": "B", "q/claude": "A", "r/gemini": "B" }));
  assert.deepEqual(groups(found), [
    { says: "1889", isConsensus: true, models: ["gpt", "gemini"] },
    { says: "as claimed", isConsensus: false, models: ["claude"] },
  ]);
  assert.equal(tally(found), "2 of 3 models agree");
});

test("providers are named only where models would otherwise look the same", () => {
  const twins = readResult(result("TRUE", "A", { "p/same": "A", "q/same": "A", "r/org/other": "A" }));
  assert.deepEqual(votes(twins).map(({ model }) => model), ["p/same", "q/same", "org/other"]);
});
