//! The body of a streamed answer: it pulls the relay, so the reader's pace is the provider's.
//!
//! It adds what only a stream needs: comments while nothing comes, and the last chunk of an answer that is cut off or
//! breaks. Dropping it (the caller left) drops the relay, which stops the provider and books what was used.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use warp::Reply;
use warp::reply::Response;

use crate::api::sse;
use crate::inference::Relay;
use crate::server::reply::{self, ApiError};
use crate::server::streams::Registration;

/// A stream under way.
pub(super) struct Running {
    pub(super) relay: Box<Relay>,
    pub(super) listed: Registration,
    pub(super) keep_alive: Duration,
    /// The end of the server waits for it, so that everything is booked by then.
    pub(super) _run: TaskTrackerToken,
}

/// The answer with this stream as its body.
pub(super) fn respond(running: Running) -> Response {
    let mut response = warp::reply::stream(pieces(running)).into_response();
    reply::mark_stream(response.headers_mut());
    response
}

fn pieces(running: Running) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::unfold(Some(running), |running| async move {
        let mut running = running?;
        let quiet_until = Instant::now() + running.keep_alive;
        let fault = tokio::select! {
            biased;
            why = running.listed.cut() => ApiError::from(why),
            piece = running.relay.next() => match piece? {
                Ok(piece) => return Some((Ok(piece), Some(running))),
                Err(failure) => ApiError::broken_off(running.relay.model(), failure),
            },
            () = sleep_until(quiet_until) => return Some((Ok(sse::KEEP_ALIVE), Some(running))),
        };
        Some((Ok(running.relay.fault(&fault.into_chunk_error())), None))
    })
}
