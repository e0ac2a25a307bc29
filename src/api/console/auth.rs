//! Dashboard sessions, the first console key, and what a key may find out about itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CreatedKey, Key, UsageSums};

/// `POST /v1/auth/session`: exchanges a console key for a session.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The console key.
    pub key: String,
}

/// A session, as returned by `POST` and `GET /v1/auth/session`. The session token itself is only in the cookie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// The console key that it was created from.
    pub key: Key,
    /// When it ends at the latest, RFC 3339.
    pub expires_at: String,
    /// How long it lasts without a request, in seconds.
    pub idle_seconds: u64,
    /// `sandbox` if this server simulates answers, else `live`.
    pub mode: String,
    /// The server's version.
    pub version: String,
}

/// `POST /v1/auth/setup`: the token of the one-time link for the first console key.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupRequest {
    /// The part after `#/setup/` in the link.
    pub token: String,
}

/// The first console key, shown only once, with a session created from it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetUp {
    /// The key and its record.
    pub created: CreatedKey,
    /// The session; its cookie comes with this answer.
    pub session: SessionInfo,
}

/// `GET /v1/key`: what a key, of any service, may know about itself. Costs nothing against its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnKey {
    /// Its record.
    pub key: Key,
    /// The window of 60 seconds; null if unlimited.
    pub minute: Option<WindowLeft>,
    /// The UTC day; null if unlimited.
    pub day: Option<WindowLeft>,
    /// What it has used in this UTC month.
    #[serde(default)]
    pub usage: UsageSums,
}

/// What is left of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowLeft {
    /// The limit of requests.
    pub limit: u32,
    /// How many of them are left.
    pub remaining: u32,
    /// When another request is allowed, in Unix seconds.
    pub reset: i64,
}
