//! Dashboard sessions, the first console key, and what a key may find out about itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CreatedKey, Key, UsageSums};

/// `POST /v1/auth/session`: a console key for a session.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The console key.
    pub key: String,
}

/// A session, as `POST` and `GET /v1/auth/session` answer. The session itself travels in a cookie alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// The console key that it was made from.
    pub key: Key,
    /// RFC 3339; it ends then, whatever happens.
    pub expires_at: String,
    /// How long it lives without a request, in seconds.
    pub idle_seconds: u64,
    /// `sandbox` where answers of this server are simulated, else `live`.
    pub mode: String,
    /// The server's version.
    pub version: String,
}

/// `POST /v1/auth/setup`: the token of the one-time link for the first console key.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupRequest {
    /// What stands behind `#/setup/` in the link.
    pub token: String,
}

/// The first console key, shown only once, with a session made from it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetUp {
    /// The key and its record.
    pub created: CreatedKey,
    /// The session, whose cookie comes with this answer.
    pub session: SessionInfo,
}

/// `GET /v1/key`: what a key, of any service, may know about itself. Costs nothing against its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnKey {
    /// Its record.
    pub key: Key,
    /// The window of 60 seconds; null where it is unlimited.
    pub minute: Option<WindowLeft>,
    /// The UTC day; null where it is unlimited.
    pub day: Option<WindowLeft>,
    /// What it has used in this UTC month.
    #[serde(default)]
    pub usage: UsageSums,
}

/// What is left of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowLeft {
    /// Requests that it admits.
    pub limit: u32,
    /// How many of them are left.
    pub remaining: u32,
    /// Unix seconds: when a request is free again.
    pub reset: i64,
}
