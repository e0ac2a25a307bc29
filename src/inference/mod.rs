//! The gateway: from a model's identifier to an answer, whatever it takes.
//!
//! [`Gateway::ask`] finds the provider, keeps to its concurrency limit, retries what may pass, and books every
//! attempt on the caller's meter; [`Gateway::chat`] does the same for callers' own chat completions, fallbacks and
//! streams included. What keeps failing is paused (see `breaker`). Callers name models `<provider>/<model_name>`; the
//! model name may contain `/`.

mod breaker;
mod candidate;
mod chat;
mod gateway;
mod models;
mod most;
mod relay;
mod resume;
mod retry;
mod upstream;

use std::collections::BTreeMap;
use std::time::Duration;

pub use breaker::{BreakerReport, BreakerState};
pub use chat::{Answered, Given, SHORTLY, Unanswered, wait_for};
pub use gateway::{Gateway, Target};
pub use models::About;
pub use relay::Relay;

pub use crate::providers::{
    Answer, Chat, CompletionRequest, Failure, Fields, Finish, Json, MAX_CHOICES, Message, Reader, Role,
    Schema, SetupError, estimate,
};

/// What an operator can set about chat completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a model that has a fallback may take to its first token.
    pub first_token_timeout_with_fallback: Duration,
    /// Models to ask, in order, when one fails. All by their identifiers.
    pub fallbacks: BTreeMap<String, Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { first_token_timeout_with_fallback: Duration::from_secs(10), fallbacks: BTreeMap::new() }
    }
}
