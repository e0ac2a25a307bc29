//! Sums over the ledger's attempts, as they are asked for and as they come back.

use crate::api::Service;
use crate::api::console::Dimension;
use crate::clock::Time;
use crate::money::NanoUsd;

/// Which attempts are summed, and by what.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    /// The first UTC day, since the epoch.
    pub first_day: i64,
    /// The last UTC day, since the epoch; it is part of the sums.
    pub last_day: i64,
    /// A sum for each combination of these that has attempts; of none, one sum.
    pub by: Vec<Dimension>,
    /// Only of this app.
    pub app_id: Option<String>,
    /// Only of this key.
    pub key_id: Option<String>,
    /// Only of this service.
    pub service: Option<Service>,
    /// Only at this model.
    pub model: Option<String>,
    /// No more sums than this come back.
    pub most_rows: usize,
}

impl UsageQuery {
    /// Everything of these days, in one sum.
    pub const fn days(first_day: i64, last_day: i64) -> Self {
        Self {
            first_day,
            last_day,
            by: Vec::new(),
            app_id: None,
            key_id: None,
            service: None,
            model: None,
            most_rows: usize::MAX,
        }
    }
}

/// One sum. Of what it was not summed by, it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The sums themselves.
    pub counts: UsageCounts,
}

/// What attempts sum up to. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Requests that asked a model at least once.
    pub requests: u64,
    /// The same, but a request counts once for each model that it asked.
    pub model_requests: u64,
    /// Calls of models.
    pub attempts: u64,
    /// Of these, those that failed; not those that were cancelled.
    pub errors: u64,
    /// Of prompts.
    pub prompt_tokens: u64,
    /// Of completions.
    pub completion_tokens: u64,
    /// Known costs.
    pub cost: NanoUsd,
    /// Attempts whose cost is known, be it zero.
    pub priced_attempts: u64,
    /// Attempts that used tokens at an unknown price.
    pub unpriced_attempts: u64,
}

impl UsageCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            model_requests: self.model_requests.saturating_add(other.model_requests),
            attempts: self.attempts.saturating_add(other.attempts),
            errors: self.errors.saturating_add(other.errors),
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            cost: self.cost.plus(other.cost),
            priced_attempts: self.priced_attempts.saturating_add(other.priced_attempts),
            unpriced_attempts: self.unpriced_attempts.saturating_add(other.unpriced_attempts),
        }
    }
}

/// What a key is called by, revoked or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyName {
    /// Given at creation.
    pub name: Option<String>,
    /// What it is for.
    pub service: Service,
    /// Its last four characters.
    pub last4: String,
}

/// An app, also one that was deleted: its usage stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppOnceMade {
    /// `app_…`.
    pub id: String,
    /// As it was last called.
    pub name: String,
    /// What it may spend in a calendar month (UTC).
    pub budget: Option<NanoUsd>,
    /// Since when it is gone.
    pub deleted_at: Option<Time>,
}

/// A budget that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetRow {
    /// Whose it is.
    pub of: BudgetHolder,
    /// That app's or key's id.
    pub id: String,
    /// The app's id; for an app its own.
    pub app_id: String,
    /// What it may spend in a calendar month (UTC).
    pub budget: NanoUsd,
}

/// Who has a budget, with what people call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetHolder {
    /// An app of this name.
    App(String),
    /// A key.
    Key(KeyName),
}
