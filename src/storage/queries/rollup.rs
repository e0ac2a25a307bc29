//! The sums of the ledger by UTC day, app, key, service and model, which reports are made from.
//!
//! They are written in the transaction of the attempts that they sum, so that neither is ever there without the other,
//! and they stay when attempts are deleted for their age. A batch is summed here before it goes to the database: its
//! rows cost a look into a small map each, and the database sees one write for each combination in the batch.
//!
//! What must hold: names of models come from callers, who may invent any number of them at a provider that is
//! configured, so only so many have sums of their own for a key and a day. All further ones of a provider are summed
//! together, under the name that the metrics have for them too. A name that has a sum keeps it, and as none is ever
//! deleted, one that has none once there are so many gets none that day.

use std::collections::BTreeMap;

use rusqlite::params;

use super::ledger::MOST;
use super::values::count;
use crate::model_id;
use crate::money::NanoUsd;
use crate::storage::db::Db;
use crate::storage::{AttemptRow, Error, UsageCounts};

/// Outcomes that are no errors.
const NO_ERRORS: [&str; 2] = ["ok", "cancelled"];

/// Names of models that get sums of their own among those of one day, app, key and service.
const MOST_MODELS: u32 = 200;

/// The name of all others of a provider, behind the provider's. A model that is called like this is one of them.
const OTHER: &str = "other";

/// Adds a batch of attempts to the sums of their days.
pub(super) fn add(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let mut sums: BTreeMap<_, UsageCounts> = BTreeMap::new();
    for row in rows {
        let of = (row.at.utc_day(), &row.app_id, &row.key_id, row.service.as_str(), &row.model);
        let sum = sums.entry(of).or_default();
        *sum = sum.plus(counts(row));
    }
    db.put_each(RAISE, ADD, sums, |((day, app_id, key_id, service, model), sum), run| {
        run(params![
            day,
            app_id,
            key_id,
            service,
            model,
            other_of(model),
            MOST_MODELS,
            count(sum.requests),
            count(sum.model_requests),
            count(sum.attempts),
            count(sum.errors),
            count(sum.prompt_tokens).min(MOST),
            count(sum.completion_tokens).min(MOST),
            count(sum.cost.0).min(MOST),
            count(sum.priced_attempts),
            count(sum.unpriced_attempts),
            MOST,
        ])
    })
}

/// To a sum that is there.
const RAISE: &str = "
    UPDATE usage_days SET
        requests = requests + ?8,
        model_requests = model_requests + ?9,
        attempts = attempts + ?10,
        errors = errors + ?11,
        prompt_tokens = CASE WHEN prompt_tokens < ?17 - ?12 THEN prompt_tokens + ?12 ELSE ?17 END,
        completion_tokens = CASE WHEN completion_tokens < ?17 - ?13 THEN completion_tokens + ?13 ELSE ?17 END,
        cost_nano_usd = CASE WHEN cost_nano_usd < ?17 - ?14 THEN cost_nano_usd + ?14 ELSE ?17 END,
        priced_attempts = priced_attempts + ?15,
        unpriced_attempts = unpriced_attempts + ?16
    WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5";

/// Counting is only done for a name that is new.
const ADD: &str = "
    INSERT INTO usage_days (day, app_id, key_id, service, model, requests, model_requests, attempts, errors,
        prompt_tokens, completion_tokens, cost_nano_usd, priced_attempts, unpriced_attempts)
    SELECT ?1, ?2, ?3, ?4,
        CASE
            WHEN EXISTS (SELECT 1 FROM usage_days
                         WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4 AND model = ?5) THEN ?5
            WHEN (SELECT count(*) FROM usage_days
                  WHERE day = ?1 AND app_id = ?2 AND key_id = ?3 AND service = ?4) < ?7 THEN ?5
            ELSE ?6
        END,
        ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
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
        unpriced_attempts = usage_days.unpriced_attempts + excluded.unpriced_attempts";

/// The name under which a model is summed that has no sum of its own.
fn other_of(model: &str) -> String {
    format!("{}/{OTHER}", model_id::provider(model))
}

fn counts(row: &AttemptRow) -> UsageCounts {
    let used_tokens = row.prompt_tokens > 0 || row.completion_tokens > 0;
    UsageCounts {
        requests: row.is_first.into(),
        model_requests: row.is_first_of_model.into(),
        attempts: 1,
        errors: (!NO_ERRORS.contains(&&*row.outcome)).into(),
        prompt_tokens: row.prompt_tokens,
        completion_tokens: row.completion_tokens,
        cost: row.cost.unwrap_or(NanoUsd(0)),
        priced_attempts: row.cost.is_some().into(),
        unpriced_attempts: (row.cost.is_none() && used_tokens).into(),
    }
}

#[cfg(test)]
#[path = "rollup_tests.rs"]
mod tests;
