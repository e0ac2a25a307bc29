//! Chat completions for callers: what they ask, and how a format takes part in them.
//!
//! Callers speak the chat-completion format. A [`Completion`] is their request, checked but not decoded: formats
//! that are the same pass its fields on, formats that differ translate what they can express and name what they
//! cannot ([`Failure::Unsupported`]). Answers are bytes in the same format, written by the format itself when they
//! are complete and by way of [`Chunks`] when they are streamed.

use std::sync::Arc;

use bytes::Bytes;

use super::chunks::Chunks;
use super::fields::Fields;
use super::sse::Event;
use super::{Failed, Failure, Incoming, Model, Outgoing};
use crate::money::Tokens;

/// The most answers that may be asked for at once, as in the format's own reference; no stream keeps more apart.
pub const MOST_CHOICES: u32 = 128;

/// More calls of tools than any answer holds.
pub(super) const MOST_TOOL_CALLS: usize = 1024;

/// A caller's request for a chat completion. Its documented fields have been checked: `messages` is an array of
/// objects with known roles, numbers are in their ranges.
#[derive(Debug)]
pub struct Completion<'a> {
    /// All fields, as sent.
    pub fields: Fields<'a>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the caller wants to read the usage at the end of a stream.
    pub include_usage: bool,
    /// How many answers are asked for, of which there are at most [`MOST_CHOICES`].
    pub choices: u32,
    /// The prompt's length, estimated: for accounting where the provider does not say.
    pub prompt_tokens: u64,
}

/// What an answer says of itself, whoever gave it.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The full identifier of the model that answers.
    pub model: Arc<str>,
    /// Unix seconds, for providers that do not say.
    pub created: i64,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Completed {
    /// For the caller: a `chat.completion` object.
    pub body: Bytes,
    /// What it took; estimated if the provider did not say, as `body` then says.
    pub usage: Tokens,
}

/// How a format takes part in chat completions.
pub trait Completions: Send + Sync {
    /// The request that asks `model` for this completion.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for a field that would change the answer and that the format cannot express.
    fn chat_request(&self, asked: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure>;

    /// What the provider's bytes mean: any status of failure, or a complete answer.
    ///
    /// # Errors
    /// As [`super::Dialect::answer`].
    fn chat_answer(
        &self,
        incoming: &Incoming,
        asked: &Completion<'_>,
        labels: &Labels,
    ) -> Result<Completed, Failed>;

    /// A reader for one streamed answer.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// What an event of a stream means for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to come.
    More,
    /// The provider says that this was all.
    End,
    /// The event is of no kind that is known, and is left out.
    Skipped,
    /// The event cannot be read: it is no JSON, or not in the format.
    Unreadable,
}

/// Reads the events of one streamed answer. No I/O. (`Sync`, as the bodies of answers have to be.)
pub trait Decoder: Send + Sync {
    /// Writes what an event means into `chunks`.
    ///
    /// # Errors
    /// If the event says that the answer failed.
    fn read(&mut self, event: &Event<'_>, chunks: &mut Chunks) -> Result<Step, Failure>;
}
