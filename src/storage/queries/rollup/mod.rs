//! Usage sums by UTC day, app, key, service and model, which reports are built from.
//!
//! They are written in the transaction of the attempts that they sum, so that neither exists without the other, and
//! they stay when old attempts are deleted. A batch is summed here before it goes to the database: a row costs a
//! look-up in a small map, and the database gets one write for each combination in the batch.
//!
//! What must hold: model names come from callers, who may invent any number of them at a configured provider, so the
//! number of names with sums of their own is limited for each key and day. All further names of a provider are summed
//! together, under the name that the metrics use for them too. A name that has a sum keeps it; as no sum is ever
//! deleted, a name without one gets none that day once the limit is reached.
//!
//! What callers say of a request, whom it is for and what they mark it with, is summed apart (`labels`).

mod labels;

pub(super) use labels::{TAG, USER};

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rusqlite::params;
use rusqlite::types::ToSql;

use super::values::{MAX_SUM, change, changed, count};
use crate::model_id;
use crate::money::NanoUsd;
use crate::storage::db::{Db, Params};
use crate::storage::{AttemptRow, CACHED, Error, INTERRUPTED, UsageCounts};

/// Outcomes that do not count as errors.
const NON_ERROR_OUTCOMES: [&str; 4] = ["ok", "cancelled", INTERRUPTED, CACHED];

/// The maximum number of model names with sums of their own for one day, app, key and service.
const MAX_MODELS: u32 = 200;

/// The name, after the provider's, of all its other models. A model with this very name is counted among them.
const OTHER: &str = "other";

/// The columns of a sum, in the order of [`figures`]; those with `true` may come near the end of their range.
const FIGURES: [(&str, bool); 12] = [
    ("requests", false),
    ("model_requests", false),
    ("attempts", false),
    ("errors", false),
    ("prompt_tokens", true),
    ("completion_tokens", true),
    ("cost_nano_usd", true),
    ("priced_attempts", false),
    ("unpriced_attempts", false),
    ("cached_tokens", true),
    ("cache_write_tokens", true),
    ("estimated_attempts", false),
];

/// The columns that what replaces an attempt may change, the last of them: the rest says that there was one.
const REPLACED: usize = 9;

/// Adds a batch of attempts to the sums of their days.
pub(super) fn add(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let mut sums: BTreeMap<_, UsageCounts> = BTreeMap::new();
    for row in rows {
        let of = (row.at.utc_day(), &row.app_id, &row.key_id, row.service.as_str(), &row.model);
        let sum = sums.entry(of).or_default();
        *sum = sum.plus(counts(row));
    }
    db.upsert_each(&UPDATE, &INSERT, sums, |((day, app_id, key_id, service, model), sum), run| {
        let (other, figures) = (other_model(model), figures(sum));
        run(&with_figures(params![day, app_id, key_id, service, model, other, MAX_MODELS], &figures))
    })?;
    labels::add(db, rows)
}

/// Corrects the sums that attempts are in, by the differences between them and what replaces them: outcome, tokens and
/// cost.
pub(super) fn replace(db: &Db<'_>, replaced: &[(AttemptRow, AttemptRow)]) -> Result<(), Error> {
    let mut sums: BTreeMap<_, (UsageCounts, UsageCounts)> = BTreeMap::new();
    for (old, new) in replaced {
        let of = (old.at.utc_day(), &old.app_id, &old.key_id, old.service.as_str(), &old.model);
        let (before, after) = sums.entry(of).or_default();
        *before = before.plus(counts(old));
        *after = after.plus(counts(new));
    }
    let sql = format!(
        "UPDATE usage_days SET {}
         WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = {SUMMED_MODEL}",
        changes(7)
    );
    db.execute_each(&sql, sums, |((day, app_id, key_id, service, model), (before, after)), run| {
        let (other, changes) = (other_model(model), differences(before, after));
        run(&with_figures(params![day, app_id, key_id, service, model, other], &changes))
    })?;
    labels::replace(db, replaced)
}

/// The name under which a model is summed that has a sum, or is summed with the other models. Parameters 1 to 6 are day,
/// app, key, service, the model's name and that of the others.
const SUMMED_MODEL: &str = "CASE
        WHEN EXISTS (SELECT 1 FROM usage_days
                     WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5) THEN ?5
        ELSE ?6
    END";

/// Adds to an existing sum.
static UPDATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE usage_days SET {}
         WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5",
        additions(8)
    )
});

/// Inserts a sum or adds to one. The names are only counted if this one has no sum yet.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO usage_days (day, app_id, key_id, service, model, {})
         SELECT ?1, ?2, ?3, ?4,
             CASE
                 WHEN EXISTS (SELECT 1 FROM usage_days
                              WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5)
                     THEN ?5
                 WHEN (SELECT count(*) FROM usage_days
                       WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4) < ?7 THEN ?5
                 ELSE ?6
             END, {}
         WHERE true
         ON CONFLICT (day, app_id, key_id, service, model) DO UPDATE SET {}",
        columns(),
        parameters(8),
        additions_of_excluded("usage_days")
    )
});

/// The columns of [`FIGURES`].
fn columns() -> String {
    FIGURES.map(|(name, _)| name).join(", ")
}

/// As many parameters, from this one on.
fn parameters(first: usize) -> String {
    let numbers = first..first + FIGURES.len();
    numbers.map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

/// Adds the excluded row's figures to those of the existing one of this table.
fn additions_of_excluded(table: &str) -> String {
    let sum = |(name, may_overflow): (&str, bool)| {
        added(name, &format!("{table}.{name}"), &format!("excluded.{name}"), may_overflow)
    };
    FIGURES.map(sum).join(", ")
}

/// Adds the parameters, from this one on.
fn additions(first: usize) -> String {
    let sum = |((name, may_overflow), parameter): ((&str, bool), usize)| {
        added(name, name, &format!("?{parameter}"), may_overflow)
    };
    FIGURES.into_iter().zip(first..).map(sum).collect::<Vec<_>>().join(", ")
}

fn added(name: &str, sum: &str, more: &str, may_overflow: bool) -> String {
    if may_overflow {
        format!("{name} = CASE WHEN {sum} < {MAX_SUM} - {more} THEN {sum} + {more} ELSE {MAX_SUM} END")
    } else {
        format!("{name} = {sum} + {more}")
    }
}

/// Changes the figures by the parameters of [`differences`], from this one on.
fn changes(first: usize) -> String {
    let replaced = FIGURES[FIGURES.len() - REPLACED..].iter().zip(first..);
    let change =
        |((name, _), parameter): (&(&str, bool), usize)| format!("{name} = {}", changed(name, parameter));
    replaced.map(change).collect::<Vec<_>>().join(", ")
}

/// The parameters `of` a row, and behind them its figures.
fn with_figures<'p>(of: Params<'p>, figures: &'p [i64]) -> Vec<&'p dyn ToSql> {
    of.iter().copied().chain(figures.iter().map(|figure| figure as &dyn ToSql)).collect()
}

/// The figures of a sum, for the columns of [`FIGURES`].
fn figures(sum: UsageCounts) -> [i64; FIGURES.len()] {
    [
        count(sum.requests),
        count(sum.model_requests),
        count(sum.attempts),
        count(sum.errors),
        count(sum.prompt_tokens).min(MAX_SUM),
        count(sum.completion_tokens).min(MAX_SUM),
        count(sum.cost.0).min(MAX_SUM),
        count(sum.priced_attempts),
        count(sum.unpriced_attempts),
        count(sum.cached_tokens).min(MAX_SUM),
        count(sum.cache_write_tokens).min(MAX_SUM),
        count(sum.estimated_attempts),
    ]
}

/// The changes of the last [`REPLACED`] figures.
fn differences(before: UsageCounts, after: UsageCounts) -> [i64; REPLACED] {
    [
        change(before.errors, after.errors),
        change(before.prompt_tokens, after.prompt_tokens),
        change(before.completion_tokens, after.completion_tokens),
        change(before.cost.0, after.cost.0),
        change(before.priced_attempts, after.priced_attempts),
        change(before.unpriced_attempts, after.unpriced_attempts),
        change(before.cached_tokens, after.cached_tokens),
        change(before.cache_write_tokens, after.cache_write_tokens),
        change(before.estimated_attempts, after.estimated_attempts),
    ]
}

/// The name under which a model without a sum of its own is summed.
fn other_model(model: &str) -> String {
    format!("{}/{OTHER}", model_id::provider(model))
}

fn counts(row: &AttemptRow) -> UsageCounts {
    let used_tokens = row.prompt_tokens > 0 || row.completion_tokens > 0;
    UsageCounts {
        requests: row.is_first.into(),
        model_requests: row.is_first_of_model.into(),
        attempts: (row.outcome != CACHED).into(),
        errors: (!NON_ERROR_OUTCOMES.contains(&&*row.outcome)).into(),
        prompt_tokens: row.prompt_tokens,
        completion_tokens: row.completion_tokens,
        cost: row.cost.unwrap_or(NanoUsd(0)),
        priced_attempts: row.cost.is_some().into(),
        unpriced_attempts: (row.cost.is_none() && used_tokens).into(),
        cached_tokens: row.cached_tokens,
        cache_write_tokens: row.cache_write_tokens,
        estimated_attempts: row.is_estimated.into(),
    }
}

#[cfg(test)]
mod tests;
