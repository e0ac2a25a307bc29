//! Model providers: requests, responses, and the wire formats ("dialects") in between.
//!
//! A [`Dialect`] encodes a [`Chat`] in one provider's format and decodes the HTTP response into an [`Answer`] or a
//! [`FailedCall`]. Dialects do no I/O, so each is tested from recorded traffic; `transport` is the only sender, and
//! [`Provider`] combines the two. The sandbox answers in-process, from the same prompts.
//!
//! Callers' own chat completions take another path, as they already are in a format: a [`CompletionRequest`] is
//! checked but not decoded, and each dialect ([`Dialect::completions`]) passes it on or translates it. A streamed
//! answer is a pull-based [`CompletionStream`].
//!
//! Nothing in this room knows about the HTTP statuses that callers get, and nothing that a provider sends is trusted:
//! bodies are capped, and texts are data.

mod call;
pub mod catalog;
mod completion;
mod dialects;
mod failure;
mod request;
pub mod sandbox;
#[cfg(test)]
pub(crate) mod scripted;
mod stream;

pub use call::call_policy::{CallPolicy, CallPolicyOverrides, MAX_BREAKER_PAUSE};
pub use call::probe::{KeyStatus, ProbeReport};
pub use call::provider::{Permit, Provider, SetupError, dialect};
pub use catalog::effort::Effort;
pub use catalog::model::{Model, Structure};
pub use catalog::settings::{Kind, ModelSettings, Settings};
pub use completion::{
    CompletionDialect, CompletionRequest, CompletionResponse, EventOutcome, MAX_CHOICES, ResponseMeta,
    StreamDecoder,
};
pub use failure::{FailedCall, Failure};
pub use request::ReducedRequest;
pub use stream::chunk_writer::{ChoiceStage, ChunkWriter};
pub use stream::completion_stream::CompletionStream;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::clock::Clock;
use crate::money::Tokens;
use crate::net::sse_decoder as sse;

/// A conversation to be completed, independent of any provider's format.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Never empty.
    pub messages: Vec<Message>,
    /// From 0 to 2; `None` for the provider's default. Dropped for models that refuse it.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
    pub max_tokens: Option<u32>,
    /// The JSON schema that the answer must conform to.
    pub schema: Option<Schema>,
    /// How long a model that reasons may think; others are not told.
    pub effort: Effort,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text; constant instructions are borrowed.
    pub content: Cow<'static, str>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A JSON schema that an answer must conform to.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its name, `[a-z_]+`; tells the sandbox which task it is given.
    pub name: &'static str,
    /// Shared, as all calls of a kind use the same one.
    definition: Arc<Definition>,
}

#[derive(Debug)]
struct Definition {
    value: Value,
    /// As most calls send it.
    json: Box<RawValue>,
}

impl Schema {
    /// A schema, whose objects are closed and require all properties, so that strict modes accept it.
    pub fn new(name: &'static str, value: Value) -> Self {
        // A value can always be written.
        let json = to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { name, definition: Arc::new(Definition { value, json }) }
    }

    /// The schema itself.
    pub fn value(&self) -> &Value {
        &self.definition.value
    }

    /// The same as JSON.
    pub fn json(&self) -> &RawValue {
        &self.definition.json
    }
}

/// A model's complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// The token usage, if the provider reports it. Boxed, as thousands of votes wait with room for an answer.
    pub usage: Option<Box<Tokens>>,
    /// The model that the provider says has answered, if it says so.
    pub model: Option<Box<str>>,
}

impl Answer {
    /// The name of a model as a provider reports it, at most [`MAX_MODEL_NAME_BYTES`] of it.
    fn reported_model(name: &str) -> Option<Box<str>> {
        let name = &name[..name.floor_char_boundary(MAX_MODEL_NAME_BYTES)];
        (!name.is_empty()).then(|| name.into())
    }
}

/// The longest reported name of a model, in bytes; longer ones are cut.
const MAX_MODEL_NAME_BYTES: usize = 200;

/// Why an answer ended, the most severe last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It hit a token limit: the text is truncated.
    Length,
    /// The provider withheld the answer or part of it.
    ContentFilter,
}

impl Finish {
    /// The meaning of a finish reason of the chat-completion format; `None` for tool calls, as no [`Chat`] offers
    /// tools.
    fn from_reason(reason: &str) -> Option<Self> {
        match reason {
            "stop" => Some(Self::Stop),
            "length" => Some(Self::Length),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }
}

/// A request as a dialect encodes it; the transport adds the provider's address and the key.
#[derive(Clone, Debug)]
pub struct ProviderRequest {
    /// Appended to the provider's base URL, such as `/chat/completions`.
    pub path: Cow<'static, str>,
    /// Headers other than the content type.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON.
    pub body: Bytes,
}

/// The header that carries a provider's key.
#[derive(Clone, Debug)]
pub struct KeyHeader {
    /// Its name.
    pub name: HeaderName,
    /// Precedes the key in the value, such as `Bearer `.
    pub prefix: &'static str,
}

/// A complete HTTP response of a provider.
#[derive(Clone, Debug)]
pub struct ProviderResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers that dialects read (`crate::net::outbound::http1::head` has the list); untrusted.
    pub headers: HeaderMap,
    /// The body, capped by the transport; untrusted.
    pub body: Bytes,
    /// The time that dates in headers are relative to. A clock rather than a time, as most responses have no such date.
    pub clock: Clock,
}

impl ProviderResponse {
    /// The response to attribute an error event inside a stream to: such an event has no status or headers of its own.
    fn of_stream_event() -> Self {
        Self { status: 200, headers: HeaderMap::new(), body: Bytes::new(), clock: Clock::system() }
    }
}

/// One provider format.
pub trait Dialect: Send + Sync {
    /// The header for the key. The transport sets it: no dialect ever sees a key.
    fn key_header(&self) -> KeyHeader;

    /// Encodes the request that asks `model` to complete `chat`.
    fn request(&self, chat: &Chat, model: &Model) -> ProviderRequest;

    /// Decodes a response.
    ///
    /// # Errors
    /// With the [`Failure`] that status, headers and body describe; [`Failure::Malformed`] if they make no sense.
    fn answer(&self, response: &ProviderResponse) -> Result<Answer, FailedCall>;

    /// The request (a GET without a body) for the list of models, which is free of charge and requires the key.
    fn listing(&self) -> ProviderRequest {
        ProviderRequest { path: "/models".into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// This format's side of callers' chat completions.
    fn completions(&self) -> &dyn CompletionDialect;
}
