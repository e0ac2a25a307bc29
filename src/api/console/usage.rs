//! Usage: requests to models and what they cost, summed from the ledger; and forgetting whom they were for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What usage is summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The UTC day.
    Day,
    /// The app.
    App,
    /// The key.
    Key,
    /// The model, by its configured identifier.
    Model,
    /// The service: verify or inference.
    Service,
    /// Whom the request was for, as its caller said.
    User,
    /// What the caller marked the request with: `name=value`. A request with several counts for each.
    Tag,
}

impl Dimension {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Day, Self::App, Self::Key, Self::Model, Self::Service, Self::User, Self::Tag];

    /// The dimension with this name on the wire.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == text)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::App => "app",
            Self::Key => "key",
            Self::Model => "model",
            Self::Service => "service",
            Self::User => "user",
            Self::Tag => "tag",
        }
    }
}

/// `GET /v1/usage?from&to&by&app&key`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// The first UTC day, `2026-11-01`.
    pub from: String,
    /// The last UTC day, inclusive.
    pub to: String,
    /// What the rows are summed by, in the order asked for.
    pub by: Vec<Dimension>,
    /// A row for each combination that has usage: by day in order, else the most expensive first.
    pub data: Vec<UsageRow>,
    /// Over the whole span, with or without a tag; requests that asked several models count once.
    pub totals: UsageSums,
    /// Always null: a report is one page.
    pub next_cursor: Option<String>,
}

/// A row of a report, with the requested dimensions only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// `2026-11-20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The app's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<String>,
    /// The app's name, also of one that was deleted; null if it is not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The key's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// A label of the key: its name, else `service …last4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The model's identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `verify` or `inference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The end user that the requests were for; empty for requests that were for nobody in particular, `other` for all
    /// those together that have no row of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The tag that the requests had; `other` as for end users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: UsageSums,
}

/// Sums over attempts at models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSums {
    /// Requests that asked a model at least once. Summed by model, a request counts once for each model it asked.
    pub requests: u64,
    /// Calls to models, including retries and fallbacks.
    pub attempts: u64,
    /// Failed attempts. A call that was cancelled because its caller left is not an error, nor is one that was
    /// interrupted by a crash of its server.
    pub errors: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
    /// Prompts and completions together.
    pub total_tokens: u64,
    /// Prompt tokens that providers read from their caches, at their own price if it is known.
    pub cached_tokens: u64,
    /// Prompt tokens that providers wrote to their caches, at their own price if it is known.
    pub cache_write_tokens: u64,
    /// Known costs, in US dollars; null if tokens were used and no price is known.
    pub cost_usd: Option<f64>,
    /// Number of attempts whose price is unknown: if this is not 0, `cost_usd` is incomplete.
    pub unpriced_attempts: u64,
    /// Number of attempts whose usage the provider did not report: estimated from the text, or charged to a budget as
    /// reserved because the caller left before the usage was known.
    pub estimated_attempts: u64,
}

/// The body of `POST /v1/usage/forget`. A name in a body gets into no log, unlike one in an address.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetUser {
    /// The end user, as requests name them or as a report does.
    pub user: String,
    /// Only the end user of this app, by its id, also of one that was deleted; null for all apps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<String>,
}

/// An end user was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgottenUser {
    /// How many sums of days, keys and models were theirs; what was used stays in all other sums.
    pub forgotten_sums: u64,
    /// RFC 3339: when that was. Calls that had not ended by then are counted afterwards.
    pub forgotten_at: String,
}
