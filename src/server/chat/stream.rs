//! The body of a streamed answer: it pulls the relay, so the reader's pace is the provider's.
//!
//! It adds what only a stream needs: comments while nothing comes, and the last chunk of an answer that is cut off or
//! breaks. Dropping it (the caller left) drops the relay, which stops the provider and books what was used.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use warp::Reply;
use warp::reply::Response;

use crate::api::sse;
use crate::inference::Relay;
use crate::server::in_flight::Registration;
use crate::server::record::{OK, Record};
use crate::server::reply::{self, ApiError};

/// A stream under way.
pub(super) struct Running {
    pub(super) relay: Box<Relay>,
    pub(super) listed: Registration,
    pub(super) keep_alive: Duration,
    /// Stands behind the relay: it is written when that has booked what was used.
    pub(super) record: Arc<Record>,
    /// The end of the server waits for it, so that everything is booked by then.
    pub(super) _run: TaskTrackerToken,
}

impl Drop for Running {
    /// Whoever broke off, the model that gave the last of the answer is noted.
    fn drop(&mut self) {
        self.record.set_answering_model(self.relay.model().clone());
    }
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
                Ok(piece) => {
                    // Many callers leave once they have read the end mark.
                    if running.relay.is_over() {
                        running.record.ends(OK);
                    }
                    return Some((Ok(piece), Some(running)));
                }
                Err(failure) => ApiError::broken_off(running.relay.model(), failure),
            },
            () = sleep_until(quiet_until) => return Some((Ok(sse::KEEP_ALIVE), Some(running))),
        };
        running.record.ends(fault.code().to_owned());
        Some((Ok(running.relay.end_with_error(&fault.into_chunk_error())), None))
    })
}
