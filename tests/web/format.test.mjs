import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const [format] = await load("lib/format.js");

test("tiny amounts keep their digits, and unknown ones are not shown as zero", () => {
  const written = [[null, "unknown"], [0, "$0.00"], [0.0031, "$0.0031"], [0.000012, "$0.000012"], [1e-9, "< $0.000001"], [0.0312, "$0.0312"], [0.809, "$0.81"], [12.3, "$12.30"], [1234.5, "$1,234.50"], [-2, "-$2.00"]];
  for (const [dollars, text] of written) assert.equal(format.money(dollars), text);
  assert.equal(format.budget(50), "$50");
  assert.equal(format.budget(12.5), "$12.50");
  assert.equal(format.cost({ cost_usd: 1, unpriced_attempts: 2 }), "$1.00 + unknown");
  assert.equal(format.cost({ cost_usd: null, unpriced_attempts: 2 }), "unknown");
  assert.deepEqual([format.spent(0), format.spent(0, 2), format.spent(1, 2)], ["$0.00", "unknown", "$1.00 + unknown"]);
});

test("times are relative to now", () => {
  const now = Date.parse("2026-11-20T12:00:00Z");
  const said = [["2026-11-20T11:59:50Z", "just now"], ["2026-11-20T11:10:00Z", "50 min ago"], ["2026-11-19T12:00:00Z", "yesterday"], ["2026-12-10T12:00:00Z", "in 20 days"], ["2024-11-20T12:00:00Z", "2 yr ago"]];
  for (const [at, text] of said) assert.equal(format.ago(at, now), text);
  assert.equal(format.ago(null, now), "never");
});

test("day ranges are in UTC and include both ends, also across the end of a month", () => {
  assert.deepEqual(format.days("2026-02-27", "2026-03-01"), ["2026-02-27", "2026-02-28", "2026-03-01"]);
  assert.deepEqual(format.days("2026-03-02", "2026-03-01"), []);
  assert.deepEqual([format.month("2026-11"), format.month("2026-11", true)], ["November 2026", "Nov 2026"]);
  assert.equal(format.utcDay(1, Date.parse("2026-03-01T00:00:00Z")), "2026-02-28");
});

test("only entries with the same name also show their id", () => {
  const [one, other, alone] = ["key_019aa0e7c2f47b1c8d3e5f6071829aaa", "key_019aa0e7c2f47b1c8d3e5f6071829bbb", "key_019aa0e7c2f47b1c8d3e5f6071829ccc"];
  const names = format.labels([{ id: one, name: "ci" }, { id: other, name: "ci" }, { id: one, name: "ci" }, { id: alone, name: "till" }]);
  assert.deepEqual([...names], [[one, "ci key_…829aaa"], [other, "ci key_…829bbb"], [alone, "till"]]);
});

test("a message becomes a sentence, and a name at its beginning stays unchanged", () => {
  const said = [["try again", "Try again."], ["Done!", "Done!"], ["sandbox/alpha is paused", "sandbox/alpha is paused."], ["`mk serve` tells", "`mk serve` tells."], ["", "."]];
  for (const [message, text] of said) assert.equal(format.sentence(message), text);
});
