//! A timer for each stream of an HTTP/2 connection, which gives up those whose peer takes nothing.
//!
//! A peer can keep the window of a stream closed, and its connection busy with other requests: no timeout of the
//! connection notices, while the stream holds the call of a provider, and a place that others could use. So the task
//! that hyper runs for a stream is run here, beside a timer. It runs while a piece of the body waits for the peer; what
//! the peer takes of it ends the wait only once it has taken it all, so that pieces are small. When the time is up, the
//! task is dropped: with it go the body, the work behind it, and what was still to be sent, and the stream is reset.
//!
//! What must hold: a stream that waits for a model, or for a request's body, has no timer here.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, sleep_until};

/// The largest piece that the peer has to take in time.
const MAX_PIECE_BYTES: usize = 16 * 1024;

tokio::task_local! {
    /// The progress of the stream whose task this is.
    static PROGRESS: Arc<Progress>;
}

/// How far the peer has taken the body of a stream: odd while a piece waits for it, and higher with each piece.
#[derive(Default)]
struct Progress(AtomicU64);

impl Progress {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The peer has room again, or the body is over. All of it happens in one task.
    fn taken(&self) {
        let progress = self.get();
        self.0.store(progress + progress % 2, Ordering::Relaxed);
    }

    /// A piece was handed out.
    fn offered(&self) {
        self.taken();
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs the tasks of a connection's streams, and drops those whose peer takes nothing for this long.
#[derive(Clone, Copy)]
pub(crate) struct StreamExecutor {
    limit: Duration,
}

impl StreamExecutor {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (limit, progress) = (self.limit, Arc::<Progress>::default());
        tokio::spawn(PROGRESS.scope(progress.clone(), async move {
            tokio::select! {
                biased;
                _ = stream => {}
                () = stall(&progress, limit) => tracing::debug!("a stream was closed: its peer does not read"),
            }
        }));
    }
}

/// Waits until one and the same piece has waited for the peer for `limit`.
async fn stall(progress: &Progress, limit: Duration) {
    let mut seen = progress.get();
    let mut timer = pin!(sleep_until(Instant::now() + limit));
    std::future::poll_fn(|context| {
        // Polled after the stream, whenever that goes on.
        let now = progress.get();
        if now.is_multiple_of(2) {
            return Poll::Pending;
        }
        if std::mem::replace(&mut seen, now) != now {
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(context)
    })
    .await;
}

/// A response body in small pieces, which reports to the task of its stream.
pub(crate) struct InPieces<B> {
    body: B,
    /// What is left of a frame that is larger than a piece.
    rest: Bytes,
    /// `None` outside of such a task.
    progress: Option<Arc<Progress>>,
    /// Whether it is known to have nothing to send.
    is_empty: bool,
}

impl<B: Body> InPieces<B> {
    /// Wraps a body, in the task of its stream.
    pub(crate) fn new(body: B) -> Self {
        let (is_empty, progress) = (body.is_end_stream(), PROGRESS.try_with(Arc::clone).ok());
        if let Some(progress) = progress.as_ref().filter(|_| !is_empty) {
            // hyper asks for the first piece as well only when the peer has room for it.
            progress.offered();
        }
        Self { body, rest: Bytes::new(), progress, is_empty }
    }
}

impl<B> InPieces<B> {
    fn piece(&mut self) -> Frame<Bytes> {
        if let Some(progress) = &self.progress {
            progress.offered();
        }
        Frame::data(self.rest.split_to(self.rest.len().min(MAX_PIECE_BYTES)))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for InPieces<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // hyper asks for more only when the peer has room for it.
        if let Some(progress) = &self.progress {
            progress.taken();
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Poll::Ready(Some(Ok(self.piece())))
                }
                Err(other) => Poll::Ready(Some(Ok(other))),
            },
            end => Poll::Ready(end),
        }
    }

    /// Only of a body without anything to send: otherwise the stream is over for hyper once it has the last piece, and
    /// nobody waits any more for the peer to take it.
    fn is_end_stream(&self) -> bool {
        self.is_empty
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
