//! Requests in a protocol of their own, which a provider that speaks it gets as they are: with the provider's name for
//! the model and our key, and nothing else changed. Their answers go back as they are as well, under the name of the
//! model that callers know; they are read for what has to be known: the usage, the end, failures.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::{
    CompletionRequest, CompletionResponse, FailedCall, Model, ProviderRequest, ProviderResponse,
    ResponseMeta, StreamDecoder,
};
use crate::json::fields::Fields;
use crate::json::reader::Json;

/// A protocol other than that of chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic's Messages.
    Messages,
    /// `OpenAI`'s Responses.
    Responses,
}

/// How far a provider speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// It does.
    Surely,
    /// It is asked, and if it has nothing at the protocol's address, asked for a chat completion instead.
    Perhaps,
}

/// A request in a protocol of its own, as its caller sent it.
#[derive(Debug)]
pub struct NativeRequest {
    /// Its protocol.
    pub protocol: Protocol,
    /// A JSON object.
    body: Bytes,
    /// Where the model's name stands in it.
    model: Range<usize>,
    /// The protocol's own headers.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether there is a chat completion as well that asks for the same.
    is_translated: bool,
}

impl NativeRequest {
    /// A request with this body, which has these fields; `None` if it names no model.
    pub fn new(
        protocol: Protocol,
        body: &Bytes,
        fields: &Fields<'_>,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Option<Self> {
        let model = fields.get("model")?.place_in(std::str::from_utf8(body).ok()?)?;
        Some(Self { protocol, body: body.clone(), model, headers, is_translated: false })
    }

    /// The same, with a chat completion beside it.
    #[must_use]
    pub fn translated(self) -> Self {
        Self { is_translated: true, ..self }
    }

    /// Whether there is a chat completion beside it.
    pub const fn is_translated(&self) -> bool {
        self.is_translated
    }

    /// All that an answer depends on, but for the model.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let protocol = match self.protocol {
            Protocol::Messages => "messages",
            Protocol::Responses => "responses",
        };
        let headers =
            self.headers.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        [protocol.as_bytes(), &*self.body].into_iter().chain(headers)
    }

    /// Its length in bytes.
    pub const fn length(&self) -> usize {
        self.body.len()
    }

    /// The request that asks `model` at `path` for this; the protocol requires `headers` that the caller may have left
    /// out.
    pub(super) fn for_model(
        &self,
        model: &Model,
        path: &'static str,
        headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) -> ProviderRequest {
        let missing = headers.into_iter().filter(|(name, _)| self.headers.iter().all(|(own, _)| own != name));
        ProviderRequest {
            path: Cow::Borrowed(path),
            headers: self.headers.iter().cloned().chain(missing).collect(),
            body: renamed(&self.body, self.model.clone(), &model.name).into(),
        }
    }
}

/// The text with this as the model's name, which stands at `place`.
fn renamed(text: &[u8], place: Range<usize>, model: &str) -> Vec<u8> {
    let name = serde_json::Value::from(model).to_string();
    let (before, after) =
        (text.get(..place.start).unwrap_or_default(), text.get(place.end..).unwrap_or_default());
    [before, name.as_bytes(), after].concat()
}

/// An answer, or an event of one, with the name of the model that callers know in the place of the provider's. Without
/// a name of either, it stays as it is.
pub(super) fn with_model<'t>(
    text: &'t str,
    reported: Option<Json<'_>>,
    meta: &ResponseMeta,
) -> Cow<'t, [u8]> {
    let place = reported.filter(|_| !meta.model.is_empty()).and_then(|reported| reported.place_in(text));
    match place {
        Some(place) => Cow::Owned(renamed(text.as_bytes(), place, &meta.model)),
        None => Cow::Borrowed(text.as_bytes()),
    }
}

/// How requests in one protocol are passed on and their answers read, without I/O.
pub trait Passage: fmt::Debug + Send + Sync {
    /// The request that asks `model` for what `request` asks.
    fn request(&self, request: &NativeRequest, model: &Model) -> ProviderRequest;

    /// Reads a complete response, or an error response of any kind. `request` has the estimates.
    ///
    /// # Errors
    /// As [`Dialect::response`](super::Dialect::response).
    fn response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall>;

    /// A decoder for one streamed answer.
    fn stream_decoder(&self, meta: &ResponseMeta) -> Box<dyn StreamDecoder>;
}
