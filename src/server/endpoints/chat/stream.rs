//! The body of a streamed answer. It pulls from the relay, so the reader's pace is the provider's (backpressure).
//!
//! It adds what only a stream needs: keep-alive comments, and the last chunk of an answer that is aborted or fails.
//! Dropping it (the caller left) drops the relay, which stops the provider and books the usage. Behind a door of another
//! protocol, a [`Transcoder`] turns the chunks into that protocol's events, or ends one whose events are that protocol's
//! already; without one, they go out as they are.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use warp::Reply;
use warp::reply::Response;

use super::guard::{DONE, Piece, Ward};
use crate::api::sse;
use crate::inference::{Failure, Relay};
use crate::server::in_flight::Registration;
use crate::server::reply::{self, ApiError};
use crate::server::request::record::{OK, Record};

/// A streamed answer in progress.
pub(in crate::server) struct Stream {
    pub(super) relay: Box<Relay>,
    pub(super) registration: Registration,
    /// Set if it is verified.
    pub(super) ward: Option<Box<Ward>>,
    pub(super) keep_alive: Duration,
    /// Declared, and so dropped, after the relay: it is written once the relay has booked the usage.
    pub(super) record: Arc<Record>,
    /// Shutdown waits for it, so that everything is booked by then.
    pub(super) _token: TaskTrackerToken,
}

/// Turns what comes of one answer into the events of another protocol. (`Sync`, as response bodies have to be.)
pub(in crate::server) trait Transcoder: Send + Sync {
    /// Translates chunks, `data: {…}` with an empty line after each, whole ones only; behind the last stands `[DONE]`.
    /// (Of a native answer, its events.) Without anything to say about them, `out` stays empty.
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>);

    /// Takes what was found about the answer, as JSON. The end follows. (Native answers are not verified.)
    fn verified(&mut self, _verification: &str) {}

    /// Ends an answer that broke off. Nothing follows.
    fn fail(&mut self, error: ApiError, out: &mut Vec<u8>);

    /// What keeps an idle stream alive.
    fn keep_alive(&self) -> Bytes {
        sse::KEEP_ALIVE
    }
}

/// Writes an event of a protocol that repeats its type in the data; `rest` writes their other fields.
pub(in crate::server) fn write_event(kind: &str, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>)) {
    for part in ["event: ", kind, "\ndata: {\"type\":\"", kind, "\""] {
        out.extend_from_slice(part.as_bytes());
    }
    rest(out);
    out.extend_from_slice(b"}\n\n");
}

impl Drop for Stream {
    /// However the stream ended, records the model that gave the last part of the answer.
    fn drop(&mut self) {
        self.record.set_answering_model(self.relay.model().clone());
    }
}

impl Stream {
    /// Whether it has the events of a native answer, in its protocol.
    pub(in crate::server) fn is_native(&self) -> bool {
        self.relay.is_native()
    }

    /// The response with this stream as its body.
    pub(in crate::server) fn into_response(self, transcoder: Option<Box<dyn Transcoder>>) -> Response {
        let mut response = warp::reply::stream(events(self, transcoder)).into_response();
        reply::set_stream_headers(response.headers_mut());
        response
    }

    /// The next piece of the answer for a caller, and whether it is the last.
    async fn next(&mut self, transcoder: &mut Option<Box<dyn Transcoder>>) -> Option<(Bytes, bool)> {
        let keep_alive_at = Instant::now() + self.keep_alive;
        let error = loop {
            tokio::select! {
                biased;
                reason = self.registration.aborted() => break ApiError::from(reason),
                piece = next_piece(&mut self.relay, self.ward.as_deref_mut()) => match piece? {
                    Ok(piece) => {
                        let is_last = match &piece {
                            Piece::Chunks(_) => self.ward.is_none() && self.relay.is_over(),
                            Piece::End(_) => true,
                        };
                        // Set here, as many callers leave once they have read the end marker.
                        if is_last {
                            self.record.end_stream(OK);
                        }
                        let events = match (piece, &mut *transcoder) {
                            (Piece::Chunks(chunks), None) => chunks,
                            (Piece::Chunks(chunks), Some(transcoder)) => {
                                transcoded(|out| transcoder.chunks(&chunks, out))
                            }
                            (Piece::End(found), None) => {
                                self.ward.as_ref().map_or_else(Bytes::new, |ward| ward.last_chunk(&found))
                            }
                            (Piece::End(found), Some(transcoder)) => transcoded(|out| {
                                transcoder.verified(&found);
                                transcoder.chunks(DONE, out);
                            }),
                        };
                        // A revocation while the caller takes its time must not add a second end to a complete answer.
                        if is_last || !events.is_empty() {
                            return Some((events, is_last));
                        }
                    }
                    Err(failure) => break ApiError::broken_stream(self.relay.model(), failure),
                },
                () = sleep_until(keep_alive_at) => {
                    let sign = transcoder.as_ref().map_or(sse::KEEP_ALIVE, |transcoder| transcoder.keep_alive());
                    return Some((sign, false));
                }
            }
        };
        self.record.end_stream(error.code().to_owned());
        Some((
            match transcoder {
                None => self.relay.end_with_error(&error.into_chunk_error()),
                Some(transcoder) => transcoded(|out| transcoder.fail(error, out)),
            },
            true,
        ))
    }
}

/// The next piece of an answer, which may be under guard. Cancel-safe.
async fn next_piece(relay: &mut Relay, ward: Option<&mut Ward>) -> Option<Result<Piece, Failure>> {
    match ward {
        None => Some(relay.next().await?.map(Piece::Chunks)),
        // Boxed, as only these streams need room for it.
        Some(ward) => Box::pin(ward.next(relay)).await,
    }
}

fn transcoded(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    write(&mut out);
    Bytes::from(out)
}

fn events(
    stream: Stream,
    transcoder: Option<Box<dyn Transcoder>>,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::unfold(Some((stream, transcoder)), |state| async move {
        let (mut stream, mut transcoder) = state?;
        let (piece, is_last) = stream.next(&mut transcoder).await?;
        Some((Ok(piece), (!is_last).then_some((stream, transcoder))))
    })
}
