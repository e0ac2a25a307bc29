//! The frames of an event stream, whatever they contain.
//!
//! Nothing is ever sent twice. The end of a stream is never a success by itself: the reader knows which frame is the
//! last one, and does not ask for more. Bytes are counted as they arrive: a frame that never ends, and comments without
//! end, are given up.

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};

use super::error::{Error, error_response};
use crate::net::sse_decoder::{Decoder, Event, TooLarge};

/// The longest error message kept for a frame, as it may repeat what the server sent.
const MAX_REASON_CHARS: usize = 200;

/// One frame.
pub(super) struct Frame {
    /// The event name; empty where the stream has none.
    pub(super) event: String,
    /// The data, with its lines joined.
    pub(super) data: String,
}

/// A stream in progress. Dropping it closes the connection.
pub(super) struct Frames {
    /// `None` once it is sent.
    post: Option<RequestBuilder>,
    /// `None` before the response, and after its end or failure.
    response: Option<Response>,
    decoder: Decoder,
    /// The bytes received.
    bytes: usize,
    max_bytes: usize,
    max_event: usize,
    /// The bytes received since the last frame.
    unframed: usize,
}

impl Frames {
    /// Sends `post` and reads the response, at most `max_bytes` in all, as the reader may keep them, and `max_event` in
    /// one event.
    pub(super) fn begin(post: RequestBuilder, max_bytes: usize, max_event: usize) -> Self {
        let post = Some(post.header(ACCEPT, "text/event-stream"));
        let decoder = Decoder::with_limit(max_event);
        Self { post, response: None, decoder, bytes: 0, max_bytes, max_event, unframed: 0 }
    }

    /// The next frame; [`Error::Incomplete`] if there is none. Not cancel-safe: the response would be lost.
    pub(super) async fn next(&mut self) -> Result<Frame, Error> {
        if let Some(post) = self.post.take() {
            let response = post.send().await.map_err(|cause| Error::from_transport(&cause))?;
            self.response = Some(ensure_event_stream(response).await?);
        }
        loop {
            if let Some(event) = self.decoder.next()? {
                self.unframed = 0;
                return Frame::read(&event);
            }
            let Some(mut response) = self.response.take() else { return Err(Error::Incomplete) };
            let received = response.chunk().await.map_err(|cause| Error::from_body(&cause))?;
            let chunk = received.ok_or(Error::Incomplete)?;
            self.bytes = self.bytes.saturating_add(chunk.len());
            self.unframed = self.unframed.saturating_add(chunk.len());
            if self.bytes > self.max_bytes || self.unframed > self.max_event {
                return Err(TooLarge.into());
            }
            self.response = Some(response);
            self.decoder.feed(&chunk);
        }
    }
}

impl Frame {
    fn read(event: &Event<'_>) -> Result<Self, Error> {
        let text = |bytes: &[u8]| match str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Error::Malformed("the answer is not UTF-8 text".to_owned())),
        };
        Ok(Self { event: text(event.name)?, data: text(event.data)? })
    }
}

impl From<TooLarge> for Error {
    fn from(TooLarge: TooLarge) -> Self {
        Self::Malformed("the answer is too large".to_owned())
    }
}

async fn ensure_event_stream(response: Response) -> Result<Response, Error> {
    if !response.status().is_success() {
        return Err(error_response(response).await);
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    // Nothing else was asked for.
    let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
    if kind.eq_ignore_ascii_case("text/event-stream") && !is_encoded {
        return Ok(response);
    }
    Err(Error::Malformed("the answer is not an event stream".to_owned()))
}

/// The error for a frame's data that cannot be parsed.
pub(super) fn unreadable(what: &str, cause: &serde_json::Error) -> Error {
    let reason: String = cause.to_string().chars().take(MAX_REASON_CHARS).collect();
    Error::Malformed(format!("{what}: {reason}"))
}
