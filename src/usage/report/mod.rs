//! Reports: the usage of a range of days, grouped as requested. Built from the daily sums, with the current or last
//! names of apps and keys.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::days::{Days, Month, date};
use crate::api::Service;
use crate::api::console::{Dimension, UsageReport, UsageRow, UsageSums};
use crate::clock::Time;
use crate::money::NanoUsd;
use crate::storage::{Error, KeyName, Store, UsageCounts, UsageQuery, UsageSum};

/// The maximum size of a report, which is a single page.
pub(super) const MAX_ROWS: usize = 50_000;

/// The request for a report.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// The days.
    pub days: Days,
    /// The dimensions to group by; duplicates are ignored.
    pub by: Vec<Dimension>,
    /// Only of the app with this id.
    pub app_id: Option<String>,
    /// Only of the key with this id.
    pub key_id: Option<String>,
    /// Only of this service.
    pub service: Option<Service>,
    /// Only of this model.
    pub model: Option<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It would have more than 50,000 rows.
    #[error("the report has more than {MAX_ROWS} rows; ask for fewer days or fewer dimensions")]
    TooLong,
    /// It would be by end user and by tag.
    #[error("usage is summed by user or by tag, not by both at once")]
    ByUserAndTag,
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] Error),
}

/// Creates a report. Blocking; takes milliseconds for every ten thousand daily sums that it scans.
pub fn report(store: &Store, request: &ReportRequest) -> Result<UsageReport, ReportError> {
    let mut by = Vec::new();
    for dimension in &request.by {
        if !by.contains(dimension) {
            by.push(*dimension);
        }
    }
    let (sums, total) = summed(store, request, &by)?;
    let (is_at_one_model, is_by_model) = (request.model.is_some(), by.contains(&Dimension::Model));
    let names = Names::of(store, &sums)?;
    Ok(UsageReport {
        from: date(request.days.first),
        to: date(request.days.last),
        data: sums.into_iter().map(|sum| row(sum, &by, is_by_model || is_at_one_model, &names)).collect(),
        totals: usage_sums(total, is_at_one_model),
        by,
        next_cursor: None,
    })
}

/// What a key has used in the UTC month of `now`. Blocking, as [`report`].
pub fn month_of_key(store: &Store, key_id: &str, now: Time) -> Result<UsageSums, Error> {
    let days = Month::of(now).days();
    let key_id = Some(key_id.to_owned());
    let sums = store.usage(&UsageQuery { key_id, ..UsageQuery::days(days.first, days.last) })?;
    Ok(usage_sums(total(&sums), false))
}

fn total(sums: &[UsageSum]) -> UsageCounts {
    sums.iter().fold(UsageCounts::default(), |total, sum| total.plus(sum.counts))
}

/// The sums in the order of a report, by day if that was requested, then by descending cost; and the total of all usage,
/// whatever it is summed by.
fn summed(
    store: &Store,
    request: &ReportRequest,
    by: &[Dimension],
) -> Result<(Vec<UsageSum>, UsageCounts), ReportError> {
    let ReportRequest { days, app_id, key_id, service, model, .. } = request.clone();
    let (first_day, last_day) = (days.first, days.last);
    let query = UsageQuery {
        first_day,
        last_day,
        by: by.to_vec(),
        app_id,
        key_id,
        service,
        model,
        max_rows: MAX_ROWS + 1,
    };
    let mut sums = store.usage(&query)?;
    let total = match (by.contains(&Dimension::User), by.contains(&Dimension::Tag)) {
        (true, true) => return Err(ReportError::ByUserAndTag),
        (false, false) => total(&sums),
        (is_by_user, _) => {
            let by =
                by.iter().copied().filter(|by| !matches!(by, Dimension::User | Dimension::Tag)).collect();
            let all = store.usage(&UsageQuery { by, ..query })?;
            let total = total(&all);
            if is_by_user {
                sums.extend(for_nobody(&all, &sums));
            }
            total
        }
    };
    if sums.len() > MAX_ROWS {
        return Err(ReportError::TooLong);
    }
    // No two are equal, as they differ in what they are grouped by.
    sums.sort_unstable_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    Ok((sums, total))
}

/// What is left of `all` usage without that of end users.
fn for_nobody(all: &[UsageSum], of_users: &[UsageSum]) -> Vec<UsageSum> {
    let without_user =
        |sum: &UsageSum| UsageSum { label: None, counts: UsageCounts::default(), ..sum.clone() };
    let mut left: HashMap<UsageSum, UsageCounts> =
        all.iter().map(|sum| (without_user(sum), sum.counts)).collect();
    for sum in of_users {
        if let Some(counts) = left.get_mut(&without_user(sum)) {
            *counts = counts.minus(sum.counts);
        }
    }
    left.retain(|_, counts| *counts != UsageCounts::default());
    left.into_iter().map(|(of, counts)| UsageSum { label: Some(String::new()), counts, ..of }).collect()
}

/// The sort key of a sum.
fn sort_key(sum: &UsageSum) -> impl Ord {
    let counts = &sum.counts;
    let tokens = counts.prompt_tokens.saturating_add(counts.completion_tokens);
    let ids = [&sum.service, &sum.app_id, &sum.key_id, &sum.model, &sum.label];
    (sum.day, Reverse((counts.cost, tokens, counts.attempts)), ids)
}

fn row(sum: UsageSum, by: &[Dimension], by_model: bool, names: &Names) -> UsageRow {
    let (user, tag) = if by.contains(&Dimension::Tag) { (None, sum.label) } else { (sum.label, None) };
    UsageRow {
        day: sum.day.map(date),
        app: sum.app_id.as_ref().and_then(|id| names.app(id)),
        app_id: sum.app_id,
        key: sum.key_id.as_ref().and_then(|id| names.key(id)),
        key_id: sum.key_id,
        model: sum.model,
        service: sum.service,
        user,
        tag,
        sums: usage_sums(sum.counts, by_model),
    }
}

/// The sums as they are presented. `by_model`: whether a request counts once for each model that it asked.
pub(super) fn usage_sums(counts: UsageCounts, by_model: bool) -> UsageSums {
    UsageSums {
        requests: if by_model { counts.model_requests } else { counts.requests },
        attempts: counts.attempts,
        errors: counts.errors,
        prompt_tokens: counts.prompt_tokens,
        completion_tokens: counts.completion_tokens,
        cached_tokens: counts.cached_tokens,
        cache_write_tokens: counts.cache_write_tokens,
        total_tokens: counts.prompt_tokens.saturating_add(counts.completion_tokens),
        cost_usd: known_cost(counts).map(NanoUsd::usd),
        unpriced_attempts: counts.unpriced_attempts,
        estimated_attempts: counts.estimated_attempts,
    }
}

/// The known costs; `None` if something was used and no price is known at all.
pub(super) fn known_cost(counts: UsageCounts) -> Option<NanoUsd> {
    let is_unknown = counts.priced_attempts == 0 && counts.unpriced_attempts > 0;
    (!is_unknown).then_some(counts.cost)
}

/// The names of the apps and keys in some sums.
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

    /// A key's label. A console key calls no model: its holder has tried something out in the dashboard.
    pub(super) fn key(&self, id: &str) -> Option<String> {
        let key = self.keys.get(id)?;
        let label = key_label(key);
        Some(if key.service == Service::Console { format!("{label} (dashboard)") } else { label })
    }
}

/// How people recognise a key: its name, or else `service …last4`.
pub(super) fn key_label(key: &KeyName) -> String {
    key.name.clone().unwrap_or_else(|| format!("{} …{}", key.service, key.last4))
}

#[cfg(test)]
mod tests;
