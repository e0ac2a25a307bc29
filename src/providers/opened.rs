//! An answer that has begun: its head is there, its body is pulled, with a limit on every wait and on its size.

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

use super::client::Body;
use super::{Failure, Incoming};
use crate::clock::Clock;

/// The largest answer that is read whole; a completion of 100,000 tokens is about half a megabyte.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// An answer as it came, not yet understood.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    /// As a dialect reads it, with the `clock` that dates are relative to.
    pub(super) fn with(self, clock: Clock) -> Incoming {
        Incoming { status: self.status, headers: self.headers, body: self.body, clock }
    }
}

/// An answer that is under way. Dropping it closes its connection, which ends the work at the provider.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) head: response::Parts,
    pub(super) body: Body,
    /// Between two pieces.
    pub(super) idle: Duration,
    /// For all of it.
    pub(super) end: Instant,
    /// For the piece that is waited for; kept when a wait is given up and begun again.
    pub(super) limit: Option<Instant>,
}

impl Opened {
    /// Whether a body of success comes as events. Some servers do not name the type; none calls JSON a stream.
    pub(super) fn is_stream(&self) -> bool {
        let kind = self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        self.head.status.is_success() && !kind.is_some_and(|kind| kind.contains("json"))
    }

    /// The next piece of the body; `None` at its end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// If the piece does not come in time or the connection breaks.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            // What is there needs no timer.
            let frame = match poll!(self.body.frame()) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let limit = *self.limit.get_or_insert_with(|| self.end.min(Instant::now() + self.idle));
                    within(limit, self.body.frame()).await?
                }
            };
            let Some(frame) = frame.transpose()? else { return Ok(None) };
            // Trailers tell nothing.
            if let Ok(piece) = frame.into_data() {
                self.limit = None;
                return Ok(Some(piece));
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// If it does not come in time, breaks off, or is larger than any may be.
    pub(super) async fn whole(mut self) -> Result<Reply, Failure> {
        let announced = self.body.size_hint().lower();
        if announced > MAX_BODY_BYTES as u64 {
            return Err(self.too_large(announced));
        }
        let body = self.collect().await?;
        Ok(Reply { status: self.head.status.as_u16(), headers: self.head.headers, body })
    }

    async fn collect(&mut self) -> Result<Bytes, Failure> {
        let first = self.next().await?.unwrap_or_default();
        if self.body.is_end_stream() {
            // Nearly every answer: one piece, as it is.
            return Ok(first);
        }
        let mut body = BytesMut::from(first);
        while let Some(piece) = self.next().await? {
            let length = body.len() + piece.len();
            if length > MAX_BODY_BYTES {
                return Err(self.too_large(length as u64));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// Only a success is as large as what was asked for.
    fn too_large(&self, bytes: u64) -> Failure {
        if self.head.status.is_success() { Failure::TooLarge { bytes } } else { Failure::Malformed }
    }
}

/// Work, given up at `limit`. Not an `async fn`, which would keep room for the work twice.
pub(super) fn within<T>(
    limit: Instant,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, Failure>> {
    timeout_at(limit, work).map(|done| done.map_err(|_| Failure::Timeout))
}
