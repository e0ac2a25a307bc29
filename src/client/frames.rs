//! The frames of an event stream, whatever they contain.
//!
//! The only file that uses `reqwest_eventsource`. By default that sends the request again whenever a stream ends, even
//! properly: retries are off here, so that nothing is ever sent twice. The end of a stream is never a success by
//! itself: the reader knows which frame is the last one, and does not ask for more.
//!
//! The decoder has no size limit, so frames are measured once they are complete; one that never ends grows for as long
//! as the caller lets it. The decoder also panics on a byte order mark at the start of a stream: such a server becomes
//! [`Error::Malformed`] rather than the end of this program, and [`is_decoding`] tells the panic hook not to report
//! that.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use futures_util::StreamExt;
use reqwest::RequestBuilder;
use reqwest_eventsource::{Error as SourceError, Event as SourceEvent, EventSource, retry};

use super::error::{Error, error_response};

/// The largest frame that makes sense: a result of 30 claims and 9 models with their reasons is far smaller.
const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// The longest error message kept for a frame, as it may repeat what the server sent.
const MAX_REASON_CHARS: usize = 200;

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is decoding foreign bytes: a panic is then caught, and is the sender's fault.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// One frame.
pub(super) struct Frame {
    /// The event name; `message` where the stream has none.
    pub(super) event: String,
    /// The data, with its lines joined.
    pub(super) data: String,
}

/// A stream in progress. Dropping it closes the connection.
pub(super) struct Frames {
    source: EventSource,
    is_open: bool,
    bytes: usize,
    max_bytes: usize,
}

impl Frames {
    /// Sends `post` and reads the response, at most `max_bytes` of data in all, as the reader may keep them.
    pub(super) fn begin(post: RequestBuilder, max_bytes: usize) -> Result<Self, Error> {
        #[expect(clippy::disallowed_methods, reason = "the one place, with retries off")]
        let mut source =
            EventSource::new(post).map_err(|_| Error::Setup("the request cannot be sent".to_owned()))?;
        source.set_retry_policy(Box::new(retry::Never));
        Ok(Self { source, is_open: false, bytes: 0, max_bytes })
    }

    /// The next frame; [`Error::Incomplete`] if there is none. Not cancel-safe: the body of an error response would be
    /// lost.
    pub(super) async fn next(&mut self) -> Result<Frame, Error> {
        loop {
            let message = match self.decode().await? {
                None => return Err(Error::Incomplete),
                Some(Ok(SourceEvent::Open)) => {
                    self.is_open = true;
                    continue;
                }
                Some(Ok(SourceEvent::Message(message))) => message,
                Some(Err(cause)) => return Err(self.failure(cause).await),
            };
            let size = message.data.len();
            self.bytes = self.bytes.saturating_add(size);
            if size > MAX_FRAME_BYTES || self.bytes > self.max_bytes {
                self.source.close();
                return Err(Error::Malformed("the answer is larger than any that makes sense".to_owned()));
            }
            return Ok(Frame { event: message.event, data: message.data });
        }
    }

    /// The decoder's next item; its panics become errors.
    async fn decode(&mut self) -> Result<Option<Result<SourceEvent, SourceError>>, Error> {
        let item = poll_fn(|context| {
            IS_DECODING.set(true);
            let polled = catch_unwind(AssertUnwindSafe(|| self.source.poll_next_unpin(context)));
            IS_DECODING.set(false);
            match polled {
                Ok(poll) => poll.map(Ok),
                Err(_panic) => Poll::Ready(Err(malformed_stream())),
            }
        });
        item.await
    }

    async fn failure(&self, cause: SourceError) -> Error {
        match cause {
            SourceError::Transport(cause) if self.is_open => Error::from_body(&cause),
            SourceError::Transport(cause) => Error::from_transport(&cause),
            SourceError::InvalidStatusCode(_, response) => error_response(response).await,
            SourceError::InvalidContentType(..) => {
                Error::Malformed("the answer is no event stream".to_owned())
            }
            SourceError::StreamEnded => Error::Incomplete,
            SourceError::Utf8(_) | SourceError::Parser(_) | SourceError::InvalidLastEventId(_) => {
                malformed_stream()
            }
        }
    }
}

fn malformed_stream() -> Error {
    Error::Malformed("the answer is not a proper event stream".to_owned())
}

/// The error for a frame's data that cannot be parsed.
pub(super) fn unreadable(what: &str, cause: &serde_json::Error) -> Error {
    let reason: String = cause.to_string().chars().take(MAX_REASON_CHARS).collect();
    Error::Malformed(format!("{what}: {reason}"))
}
