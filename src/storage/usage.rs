//! Usage sums over the ledger's attempts: the query and its results; and what identifies a call under way.

use std::sync::Arc;

use crate::api::Service;
use crate::api::console::Dimension;
use crate::clock::Time;
use crate::money::NanoUsd;

/// The outcome of an attempt that was under way when its server died.
pub const INTERRUPTED: &str = "interrupted";

/// The outcome of an attempt that was none: the answer was found among those that are kept.
pub const CACHED: &str = "cached";

/// The place of a call in the journal of calls under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The random id of the server that makes the call.
    pub server: Arc<str>,
    /// The number of its request among those of this server that have calls in the journal.
    pub request: u64,
    /// Its own number; `None` if it is not in the journal, but another call of its request is.
    pub number: Option<u64>,
}

/// Which attempts are summed, and by which dimensions.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    /// The first UTC day, since the epoch.
    pub first_day: i64,
    /// The last UTC day, since the epoch, inclusive.
    pub last_day: i64,
    /// There is a sum for each combination of these that has attempts; without any, a single sum. Not by user and tag at
    /// once.
    pub by: Vec<Dimension>,
    /// Only of this app.
    pub app_id: Option<String>,
    /// Only of this key.
    pub key_id: Option<String>,
    /// Only of this service.
    pub service: Option<Service>,
    /// Only of this model.
    pub model: Option<String>,
    /// The maximum number of sums returned.
    pub max_rows: usize,
}

impl UsageQuery {
    /// All usage of these days, in one sum.
    pub const fn days(first_day: i64, last_day: i64) -> Self {
        Self {
            first_day,
            last_day,
            by: Vec::new(),
            app_id: None,
            key_id: None,
            service: None,
            model: None,
            max_rows: usize::MAX,
        }
    }
}

/// One sum. A field is `None` if the query did not group by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UsageSum {
    /// The UTC day, since the epoch.
    pub day: Option<i64>,
    /// The app's id; empty for none.
    pub app_id: Option<String>,
    /// The key's id; empty for none.
    pub key_id: Option<String>,
    /// The service's name.
    pub service: Option<String>,
    /// The model's identifier.
    pub model: Option<String>,
    /// The end user or the tag, whichever the query grouped by.
    pub label: Option<String>,
    /// The sums themselves.
    pub counts: UsageCounts,
}

/// The figures that attempts add up to. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UsageCounts {
    /// Requests that asked a model at least once.
    pub requests: u64,
    /// Requests counted once for each model that they asked.
    pub model_requests: u64,
    /// Calls of models.
    pub attempts: u64,
    /// Attempts that failed, without those that were cancelled or interrupted.
    pub errors: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of completions.
    pub completion_tokens: u64,
    /// The part of the prompts that was read from providers' caches.
    pub cached_tokens: u64,
    /// The part of the prompts that was written to providers' caches.
    pub cache_write_tokens: u64,
    /// Known costs.
    pub cost: NanoUsd,
    /// Attempts whose cost is known, even if it is zero.
    pub priced_attempts: u64,
    /// Attempts that used tokens at an unknown price.
    pub unpriced_attempts: u64,
    /// Attempts whose tokens and cost are not what the provider has reported.
    pub estimated_attempts: u64,
}

impl UsageCounts {
    /// What is left without the other.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            model_requests: self.model_requests.saturating_sub(other.model_requests),
            attempts: self.attempts.saturating_sub(other.attempts),
            errors: self.errors.saturating_sub(other.errors),
            prompt_tokens: self.prompt_tokens.saturating_sub(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_sub(other.completion_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(other.cache_write_tokens),
            cost: self.cost.minus(other.cost),
            priced_attempts: self.priced_attempts.saturating_sub(other.priced_attempts),
            unpriced_attempts: self.unpriced_attempts.saturating_sub(other.unpriced_attempts),
            estimated_attempts: self.estimated_attempts.saturating_sub(other.estimated_attempts),
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            model_requests: self.model_requests.saturating_add(other.model_requests),
            attempts: self.attempts.saturating_add(other.attempts),
            errors: self.errors.saturating_add(other.errors),
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cost: self.cost.plus(other.cost),
            priced_attempts: self.priced_attempts.saturating_add(other.priced_attempts),
            unpriced_attempts: self.unpriced_attempts.saturating_add(other.unpriced_attempts),
            estimated_attempts: self.estimated_attempts.saturating_add(other.estimated_attempts),
        }
    }
}

/// What people know a key by, revoked or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyName {
    /// Given at creation.
    pub name: Option<String>,
    /// What it is for.
    pub service: Service,
    /// Its last four characters.
    pub last4: String,
}

/// An app, possibly deleted: its usage stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PossiblyDeletedApp {
    /// `app_…`.
    pub id: String,
    /// Its last name.
    pub name: String,
    /// What it may spend in a calendar month (UTC).
    pub budget: Option<NanoUsd>,
    /// When it was deleted.
    pub deleted_at: Option<Time>,
}

/// A budget that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRow {
    /// Whose it is.
    pub holder: BudgetHolder,
    /// The id of that app or key.
    pub id: String,
    /// The app's id; for an app its own.
    pub app_id: String,
    /// What it may spend in a calendar month (UTC).
    pub budget: NanoUsd,
}

/// Who has a budget, with what people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetHolder {
    /// An app of this name.
    App(String),
    /// A key.
    Key(KeyName),
}
