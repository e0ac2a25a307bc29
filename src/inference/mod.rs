//! The gateway: calls models on behalf of verifications and callers, with retries, fallbacks and accounting.
//!
//! [`Gateway::ask`] calls a model for a verification: it finds the provider, respects its concurrency limit, retries
//! transient failures other than rate limits, and books every attempt on the caller's meter. [`Gateway::chat`] does the
//! same for callers' own chat completions, with fallbacks and streaming. What keeps failing is paused (see `breaker`).
//! Callers name models `<provider>/<model_name>`; the model name may contain `/`.

mod breaker;
mod call;
mod candidate;
mod chat;
mod fallbacks;
mod followed;
mod gateway;
mod max_cost;
mod models;
mod native;
mod noted;
mod pool;
mod prompt_parts;
mod relay;
mod resume;
mod retry;
mod upstream;

use std::collections::BTreeMap;
use std::time::Duration;

pub use breaker::{BreakerReport, BreakerState};
pub use chat::{ChatAnswer, ChatError, ChatReply, wait_before_retry};
pub use fallbacks::{WILDCARD, is_pattern};
pub use gateway::{Gateway, Target};
pub use models::ModelInfo;
pub use native::{Native, NotCounted};
pub use pool::{Balance, Conversation, Pool};
pub use relay::Relay;
pub use retry::jitter;

use crate::api::cache_time::CacheTime;
use crate::api::guard::{BlockOn, Guard};
pub use crate::json::fields::Fields;
pub use crate::json::reader::{Json, Reader};
pub use crate::providers::catalog::estimate;
pub use crate::providers::{
    Answer, Chat, CompletionRequest, Effort, Failure, Finish, MAX_BREAKER_PAUSE, MAX_CHOICES, Message,
    NativeRequest, Prompt, Protocol, Role, Schema, SetupError, Takes,
};

/// The operator's settings for chat completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The timeout for the first token of a stream of a model that has a fallback.
    pub first_token_timeout_with_fallback: Duration,
    /// The timeout for an answer, not streamed, of a model that has a fallback. Longer than that for a first token: it
    /// passes only once the last token is there.
    pub whole_answer_timeout_with_fallback: Duration,
    /// The models to call, in order, when the one in the key fails; all by their full identifiers, or by patterns.
    pub fallbacks: BTreeMap<String, Vec<String>>,
    /// Whether what a model's format does not have is left out of a request, instead of the request being refused.
    pub drop_unsupported: bool,
    /// The longest that answers are kept for callers who ask for it; `None` if they are not.
    pub max_cache: Option<Duration>,
    /// What is done with the verdicts on the answers of all requests; `None` if they are not verified.
    pub verify: Option<Guard>,
    /// What blocks an answer.
    pub block_on: Vec<BlockOn>,
    /// By name.
    pub pools: BTreeMap<String, Pool>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_token_timeout_with_fallback: Duration::from_secs(10),
            whole_answer_timeout_with_fallback: Duration::from_mins(1),
            fallbacks: BTreeMap::new(),
            drop_unsupported: false,
            max_cache: Some(CacheTime::MAX),
            verify: None,
            block_on: BlockOn::DEFAULT.to_vec(),
            pools: BTreeMap::new(),
        }
    }
}
