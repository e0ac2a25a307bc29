//! Model providers: what is asked, what comes back, and the dialects between.
//!
//! A [`Dialect`] turns a [`Chat`] into the bytes of one provider format and an HTTP answer back into an
//! [`Answer`] or a [`Failed`]. Dialects do no I/O, so each is tested from recorded traffic; `transport` is the
//! only sender, and [`Provider`] puts the two together. The sandbox answers in-process, from the same prompts.
//!
//! Callers' own chat completions go another way, as they are in a format already: a [`Completion`] is their request,
//! checked but not decoded, and a dialect that takes part in them ([`Dialect::completions`]) passes on or translates.
//! A streamed answer is a [`Flow`], which is pulled.
//!
//! Nothing here knows what a caller's HTTP status is, and nothing that a provider sends is trusted: bodies are
//! capped, texts are data.

mod anthropic;
mod asked;
pub mod catalog;
#[cfg(test)]
mod chat_scenarios;
mod chunks;
mod client;
mod completion;
mod connecting;
pub mod estimate;
mod failure;
mod fields;
mod flow;
mod google;
mod hole;
mod json;
mod lease;
mod link;
mod model;
mod openai;
mod opened;
mod patience;
mod provider;
mod retry_after;
mod roots;
pub mod sandbox;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
pub(crate) mod scripted;
mod settings;
pub mod sse;
mod standing;
mod status;
mod tokens;
mod transport;
mod turns;
mod written;

pub use chunks::{Chunks, Stage};
pub use completion::{Completed, Completion, Completions, Decoder, Labels, MOST_CHOICES, Step};
pub use failure::{Failed, Failure};
pub use fields::Fields;
pub use flow::Flow;
pub use json::{Json, Reader};
pub use model::{Model, Structure};
pub use patience::{LONGEST_BREAKER_PAUSE, ModelPatience, Patience};
pub use provider::{Permit, Provider, SetupError, dialect};
pub use settings::{Kind, ModelSettings, Settings};
pub use sse::Event;
pub use standing::{KeyStanding, Standing};

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::clock::Clock;
use crate::money::Tokens;

/// A conversation to be completed, in no provider's format.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Never empty.
    pub messages: Vec<Message>,
    /// 0 to 2; left out, the provider's default. Dropped for models that refuse it.
    pub temperature: Option<f64>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// The JSON shape the answer must have.
    pub schema: Option<Schema>,
}

/// One turn of a conversation.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; instructions that never change are shared.
    pub content: Cow<'static, str>,
}

/// Who speaks in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A JSON schema that an answer must meet.
#[derive(Clone, Debug)]
pub struct Schema {
    /// A name for it, `[a-z_]+`; tells the sandbox which task it is given.
    pub name: &'static str,
    /// The schema itself: objects closed, all properties required, so that strict modes take it.
    /// Shared, as every call of a kind has the same one.
    pub schema: Arc<Value>,
}

/// A model's complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// What it took, if the provider says.
    pub usage: Option<Tokens>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It hit a token limit: the text is cut.
    Length,
    /// The provider withheld it.
    ContentFilter,
}

impl Finish {
    /// What one of the chat-completion format's reasons means; `None` for calls of tools, which no [`Chat`] offers.
    fn named(reason: &str) -> Option<Self> {
        match reason {
            "stop" => Some(Self::Stop),
            "length" => Some(Self::Length),
            "content_filter" => Some(Self::ContentFilter),
            _ => None,
        }
    }
}

/// A request ready to be sent, but for address and authentication of the provider.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Behind the provider's base address, such as `/chat/completions`.
    pub path: Cow<'static, str>,
    /// Beyond the content type.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON.
    pub body: Bytes,
}

/// The header that carries a provider's key.
#[derive(Clone, Debug)]
pub struct KeyHeader {
    /// Its name.
    pub name: HeaderName,
    /// What stands before the key, such as `Bearer `.
    pub prefix: &'static str,
}

/// What came back, complete.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The HTTP status.
    pub status: u16,
    /// Those headers that formats read, of which `link::head` keeps the list; foreign.
    pub headers: HeaderMap,
    /// The body, capped by the transport; foreign.
    pub body: Bytes,
    /// Tells what dates in its headers are relative to. Most answers have none, and need no time.
    pub clock: Clock,
}

impl Incoming {
    /// What an event came with that tells a failure inside a stream: nothing of its own.
    fn in_stream() -> Self {
        Self { status: 200, headers: HeaderMap::new(), body: Bytes::new(), clock: Clock::system() }
    }
}

/// One provider format.
pub trait Dialect: Send + Sync {
    /// Where the key goes. The transport puts it there: no dialect ever sees one.
    fn key_header(&self) -> KeyHeader;

    /// The request that asks `model` to complete `chat`.
    fn request(&self, chat: &Chat, model: &Model) -> Outgoing;

    /// What the provider's bytes mean.
    ///
    /// # Errors
    /// With the [`Failure`] that status, headers and body describe; [`Failure::Malformed`] if they make no sense.
    fn answer(&self, incoming: &Incoming) -> Result<Answer, Failed>;

    /// The request (a GET without a body) for the list of models, which costs nothing and needs the key.
    fn listing(&self) -> Outgoing {
        Outgoing { path: "/models".into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// How this format takes part in callers' chat completions.
    fn completions(&self) -> &dyn Completions;
}
