//! The body of a streamed answer. It pulls from the relay, so the reader's pace is the provider's (backpressure).
//!
//! It adds what only a stream needs: keep-alive comments, and the last chunk of an answer that is aborted or fails.
//! Dropping it (the caller left) drops the relay, which stops the provider and books the usage.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use warp::Reply;
use warp::reply::Response;

use crate::api::sse;
use crate::inference::Relay;
use crate::server::in_flight::Registration;
use crate::server::reply::{self, ApiError};
use crate::server::request::record::{OK, Record};

/// A streamed answer in progress.
pub(super) struct Stream {
    pub(super) relay: Box<Relay>,
    pub(super) registration: Registration,
    pub(super) keep_alive: Duration,
    /// Declared, and so dropped, after the relay: it is written once the relay has booked the usage.
    pub(super) record: Arc<Record>,
    /// Shutdown waits for it, so that everything is booked by then.
    pub(super) _token: TaskTrackerToken,
}

impl Drop for Stream {
    /// However the stream ended, records the model that gave the last part of the answer.
    fn drop(&mut self) {
        self.record.set_answering_model(self.relay.model().clone());
    }
}

/// The response with this stream as its body.
pub(super) fn respond(stream: Stream) -> Response {
    let mut response = warp::reply::stream(chunks(stream)).into_response();
    reply::set_stream_headers(response.headers_mut());
    response
}

fn chunks(stream: Stream) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        let keep_alive_at = Instant::now() + stream.keep_alive;
        let error = tokio::select! {
            biased;
            reason = stream.registration.aborted() => ApiError::from(reason),
            chunk = stream.relay.next() => match chunk? {
                Ok(chunk) => {
                    let is_last = stream.relay.is_over();
                    // Set here, as many callers leave once they have read the end marker.
                    if is_last {
                        stream.record.end_stream(OK);
                    }
                    // A revocation while the caller takes its time must not add a second end to a complete answer.
                    return Some((Ok(chunk), (!is_last).then_some(stream)));
                }
                Err(failure) => ApiError::broken_stream(stream.relay.model(), failure),
            },
            () = sleep_until(keep_alive_at) => return Some((Ok(sse::KEEP_ALIVE), Some(stream))),
        };
        stream.record.end_stream(error.code().to_owned());
        Some((Ok(stream.relay.end_with_error(&error.into_chunk_error())), None))
    })
}
