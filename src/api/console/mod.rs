//! The console area, `/v1`: records of apps and keys here, the rest in submodules. A record never contains a key, only
//! its last four characters.
//!
//! The command line's `--json` prints these same records.

mod audit;
mod auth;
mod billing;
pub mod csv;
mod end_users;
mod key_settings;
mod requests;
mod trials;
mod usage;

pub use audit::{AUDIT_ACTIONS, AuditEntry, Channel};
pub use auth::{NewSession, OwnKey, SessionInfo, SetUp, SetupRequest, WindowLeft};
pub use billing::{Billing, BudgetLine, Forecast, Statement, StatementLine};
pub use end_users::OwnEndUserLimits;
pub use key_settings::{CreateKey, KeyChange, KeySettings, LimitsChange};
pub use requests::{AppPatch, CreateApp, Rotation};
pub use trials::{DomainOffer, ModelOffer, TryOffer};
pub use usage::{Dimension, ForgetUser, ForgottenUser, UsageReport, UsageRow, UsageSums};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Service;
use super::guard::Guard;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The records, in the list's order.
    pub data: Vec<T>,
    /// Send it as `cursor` for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// An app: groups keys, usage and a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct App {
    /// `app_…`.
    pub id: String,
    /// Unique among the apps that are not deleted.
    pub name: String,
    /// Monthly budget in US dollars; null for none.
    pub budget_usd: Option<f64>,
    /// What its keys have spent in this UTC month, in US dollars; known costs only, null where tokens
    /// were used and no price is known at all.
    #[serde(default)]
    pub spent_usd: Option<f64>,
    /// How much of the budget that is, in percent to one decimal; null without a budget.
    #[serde(default)]
    pub budget_used_percent: Option<f64>,
    /// The highest of the thresholds 50, 80 and 100 percent that is reached; null below 50 and without a budget.
    #[serde(default)]
    pub budget_threshold: Option<u8>,
    /// RFC 3339.
    pub created_at: String,
    /// How many of its keys are usable now.
    pub active_keys: u64,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// Usable.
    Active,
    /// Past its expiry.
    Expired,
    /// Revoked, permanently.
    Revoked,
}

impl KeyState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Active, Self::Expired, Self::Revoked];

    /// The state with this name on the wire.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// A key's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    /// `key_…`.
    pub id: String,
    /// The app it belongs to.
    pub app_id: String,
    /// That app's name.
    pub app: String,
    /// What it is for.
    pub service: Service,
    /// Given at creation; null for none.
    pub name: Option<String>,
    /// The last four characters of the key, to tell keys apart.
    pub last4: String,
    /// Its state.
    pub state: KeyState,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; null for never.
    pub expires_at: Option<String>,
    /// RFC 3339, at most a minute late; null for never.
    pub last_used_at: Option<String>,
    /// RFC 3339; null while it is not revoked.
    pub revoked_at: Option<String>,
    /// The id of the key that replaced it when it was rotated; null if it was not rotated.
    #[serde(default)]
    pub replaced_by: Option<String>,
    /// Own limits; null fields follow the server's.
    pub limits: KeyLimits,
    /// Patterns of the models it may use; empty for all.
    pub models: Vec<String>,
    /// Networks (CIDR) it may be used from; empty for all.
    pub addresses: Vec<String>,
    /// Monthly budget in US dollars; null for none.
    pub budget_usd: Option<f64>,
    /// What it has spent in this UTC month, in US dollars; known costs only, null where tokens
    /// were used and no price is known at all.
    #[serde(default)]
    pub spent_usd: Option<f64>,
    /// How much of the budget that is, in percent to one decimal; null without a budget.
    #[serde(default)]
    pub budget_used_percent: Option<f64>,
    /// The highest of the thresholds 50, 80 and 100 percent that is reached; null below 50 and without a budget.
    #[serde(default)]
    pub budget_threshold: Option<u8>,
    /// How long to cache answers by default, such as `1h`; null for no caching.
    #[serde(default)]
    pub cache: Option<String>,
    /// What is done with the verdicts on its answers; null if they are verified for other reasons only.
    #[serde(default)]
    pub verify: Option<Guard>,
    /// Own limits for each end user; null for the server's.
    #[serde(default)]
    pub end_users: Option<OwnEndUserLimits>,
}

/// A key's own limits. `0` is unlimited, null the server's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyLimits {
    /// Requests in any 60 seconds.
    #[serde(default)]
    pub per_minute: Option<u32>,
    /// Requests in a UTC day.
    #[serde(default)]
    pub per_day: Option<u32>,
}

/// A key's record with the key itself, returned only at creation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedKey {
    /// The full key, shown only once.
    pub key: String,
    /// Its record.
    #[serde(flatten)]
    pub record: Key,
}

/// An app that was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedApp {
    /// `app_…`.
    pub id: String,
    /// RFC 3339: when it was first deleted.
    pub deleted_at: String,
    /// How many keys were revoked by this deletion; 0 if it was deleted before.
    pub revoked_keys: u64,
}

/// A key that is revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokedKey {
    /// `key_…`.
    pub id: String,
    /// RFC 3339: when it was first revoked.
    pub revoked_at: String,
}
