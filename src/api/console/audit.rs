//! The audit log: who did what, when, to which object.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The channel through which a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// `/v1` with a console key.
    Api,
    /// A session of the dashboard.
    Dashboard,
    /// The command line, on the database itself.
    Cli,
    /// The server itself.
    Server,
}

impl Channel {
    /// The name on the wire and in storage.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Dashboard => "dashboard",
            Self::Cli => "cli",
            Self::Server => "server",
        }
    }
}

/// All values of an entry's `action`.
pub const AUDIT_ACTIONS: [&str; 12] = [
    "app.created",
    "app.updated",
    "app.deleted",
    "key.created",
    "key.updated",
    "key.revoked",
    "key.rotated",
    "session.created",
    "session.ended",
    "session.refused",
    "console.set_up",
    "user.forgotten",
];

/// The error for a text that is not a [`Channel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a channel")]
pub struct UnknownChannel;

impl FromStr for Channel {
    type Err = UnknownChannel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Api, Self::Dashboard, Self::Cli, Self::Server];
        all.into_iter().find(|channel| channel.as_str() == text).ok_or(UnknownChannel)
    }
}

/// An entry of the audit. Entries are never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// `aud_…`.
    pub id: String,
    /// RFC 3339.
    pub at: String,
    /// The id of the console key that acted; null on the command line and for the server itself.
    pub actor: Option<String>,
    /// That key's name, if it has one; on the command line the machine's user, as the environment names them.
    pub actor_name: Option<String>,
    /// The channel.
    pub channel: Channel,
    /// What was done: `app.created`, `app.updated`, `app.deleted`, `key.created`, `key.updated`, `key.revoked`,
    /// `key.rotated`, `session.created`, `session.ended`,
    /// `session.refused` (a login with a wrong key or setup token), `console.set_up`, `user.forgotten` (an end user).
    pub action: String,
    /// The id of what it was done to; `console` for a refused login, the app's or `usage` for a forgotten end user.
    pub object: String,
    /// Its name at that time, if it has one.
    pub object_name: Option<String>,
    /// What was set, without secrets; an object, empty if there is nothing to add.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub details: serde_json::Value,
    /// The address it came from; null on the command line.
    pub address: Option<String>,
    /// The request that did it; null on the command line.
    pub request_id: Option<String>,
}
