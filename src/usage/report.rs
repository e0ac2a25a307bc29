//! Reports: what was used in some days, summed as somebody asks for it. Made from the sums by day, with the names that
//! apps and keys have or had.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::days::{Days, date};
use crate::api::Service;
use crate::api::console::{Dimension, UsageReport, UsageRow, UsageSums};
use crate::money::NanoUsd;
use crate::storage::{Error, KeyName, Store, UsageCounts, UsageQuery, UsageSum};

/// A report is one page, and no larger than this.
pub(super) const MOST_ROWS: usize = 50_000;

/// What a report is asked for.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// Of which days.
    pub days: Days,
    /// Summed by what; doubled entries count once.
    pub by: Vec<Dimension>,
    /// Only of the app with this id.
    pub app_id: Option<String>,
    /// Only of the key with this id.
    pub key_id: Option<String>,
    /// Only of this service.
    pub service: Option<Service>,
    /// Only at this model.
    pub model: Option<String>,
}

/// Why there is no report.
#[derive(Debug)]
pub enum ReportError {
    /// It would have more than 50,000 rows.
    TooLong,
    /// Storage said no.
    Storage(Error),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => {
                write!(f, "this has more than {MOST_ROWS} rows; ask for fewer days, or sum by less")
            }
            Self::Storage(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong => None,
            // Its own text is shown already; what lies behind it is the source.
            Self::Storage(cause) => std::error::Error::source(cause),
        }
    }
}

impl From<Error> for ReportError {
    fn from(cause: Error) -> Self {
        Self::Storage(cause)
    }
}

/// Makes a report. Blocking; milliseconds for each ten thousand sums by day that it goes through.
pub fn report(store: &Store, asked: &ReportRequest) -> Result<UsageReport, ReportError> {
    let mut by = Vec::new();
    for dimension in &asked.by {
        if !by.contains(dimension) {
            by.push(*dimension);
        }
    }
    let sums = summed(store, asked, &by)?;
    let total = sums.iter().fold(UsageCounts::default(), |total, sum| total.plus(sum.counts));
    let (is_at_one_model, is_by_model) = (asked.model.is_some(), by.contains(&Dimension::Model));
    let names = Names::of(store, &sums)?;
    Ok(UsageReport {
        from: date(asked.days.first),
        to: date(asked.days.last),
        data: sums.into_iter().map(|sum| row(sum, is_by_model || is_at_one_model, &names)).collect(),
        totals: usage_sums(total, is_at_one_model),
        by,
        next_cursor: None,
    })
}

/// The sums in the order of a report: by day if that was asked for, then the dearest first.
fn summed(store: &Store, asked: &ReportRequest, by: &[Dimension]) -> Result<Vec<UsageSum>, ReportError> {
    let ReportRequest { days, app_id, key_id, service, model, .. } = asked.clone();
    let (first_day, last_day, by) = (days.first, days.last, by.to_vec());
    let query =
        UsageQuery { first_day, last_day, by, app_id, key_id, service, model, most_rows: MOST_ROWS + 1 };
    let mut sums = store.usage(&query)?;
    if sums.len() > MOST_ROWS {
        return Err(ReportError::TooLong);
    }
    // No two are equal: what they are summed by differs.
    sums.sort_unstable_by(|a, b| place(a).cmp(&place(b)));
    Ok(sums)
}

/// By what a sum is ordered.
fn place(sum: &UsageSum) -> impl Ord {
    let counts = &sum.counts;
    let tokens = counts.prompt_tokens.saturating_add(counts.completion_tokens);
    let ids = [&sum.service, &sum.app_id, &sum.key_id, &sum.model];
    (sum.day, Reverse((counts.cost, tokens, counts.attempts)), ids)
}

fn row(sum: UsageSum, by_model: bool, names: &Names) -> UsageRow {
    UsageRow {
        day: sum.day.map(date),
        app: sum.app_id.as_ref().and_then(|id| names.app(id)),
        app_id: sum.app_id,
        key: sum.key_id.as_ref().and_then(|id| names.key(id)),
        key_id: sum.key_id,
        model: sum.model,
        service: sum.service,
        sums: usage_sums(sum.counts, by_model),
    }
}

/// The sums as they are shown. `by_model`: whether a request counts once for each model that it asked.
pub(super) fn usage_sums(counts: UsageCounts, by_model: bool) -> UsageSums {
    UsageSums {
        requests: if by_model { counts.model_requests } else { counts.requests },
        attempts: counts.attempts,
        errors: counts.errors,
        prompt_tokens: counts.prompt_tokens,
        completion_tokens: counts.completion_tokens,
        total_tokens: counts.prompt_tokens.saturating_add(counts.completion_tokens),
        cost_usd: known_cost(counts).map(NanoUsd::usd),
        unpriced_attempts: counts.unpriced_attempts,
    }
}

/// Known costs; `None` where something was used and no price is known at all.
pub(super) fn known_cost(counts: UsageCounts) -> Option<NanoUsd> {
    let is_unknown = counts.priced_attempts == 0 && counts.unpriced_attempts > 0;
    (!is_unknown).then_some(counts.cost)
}

/// What the apps and keys of some sums are called.
pub(super) struct Names {
    apps: BTreeMap<String, String>,
    keys: BTreeMap<String, KeyName>,
}

impl Names {
    pub(super) fn of(store: &Store, sums: &[UsageSum]) -> Result<Self, Error> {
        let app_ids: BTreeSet<&str> = sums.iter().filter_map(|sum| sum.app_id.as_deref()).collect();
        let key_ids: BTreeSet<&str> = sums.iter().filter_map(|sum| sum.key_id.as_deref()).collect();
        Ok(Self { apps: store.app_names(&app_ids)?, keys: store.key_names(&key_ids)? })
    }

    fn app(&self, id: &str) -> Option<String> {
        self.apps.get(id).cloned()
    }

    pub(super) fn key(&self, id: &str) -> Option<String> {
        self.keys.get(id).map(key_label)
    }
}

/// A key as people tell it from others: its name, else `service …last4`.
pub(super) fn key_label(key: &KeyName) -> String {
    key.name.clone().unwrap_or_else(|| format!("{} …{}", key.service, key.last4))
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
