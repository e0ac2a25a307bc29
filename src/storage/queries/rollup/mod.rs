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

use std::collections::BTreeMap;

use rusqlite::params;

use super::values::{MAX_SUM, change, changed, count};
use crate::model_id;
use crate::money::NanoUsd;
use crate::storage::db::Db;
use crate::storage::{AttemptRow, CACHED, Error, INTERRUPTED, UsageCounts};

/// Outcomes that do not count as errors.
const NON_ERROR_OUTCOMES: [&str; 4] = ["ok", "cancelled", INTERRUPTED, CACHED];

/// The maximum number of model names with sums of their own for one day, app, key and service.
const MAX_MODELS: u32 = 200;

/// The name, after the provider's, of all its other models. A model with this very name is counted among them.
const OTHER: &str = "other";

/// Adds a batch of attempts to the sums of their days.
pub(super) fn add(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let mut sums: BTreeMap<_, UsageCounts> = BTreeMap::new();
    for row in rows {
        let of = (row.at.utc_day(), &row.app_id, &row.key_id, row.service.as_str(), &row.model);
        let sum = sums.entry(of).or_default();
        *sum = sum.plus(counts(row));
    }
    db.upsert_each(UPDATE, INSERT, sums, |((day, app_id, key_id, service, model), sum), run| {
        run(params![
            day,
            app_id,
            key_id,
            service,
            model,
            other_model(model),
            MAX_MODELS,
            count(sum.requests),
            count(sum.model_requests),
            count(sum.attempts),
            count(sum.errors),
            count(sum.prompt_tokens).min(MAX_SUM),
            count(sum.completion_tokens).min(MAX_SUM),
            count(sum.cost.0).min(MAX_SUM),
            count(sum.priced_attempts),
            count(sum.unpriced_attempts),
            MAX_SUM,
            count(sum.cached_tokens).min(MAX_SUM),
            count(sum.cache_write_tokens).min(MAX_SUM),
            count(sum.estimated_attempts),
        ])
    })
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
    // A name has its own sum, or is summed with the other names.
    let sql = format!(
        "UPDATE usage_days SET errors = {}, prompt_tokens = {}, completion_tokens = {}, cost_nano_usd = {},
             priced_attempts = {}, unpriced_attempts = {}, cached_tokens = {}, cache_write_tokens = {},
             estimated_attempts = {}
         WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = CASE
             WHEN EXISTS (SELECT 1 FROM usage_days
                          WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5) THEN ?5
             ELSE ?6
         END",
        changed("errors", 7),
        changed("prompt_tokens", 8),
        changed("completion_tokens", 9),
        changed("cost_nano_usd", 10),
        changed("priced_attempts", 11),
        changed("unpriced_attempts", 12),
        changed("cached_tokens", 13),
        changed("cache_write_tokens", 14),
        changed("estimated_attempts", 15),
    );
    db.execute_each(&sql, sums, |((day, app_id, key_id, service, model), (before, after)), run| {
        run(params![
            day,
            app_id,
            key_id,
            service,
            model,
            other_model(model),
            change(before.errors, after.errors),
            change(before.prompt_tokens, after.prompt_tokens),
            change(before.completion_tokens, after.completion_tokens),
            change(before.cost.0, after.cost.0),
            change(before.priced_attempts, after.priced_attempts),
            change(before.unpriced_attempts, after.unpriced_attempts),
            change(before.cached_tokens, after.cached_tokens),
            change(before.cache_write_tokens, after.cache_write_tokens),
            change(before.estimated_attempts, after.estimated_attempts),
        ])
    })
}

/// Adds to an existing sum.
const UPDATE: &str = "
    UPDATE usage_days SET
        requests = requests + ?8,
        model_requests = model_requests + ?9,
        attempts = attempts + ?10,
        errors = errors + ?11,
        prompt_tokens = CASE WHEN prompt_tokens < ?17 - ?12 THEN prompt_tokens + ?12 ELSE ?17 END,
        completion_tokens = CASE WHEN completion_tokens < ?17 - ?13 THEN completion_tokens + ?13 ELSE ?17 END,
        cost_nano_usd = CASE WHEN cost_nano_usd < ?17 - ?14 THEN cost_nano_usd + ?14 ELSE ?17 END,
        priced_attempts = priced_attempts + ?15,
        unpriced_attempts = unpriced_attempts + ?16,
        cached_tokens = CASE WHEN cached_tokens < ?17 - ?18 THEN cached_tokens + ?18 ELSE ?17 END,
        cache_write_tokens = CASE WHEN cache_write_tokens < ?17 - ?19 THEN cache_write_tokens + ?19 ELSE ?17 END,
        estimated_attempts = estimated_attempts + ?20
    WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5";

/// Inserts a sum or adds to one. The names are only counted if this one has no sum yet.
const INSERT: &str = "
    INSERT INTO usage_days (day, app_id, key_id, service, model, requests, model_requests, attempts, errors,
        prompt_tokens, completion_tokens, cost_nano_usd, priced_attempts, unpriced_attempts, cached_tokens,
        cache_write_tokens, estimated_attempts)
    SELECT ?1, ?2, ?3, ?4,
        CASE
            WHEN EXISTS (SELECT 1 FROM usage_days
                         WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5) THEN ?5
            WHEN (SELECT count(*) FROM usage_days
                  WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4) < ?7 THEN ?5
            ELSE ?6
        END,
        ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?18, ?19, ?20
    WHERE true
    ON CONFLICT (day, app_id, key_id, service, model) DO UPDATE SET
        requests = usage_days.requests + excluded.requests,
        model_requests = usage_days.model_requests + excluded.model_requests,
        attempts = usage_days.attempts + excluded.attempts,
        errors = usage_days.errors + excluded.errors,
        prompt_tokens = CASE WHEN usage_days.prompt_tokens < ?17 - excluded.prompt_tokens
            THEN usage_days.prompt_tokens + excluded.prompt_tokens ELSE ?17 END,
        completion_tokens = CASE WHEN usage_days.completion_tokens < ?17 - excluded.completion_tokens
            THEN usage_days.completion_tokens + excluded.completion_tokens ELSE ?17 END,
        cost_nano_usd = CASE WHEN usage_days.cost_nano_usd < ?17 - excluded.cost_nano_usd
            THEN usage_days.cost_nano_usd + excluded.cost_nano_usd ELSE ?17 END,
        priced_attempts = usage_days.priced_attempts + excluded.priced_attempts,
        unpriced_attempts = usage_days.unpriced_attempts + excluded.unpriced_attempts,
        cached_tokens = CASE WHEN usage_days.cached_tokens < ?17 - excluded.cached_tokens
            THEN usage_days.cached_tokens + excluded.cached_tokens ELSE ?17 END,
        cache_write_tokens = CASE WHEN usage_days.cache_write_tokens < ?17 - excluded.cache_write_tokens
            THEN usage_days.cache_write_tokens + excluded.cache_write_tokens ELSE ?17 END,
        estimated_attempts = usage_days.estimated_attempts + excluded.estimated_attempts";

/// The name under which a model without a sum of its own is summed.
fn other_model(model: &str) -> String {
    format!("{}/{OTHER}", model_id::provider(model))
}

fn counts(row: &AttemptRow) -> UsageCounts {
    let used_tokens = row.prompt_tokens > 0 || row.completion_tokens > 0;
    UsageCounts {
        requests: row.is_first.into(),
        model_requests: row.is_first_of_model.into(),
        attempts: 1,
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
