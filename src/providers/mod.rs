//! Model providers: requests, responses, and the wire formats ("dialects") in between.
//!
//! All requests are chat completions: a caller's is one ([`CompletionRequest`], checked but not decoded), and a
//! verification's [`Chat`] becomes one when it is sent. A [`Dialect`] passes it on or translates it, and makes a
//! [`CompletionResponse`] of the HTTP response, or a [`FailedCall`]. Dialects do no I/O, so each is tested from recorded
//! traffic; `transport` is the only sender, and [`Provider`] combines the two. A streamed answer is a pull-based
//! [`CompletionStream`]. The sandbox answers in-process, from the same prompts.
//!
//! Nothing in this room knows about the HTTP statuses that callers get, and nothing that a provider sends is trusted:
//! bodies are capped, and texts are data.

mod call;
pub mod catalog;
mod chat;
mod completion;
mod dialect;
mod dialects;
mod failure;
mod native;
mod prompt;
mod question;
mod request;
pub mod sandbox;
#[cfg(test)]
pub(crate) mod scripted;
mod stream;

pub use call::call_policy::{CallPolicy, CallPolicyOverrides, MAX_BREAKER_PAUSE};
pub use call::key_ring::MAX_KEYS;
pub use call::probe::{KeyStatus, ProbeReport};
pub use call::provider::{CallPermit, Provider, SetupError, dialect};
pub use catalog::effort::Effort;
pub use catalog::model::{Model, Structure};
pub use catalog::settings::{Kind, ModelSettings, Settings};
pub use catalog::takes::Takes;
pub use chat::{Answer, Chat, Finish, Message, Role, Schema};
pub use completion::{
    CompletionRequest, CompletionResponse, EventOutcome, MAX_CHOICES, ResponseMeta, StreamDecoder,
};
pub use dialect::{Dialect, KeyHeader, ProviderRequest, ProviderResponse};
pub use dialects::anthropic::TokenCount;
pub use failure::{FailedCall, Failure};
pub use native::{NativeRequest, Passage, Protocol, Speaks};
pub use prompt::Prompt;
pub use question::{CompletionCall, Question};
pub use request::ReducedRequest;
pub use stream::chunk_writer::{ChoiceStage, ChunkWriter};
pub use stream::completion_stream::CompletionStream;

use crate::net::sse_decoder as sse;
