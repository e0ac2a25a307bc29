//! Billing: the month so far, budgets and how much of them is used, a forecast, statements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UsageSums;

/// `GET /v1/billing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Billing {
    /// The UTC month, `2026-11`.
    pub month: String,
    /// When the next month begins and all budgets reset, RFC 3339.
    pub ends_at: String,
    /// From the month's first day until now.
    pub month_to_date: UsageSums,
    /// Forecast for the whole month; null without usage.
    pub forecast: Option<Forecast>,
    /// Every app and active key that has a budget, the most used first.
    pub budgets: Vec<BudgetLine>,
}

/// Forecast for a month, at the rate of the last days.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// For the whole month, in US dollars; known costs only.
    pub cost_usd: f64,
    /// Current cost per day, in US dollars.
    pub per_day_usd: f64,
    /// Number of days that the rate is based on.
    pub based_on_days: f64,
}

/// A budget and how much of it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLine {
    /// `app_…` or `key_…`.
    pub id: String,
    /// The app's name, or a label of the key.
    pub name: String,
    /// The app's id; for an app its own.
    pub app_id: String,
    /// For the month, in US dollars.
    pub budget_usd: f64,
    /// Used of it this month, in US dollars.
    pub spent_usd: f64,
    /// Used of it, in percent; more than 100 is possible where a budget was lowered.
    pub used_percent: f64,
    /// The highest of the thresholds 50, 80 and 100 that has been reached; null below 50.
    pub threshold: Option<u8>,
}

/// `GET /v1/apps/{id}/statement?month=2026-11`: what an app has used in a month.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    /// The app's id.
    pub app_id: String,
    /// Its name.
    pub app: String,
    /// The UTC month.
    pub month: String,
    /// Whether the month is not over yet, so that the sums may still grow.
    pub is_preliminary: bool,
    /// RFC 3339: when it was made.
    pub created_at: String,
    /// The app's monthly budget as it is now, in US dollars; null for none.
    pub budget_usd: Option<f64>,
    /// A line for each service, key and model, in this order.
    pub lines: Vec<StatementLine>,
    /// Over all lines.
    pub totals: UsageSums,
}

/// A line of a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementLine {
    /// `verify` or `inference`.
    pub service: String,
    /// The key's id.
    pub key_id: String,
    /// A label of the key.
    pub key: String,
    /// The model's identifier.
    pub model: String,
    /// What this key used of this model.
    #[serde(flatten)]
    pub sums: UsageSums,
}
