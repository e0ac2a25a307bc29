//! A response whose head has arrived and whose body is pulled, with a timeout on every wait and a cap on its size.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, poll};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, response};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::net::outbound::client::Body;
use crate::providers::{FailedCall, Failure, ProviderResponse};

/// The largest body that is buffered; a completion of 100,000 tokens takes about half a megabyte.
pub(in crate::providers) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
/// The largest body of vectors: 2,048 of 1,536 numbers each take some 40 MB, written as numbers.
pub(in crate::providers) const MAX_VECTORS_BYTES: usize = 64 * 1024 * 1024;

/// A response with its complete body, not yet parsed.
#[derive(Debug)]
pub(in crate::providers) struct BufferedResponse {
    pub(in crate::providers) status: u16,
    pub(in crate::providers) headers: HeaderMap,
    pub(in crate::providers) body: Bytes,
}

impl BufferedResponse {
    /// The response as dialects take it, with the `clock` that dates are relative to.
    pub(in crate::providers) fn with_clock(self, clock: Clock) -> ProviderResponse {
        ProviderResponse { status: self.status, headers: self.headers, body: self.body, clock }
    }
}

/// A response in progress. Dropping it closes its connection, which ends the work at the provider.
#[derive(Debug)]
pub(in crate::providers) struct OpenResponse {
    pub(crate) head: response::Parts,
    pub(in crate::providers) body: Body,
    /// The timeout between two pieces of the body.
    pub(in crate::providers) idle_timeout: Duration,
    /// The deadline of the entire response.
    pub(in crate::providers) end: Instant,
    /// The deadline of the piece being waited for; kept when a wait is cancelled and resumed.
    pub(in crate::providers) next_deadline: Option<Instant>,
}

impl OpenResponse {
    /// Whether this is a successful response that is streamed as events. Some servers do not set the content type, but
    /// none streams as JSON, or as a page for people.
    pub(in crate::providers) fn is_stream(&self) -> bool {
        let kind = self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_document = |kind: &str| kind.contains("json") || kind.contains("html");
        self.head.status.is_success() && !kind.is_some_and(is_document)
    }

    /// The next piece of the body; `None` at its end. Cancel-safe.
    ///
    /// # Errors
    /// If the piece does not arrive in time or the connection breaks.
    pub(in crate::providers) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            // No timer is needed for what has already arrived.
            let frame = match poll!(self.body.frame()) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let deadline = *self
                        .next_deadline
                        .get_or_insert_with(|| self.end.min(Instant::now() + self.idle_timeout));
                    with_deadline(deadline, self.body.frame()).await?
                }
            };
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            // Trailers are ignored.
            if let Ok(piece) = frame.into_data() {
                self.next_deadline = None;
                return Ok(Some(piece));
            }
        }
    }

    /// Reads the body to its end.
    ///
    /// # Errors
    /// If it does not arrive in time, breaks off, or is too large.
    pub(in crate::providers) async fn read_all(self) -> Result<BufferedResponse, FailedCall> {
        self.read_up_to(MAX_BODY_BYTES).await
    }

    /// As [`OpenResponse::read_all`], of at most so many bytes.
    pub(super) async fn read_up_to(mut self, bytes: usize) -> Result<BufferedResponse, FailedCall> {
        let announced = self.body.size_hint().lower();
        if announced > bytes as u64 {
            return Err(self.too_large(announced).into());
        }
        let body = self.collect_body(bytes).await?;
        Ok(BufferedResponse { status: self.head.status.as_u16(), headers: self.head.headers, body })
    }

    async fn collect_body(&mut self, max_bytes: usize) -> Result<Bytes, FailedCall> {
        let first = self.next().await.map_err(FailedCall::before_answer)?.unwrap_or_default();
        if self.body.is_end_stream() {
            // Nearly every body arrives as one piece; it is not copied.
            return Ok(first);
        }
        let mut body = BytesMut::from(first);
        while let Some(piece) = self.next().await? {
            let length = body.len() + piece.len();
            if length > max_bytes {
                return Err(self.too_large(length as u64).into());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// Only the size of a successful response depends on what was asked for.
    fn too_large(&self, bytes: u64) -> Failure {
        if self.head.status.is_success() { Failure::TooLarge { bytes } } else { Failure::Malformed }
    }
}

/// Runs `work` until `deadline` at the latest. Not an `async fn`, whose future would reserve space for `work` twice.
pub(in crate::providers) fn with_deadline<T>(
    deadline: Instant,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Failure>> {
    timeout_at(deadline, work).map(|done| done.map_err(|_| Failure::Timeout))
}
