//! What a dialect is: it encodes chat completions and decodes their responses, without I/O.
//!
//! The dialect of the chat-completion format itself passes a request's fields on; the others translate what they can
//! express and refuse the rest by name ([`Failure::Unsupported`]). Responses are bytes in the chat-completion format,
//! written by the dialect itself if they are complete and through a [`ChunkWriter`](super::ChunkWriter) if they are
//! streamed.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::native::{Passage, Protocol};
use super::{CompletionRequest, CompletionResponse, FailedCall, Failure, Model, ResponseMeta, StreamDecoder};
use crate::clock::Clock;

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
    pub(super) fn of_stream_event() -> Self {
        Self { status: 200, headers: HeaderMap::new(), body: Bytes::new(), clock: Clock::system() }
    }
}

/// One provider format.
pub trait Dialect: Send + Sync {
    /// The header for the key. The transport sets it: no dialect ever sees a key.
    fn key_header(&self) -> KeyHeader;

    /// Encodes the request that asks `model` for this completion.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] for a field that would affect the answer and that the format cannot express.
    fn request(&self, request: &CompletionRequest<'_>, model: &Model) -> Result<ProviderRequest, Failure>;

    /// Whether the format expresses whatever a request asks for, so that nothing needs to be encoded to find out.
    fn expresses_everything(&self) -> bool {
        false
    }

    /// Decodes a complete response, or an error response of any kind.
    ///
    /// # Errors
    /// With the [`Failure`] that status, headers and body describe; [`Failure::Malformed`] if they make no sense.
    fn response(
        &self,
        response: &ProviderResponse,
        request: &CompletionRequest<'_>,
        meta: &ResponseMeta,
    ) -> Result<CompletionResponse, FailedCall>;

    /// How requests in `protocol` are passed on to `model`; `None` if that does not speak it.
    fn passage(&self, _protocol: Protocol, _model: &Model) -> Option<&'static dyn Passage> {
        None
    }

    /// A decoder for one streamed answer to `request`.
    fn stream_decoder(&self, request: &CompletionRequest<'_>) -> Box<dyn StreamDecoder>;

    /// The request (a GET without a body) for the list of models, which is free of charge and requires the key.
    fn listing(&self) -> ProviderRequest {
        ProviderRequest { path: "/models".into(), headers: Vec::new(), body: Bytes::new() }
    }
}
