//! Request bodies that have not been read to their end when the response is ready.
//!
//! On an HTTP/1 connection the next request starts where the body ends, so such a connection cannot be kept alive, and
//! the response has to say so: otherwise a caller sends its next request into a connection that is being closed. But a
//! rejected request does not cost its caller the connection if its body arrived together with its head, as it usually
//! does: then the rest is read and discarded.
//!
//! What must hold: nothing is waited for, and no more than [`MAX_DISCARDED_BYTES`] are discarded; a caller that waits
//! for permission to send its body (`Expect: 100-continue`) does not get it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use crate::lock::Lock;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

/// How much of a body is discarded at most to keep a connection.
const MAX_DISCARDED_BYTES: u64 = 64 * 1024;
/// How often hyper gets the chance to hand over what it has received already.
const ATTEMPTS: usize = 3;

/// A request body as routes see it, which is given back when it is dropped before its end.
pub(crate) struct TrackedBody {
    /// `None` once it has ended.
    body: Option<Incoming>,
    /// Where its outcome is recorded; `None` if that does not matter for the connection.
    state: Option<Arc<Mutex<State>>>,
}

enum State {
    /// A handler may be reading it.
    InUse,
    /// It was read to its end.
    Complete,
    /// It cannot be read to its end.
    Failed,
    /// It was dropped before its end.
    Unread(Incoming),
}

/// What remains of a request body once its request is answered.
pub(crate) struct Remainder {
    state: Option<Arc<Mutex<State>>>,
    /// Whether the caller sends the body only if it is told to continue.
    expects_continue: bool,
}

/// Tracks how much is read of the body of a request with these headers.
pub(crate) fn track(request: Request<Incoming>, headers: &HeaderMap) -> (Request<TrackedBody>, Remainder) {
    let matters = request.version() <= Version::HTTP_11 && !request.body().is_end_stream();
    let state = matters.then(|| Arc::new(Mutex::new(State::InUse)));
    let expects_continue = headers.contains_key(header::EXPECT);
    let remainder = Remainder { state: state.clone(), expects_continue };
    (request.map(|body| TrackedBody { body: Some(body), state }), remainder)
}

impl Remainder {
    /// Discards what is left of the body, within the limits. Returns whether another request can follow on the
    /// connection. To be called once the body is dropped.
    pub(crate) async fn discard(self) -> bool {
        let Some(state) = self.state else { return true };
        let state = std::mem::replace(&mut *state.locked(), State::Failed);
        match state {
            State::Complete => true,
            State::Unread(body) if !self.expects_continue => discard(body).await,
            State::Unread(_) | State::InUse | State::Failed => false,
        }
    }
}

/// Discards what has arrived of a body. Returns whether that was all of it.
async fn discard(mut body: Incoming) -> bool {
    let mut discarded = 0;
    for _ in 0..ATTEMPTS {
        while let Some(frame) = body.frame().now_or_never() {
            match frame {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => discarded += frame.data_ref().map_or(0, |data| data.len() as u64),
            }
            if discarded + body.size_hint().lower() > MAX_DISCARDED_BYTES {
                return false;
            }
        }
        // hyper hands over what it has received when the connection is polled again, after the body was.
        tokio::task::yield_now().await;
    }
    body.is_end_stream()
}

impl TrackedBody {
    fn finish(&mut self, outcome: State) {
        if let Some(state) = self.state.take() {
            *state.locked() = outcome;
        }
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.finish(State::Unread(body));
        }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(task));
        match &frame {
            Some(Ok(_)) if !body.is_end_stream() => {}
            Some(Err(_)) => {
                self.body = None;
                self.finish(State::Failed);
            }
            Some(Ok(_)) | None => {
                self.body = None;
                self.finish(State::Complete);
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), hyper::body::Body::size_hint)
    }
}
