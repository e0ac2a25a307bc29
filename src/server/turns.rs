//! Whose turn it is on a connection, so that a peer that never takes its turn can be let go.
//!
//! An HTTP/1 connection that idles or stalls is ended by hyper's header timer and by the guard of its writes.
//! HTTP/2 has neither: a peer may answer pings for ever and send nothing, or take nothing by keeping its windows
//! closed. So every request is followed here: it is our turn while a request is worked on or its answer has
//! nothing to send, the peer's while a piece waits to be taken. With no turn of ours for too long, the
//! connection is over. At shutdown the same question is asked of HTTP/1: hyper waits for a head that has begun.
//!
//! Each request of HTTP/1 begins and ends a turn, of which hardly anybody waits: that costs two operations on atomics
//! each, where a `watch` channel took a lock and looked for waiters in eight places.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The turns of one connection; clones count together. One at a time may wait for [`Turns::missed`].
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Shared>);

/// A turn of ours, until dropped.
pub(crate) struct Turn(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Turns of ours.
    count: AtomicUsize,
    /// Permits one look at the count after each change of it.
    changed: Notify,
}

impl Turns {
    /// Of a connection that has just begun: the peer is to speak.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Begins a turn of ours.
    pub(crate) fn ours(&self) -> Turn {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.changed.notify_one();
        Turn(self.0.clone())
    }

    /// Waits until it has been the peer's turn for `limit` without a pause.
    pub(crate) async fn missed(&self, limit: Duration) {
        loop {
            // Whatever is counted behind this look permits another one.
            let is_ours = self.0.count.load(Ordering::Relaxed) > 0;
            if is_ours {
                self.0.changed.notified().await;
            } else if timeout(limit, self.0.changed.notified()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

/// An answer's body. hyper asks it for a piece only when the peer has room for one.
pub(crate) struct InTurn<B> {
    body: B,
    turns: Turns,
    ours: Option<Turn>,
}

impl<B> InTurn<B> {
    /// A body that goes on with the turn in which its answer was made.
    pub(crate) fn new(body: B, turns: Turns, ours: Turn) -> Self {
        Self { body, turns, ours: Some(ours) }
    }
}

impl<B: Body + Unpin> Body for InTurn<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if self.ours.is_none() {
            self.ours = Some(self.turns.ours());
        }
        let piece = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.ours = None;
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body that keeps its turn to its end, however slowly it is taken: on HTTP/1, where stalled writes
/// have a guard of their own, turns tell only whether a request is under way.
pub(crate) struct Underway<B> {
    body: B,
    _ours: Turn,
}

impl<B> Underway<B> {
    /// A body that goes on with the turn in which its answer was made.
    pub(crate) fn new(body: B, ours: Turn) -> Self {
        Self { body, _ours: ours }
    }
}

impl<B: Body + Unpin> Body for Underway<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(80);

    #[tokio::test]
    async fn a_turn_is_missed_only_when_none_is_ours() {
        let turns = Turns::new();
        let begun = std::time::Instant::now();
        let (first, second) = (turns.ours(), turns.ours());
        let work = async {
            tokio::time::sleep(LIMIT * 2).await;
            drop(first);
            tokio::time::sleep(LIMIT * 2).await;
            drop(second);
            // A turn that is over at once counts as well.
            tokio::time::sleep(LIMIT / 4).await;
            drop(turns.ours());
        };
        tokio::join!(work, turns.missed(LIMIT));
        assert!(begun.elapsed() >= LIMIT * 5 + LIMIT / 4, "{:?}", begun.elapsed());
    }
}
