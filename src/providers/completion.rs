//! Chat completions: the request, the response, and the decoder of a stream.
//!
//! Callers use the chat-completion format, and a verification's [`Chat`](super::Chat) is written in it. A
//! [`CompletionRequest`] is checked but not decoded.

use std::sync::Arc;

use bytes::Bytes;

use super::Failure;
use super::native::NativeRequest;
use super::sse::Event;
use super::stream::chunk_writer::ChunkWriter;
use crate::json::fields::Fields;
use crate::money::Usage;

/// The maximum number of choices in a request, as in the format's reference; no stream keeps track of more.
pub const MAX_CHOICES: u32 = 128;

/// More tool calls than any answer contains.
pub(super) const MAX_TOOL_CALLS: usize = 1024;

/// A request for a chat completion. Its documented fields have been checked: `messages` is an array of objects with
/// known roles, and numbers are in range.
#[derive(Debug, Default)]
pub struct CompletionRequest<'a> {
    /// All fields, as sent.
    pub fields: Fields<'a>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether the caller wants the token usage at the end of a stream.
    pub include_usage: bool,
    /// The number of choices requested, at most [`MAX_CHOICES`].
    pub choices: u32,
    /// The estimated length of the prompt, for accounting if the provider does not report it.
    pub prompt_tokens: u64,
    /// The same in another protocol, as the caller sent it, for models that speak that. If it is not translated, `fields`
    /// are its own.
    pub native: Option<Arc<NativeRequest>>,
}

impl CompletionRequest<'_> {
    /// Whether it asks for embeddings, which have an `input` in the place of messages.
    pub fn is_for_embeddings(&self) -> bool {
        self.native.is_none() && self.fields.get("messages").is_none() && self.fields.get("input").is_some()
    }

    /// The maximum number of tool calls in one choice of the answer.
    pub(super) fn max_tool_calls(&self) -> usize {
        if self.fields.read("parallel_tool_calls") == Some(false) { 1 } else { MAX_TOOL_CALLS }
    }
}

/// The metadata of a response that does not come from the provider.
#[derive(Clone, Debug, Default)]
pub struct ResponseMeta {
    /// The full identifier of the model that answers; empty to keep the name that the provider reports.
    pub model: Arc<str>,
    /// The creation time in Unix seconds, for providers that do not report one.
    pub created: i64,
}

/// The field of a choice with the provider's own word for an end that has no name in this format.
pub(super) const PROVIDER_FINISH_REASON: &str = "provider_finish_reason";

/// Unix seconds have fewer digits than this for the next three thousand years.
const FIRST_IN_MILLISECONDS: i64 = 100_000_000_000;

impl ResponseMeta {
    /// The name of the model to be written into the response.
    pub(super) fn model<'a>(&'a self, reported: Option<&'a str>) -> &'a str {
        if self.model.is_empty() { reported.unwrap_or_default() } else { &self.model }
    }

    /// The creation time in Unix seconds: the reported one if it is plausible. Some gateways report milliseconds.
    pub(super) fn created(&self, reported: Option<i64>) -> i64 {
        match reported {
            Some(milliseconds @ FIRST_IN_MILLISECONDS..) => milliseconds / 1000,
            Some(seconds @ 1..) => seconds,
            _ => self.created,
        }
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct CompletionResponse {
    /// A `chat.completion` object, or what answers a native request.
    pub body: Bytes,
    /// The usage; marked in a `chat.completion` if it is estimated.
    pub usage: Usage,
    /// Whether it answers a native request, in its protocol.
    pub is_native: bool,
}

/// What a [`StreamDecoder`] made of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// It was handled; the stream goes on.
    More,
    /// It was handled. If every choice is finished, nothing more of the answer follows, though the end marker may.
    Last,
    /// It marks the end of the stream.
    End,
    /// It is of an unknown kind and was skipped.
    Skipped,
    /// It cannot be read: it is not JSON, or not in the format.
    Unreadable,
}

/// Decodes the events of one streamed answer, without I/O. (`Sync`, as response bodies have to be.)
pub trait StreamDecoder: Send + Sync {
    /// Translates an event into `chunks`.
    ///
    /// # Errors
    /// If the event reports that the answer failed.
    fn read(&mut self, event: &Event<'_>, chunks: &mut ChunkWriter) -> Result<EventOutcome, Failure>;

    /// To be called when nothing more comes of an answer that may be complete, before that is judged: for formats whose
    /// events cannot tell that they are the last.
    ///
    /// # Errors
    /// If the answer as a whole turns out to be a failure.
    fn end(&mut self, _chunks: &mut ChunkWriter) -> Result<(), Failure> {
        Ok(())
    }
}
