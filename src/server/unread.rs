//! Request bodies that nobody has read to their end when the answer is there.
//!
//! On an HTTP/1 connection the next request begins where the body ends, so that such a connection cannot be kept, and
//! the answer has to say so: otherwise a caller sends its next request into a connection that is being closed. But a
//! refused request costs its caller no connection if its body has come with its head, which is the rule: then the rest
//! is taken in and thrown away.
//!
//! What must hold: nothing is waited for, and no more is taken in than [`MOST_BYTES`]; a caller that waits to be asked for its
//! body (`Expect: 100-continue`) is not asked.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};

/// The most of a body that is thrown away for a connection's sake.
const MOST_BYTES: u64 = 64 * 1024;
/// How often the connection gets a turn to hand over what it has got already.
const TURNS: usize = 3;

/// A request's body as routes see it.
pub(super) struct Body {
    /// Until it has ended.
    body: Option<Incoming>,
    /// Where it goes when nobody wants more of it; nowhere if nothing can follow it anyway.
    place: Option<Arc<Mutex<State>>>,
}

enum State {
    /// Somebody may be reading.
    Lent,
    /// To its end.
    Read,
    /// It cannot be read to its end.
    Broken,
    /// There is more of it.
    Left(Incoming),
}

/// What becomes of a body.
pub(super) struct Rest {
    place: Option<Arc<Mutex<State>>>,
    /// Whether the caller sends it only if it is asked for.
    is_kept_back: bool,
}

/// Hands out the body of a request with these headers.
pub(super) fn lend(request: Request<Incoming>, headers: &HeaderMap) -> (Request<Body>, Rest) {
    let is_followed = request.version() <= Version::HTTP_11 && !request.body().is_end_stream();
    let place = is_followed.then(|| Arc::new(Mutex::new(State::Lent)));
    let rest = Rest { place: place.clone(), is_kept_back: is_kept_back(headers) };
    (request.map(|body| Body { body: Some(body), place }), rest)
}

fn is_kept_back(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

impl Rest {
    /// Whether another request can follow on the connection. To be asked when the body is let go of.
    pub(super) async fn allows_another(self) -> bool {
        let Some(place) = self.place else { return true };
        let state = std::mem::replace(&mut *lock(&place), State::Broken);
        match state {
            State::Read => true,
            State::Left(body) if !self.is_kept_back => take_in(body).await,
            State::Left(_) | State::Lent | State::Broken => false,
        }
    }
}

/// Throws away what is there of a body; whether that was all.
async fn take_in(mut body: Incoming) -> bool {
    let mut taken = 0;
    for _ in 0..TURNS {
        while let Some(frame) = body.frame().now_or_never() {
            match frame {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => taken += frame.data_ref().map_or(0, |data| data.len() as u64),
            }
            if taken + body.size_hint().lower() > MOST_BYTES {
                return false;
            }
        }
        // hyper hands over what it has got in a turn of its own, once it is asked.
        tokio::task::yield_now().await;
    }
    body.is_end_stream()
}

/// Also after a panic elsewhere: it is replaced as a whole.
fn lock(place: &Mutex<State>) -> MutexGuard<'_, State> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Body {
    fn settle(&mut self, state: State) {
        if let Some(place) = self.place.take() {
            *lock(&place) = state;
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.settle(State::Left(body));
        }
    }
}

impl hyper::body::Body for Body {
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
                self.settle(State::Broken);
            }
            Some(Ok(_)) | None => {
                self.body = None;
                self.settle(State::Read);
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
