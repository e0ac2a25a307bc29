//! The wire: what goes over HTTP, as plain serde types shared by server and client.
//!
//! Field names, order and values are those of the API reference; our additions come after them. Nothing in this room
//! knows how a response is produced, and nothing here names another room.

pub mod cache_time;
pub mod chat;
pub mod console;
pub mod door_error;
pub mod endpoint;
pub mod error;
pub mod error_code;
pub mod guard;
pub mod models;
pub mod sse;
pub mod verify;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a key is for. A key works only with the service it was created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Fact verification, `/verify/v1`.
    Verify,
    /// Chat completions, `/inference/v1`.
    Inference,
    /// Administration, `/v1`.
    Console,
}

impl Service {
    /// All of them, in the order in which help texts list them.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Inference, Self::Console];

    /// The name inside keys and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Inference => "inference",
            Self::Console => "console",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a name that is not a service.
#[derive(Debug, thiserror::Error)]
#[error("unknown service: use verify, inference or console")]
pub struct UnknownService;

impl FromStr for Service {
    type Err = UnknownService;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|service| service.as_str() == text).ok_or(UnknownService)
    }
}
