//! Checks of model calls: the provider's list, the ledger, the log, the metrics.

use std::collections::{BTreeMap, HashMap};

use super::ledger::{self, Row, Total};
use super::log::Line;
use super::matching;
use super::page::{Page, whole};
use crate::book::{Seen, Sent};
use crate::provider::Called;
use crate::report::Condition;
use crate::site::{COMPLETION_PRICE, PROMPT_PRICE, UNPRICED};
use crate::token;

/// Of how many calls at least one may be a vote that the server gave up while the model answered.
const CALLS_PER_LATE_VOTE: usize = 1000;

/// Each call that reached the provider is recorded once, with the tokens that the provider reported or that have to be
/// estimated. A row without a call was cancelled before it reached the provider: it is `cancelled`, without a
/// completion, and exists only where the caller left or the key was revoked. A few votes may be `cancelled`.
pub(super) fn called_is_booked(sent: &[Sent], calls: &[Called], lines: &[Line], rows: &[Row]) -> Condition {
    let tokens: HashMap<&str, u64> =
        lines.iter().filter_map(|line| Some((line.ledger_id.as_str(), line.token?))).collect();
    let mut by_token: BTreeMap<u64, (Vec<&Called>, Vec<&Row>)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for call in calls {
        by_token.entry(call.token).or_default().0.push(call);
    }
    for row in rows {
        match tokens.get(row.request_id.as_str()) {
            Some(token) => by_token.entry(*token).or_default().1.push(row),
            None => wrong.push(format!("a row of no request: {row:?}")),
        }
    }
    let (mut unsent, mut late) = (0, 0);
    for (token, (calls, rows)) in by_token {
        let place = usize::try_from(token).unwrap_or(usize::MAX);
        let is_cancellable =
            sent.get(place).is_none_or(|sent| sent.is_revoked || !matches!(sent.seen, Seen::Whole(_)));
        // A resumed response that does not repeat the beginning of the broken one is cancelled as well.
        let may_differ = calls.iter().any(|call| call.breaks);
        let (mut unbooked, mut uncalled) =
            matching::left_over(&calls, &rows, |_| is_cancellable || may_differ);
        if unbooked.iter().any(|call| call.is_vote) {
            let strictly = unbooked.len();
            (unbooked, uncalled) =
                matching::left_over(&calls, &rows, |call| call.is_vote || is_cancellable || may_differ);
            late += strictly - unbooked.len();
        }
        let (cancelled, uncalled): (Vec<_>, Vec<_>) = uncalled
            .into_iter()
            .partition(|row| is_cancellable && row.outcome == "cancelled" && row.tokens.1 == 0);
        unsent += cancelled.len();
        let is_right = unbooked.is_empty() && uncalled.is_empty();
        if !is_right {
            let id = token::id(token);
            wrong.push(format!("{id}: calls without a row {unbooked:?}, rows without a call {uncalled:?}"));
        }
    }
    if late > calls.len().div_ceil(CALLS_PER_LATE_VOTE) {
        wrong.push(format!("{late} votes were given up while the models answered"));
    }
    let counts = format!(
        "{} calls, {} rows, of which {unsent} cancelled unsent and {late} late votes",
        calls.len(),
        rows.len()
    );
    Condition::none("the ledger matches the provider's calls", counts, wrong)
}

/// The log's totals of each request are those of its rows.
pub(super) fn booked_is_logged(lines: &[Line], rows: &[Row]) -> Condition {
    let mut sums: HashMap<&str, (u64, (u64, u64))> = HashMap::new();
    for row in rows {
        let (attempts, tokens) = sums.entry(&row.request_id).or_default();
        *attempts += 1;
        tokens.0 += row.tokens.0;
        tokens.1 += row.tokens.1;
    }
    let wrong = lines.iter().filter_map(|line| {
        let booked = sums.get(line.ledger_id.as_str()).copied().unwrap_or_default();
        let logged = (line.attempts, line.tokens);
        (booked != logged).then(|| format!("{}: {booked:?} in the ledger, {logged:?} logged", line.ledger_id))
    });
    Condition::none(
        "the log sums what the ledger records",
        format!("{} requests", lines.len()),
        wrong.collect(),
    )
}

/// The counts in the metrics at rest are those of the ledger.
pub(super) fn booked_is_counted(rows: &[Row], page: &Page) -> Condition {
    let booked = ledger::totals(rows);
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let mut cost = 0;
    for ([model, outcome], total) in booked {
        *expected.entry(format!("{model} {outcome}")).or_default() += total.calls;
        *expected.entry(format!("{model} prompt tokens")).or_default() += total.prompt_tokens;
        *expected.entry(format!("{model} completion tokens")).or_default() += total.completion_tokens;
        cost += total.cost;
    }
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for ([provider, model, outcome], count) in page.by("mk_attempts_total", ["provider", "model", "outcome"])
    {
        counted.insert(format!("{provider}/{model} {outcome}"), count);
    }
    for ([provider, model, kind], count) in page.by("mk_tokens_total", ["provider", "model", "kind"]) {
        counted.insert(format!("{provider}/{model} {kind} tokens"), count);
    }
    expected.insert("nano-dollars".to_owned(), cost);
    counted.insert("nano-dollars".to_owned(), whole(page.sum("mk_cost_usd_total") * 1e9));
    // A counter that is zero may be on the page, or not.
    counted.retain(|_, count| *count > 0);
    expected.retain(|_, count| *count > 0);
    Condition::same("metrics count what the ledger records", expected, counted)
}

/// Costs are prices times tokens, and unknown where the price is unknown.
pub(super) fn booked_is_priced(rows: &[Row]) -> Condition {
    let wrong = rows.iter().filter(|row| {
        let (prompt, completion) = row.tokens;
        let cost = prompt * PROMPT_PRICE + completion * COMPLETION_PRICE;
        row.cost != (row.model != UNPRICED).then_some(cost)
    });
    let wrong = wrong.map(|row| format!("{row:?}")).collect();
    Condition::none("costs are prices times tokens", format!("{} rows", rows.len()), wrong)
}

/// Reports are computed from the same numbers.
pub(super) fn booked_is_reported(rows: &[Row], reported: Total) -> Condition {
    let sum = ledger::totals(rows).values().fold(Total::default(), |sum, total| Total {
        calls: sum.calls + total.calls,
        prompt_tokens: sum.prompt_tokens + total.prompt_tokens,
        completion_tokens: sum.completion_tokens + total.completion_tokens,
        cost: sum.cost + total.cost,
    });
    Condition::equal("reports sum what the ledger records", &sum, &reported)
}
