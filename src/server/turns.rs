//! Whose turn it is on a connection, so that a peer that never takes its turn can be let go.
//!
//! A peer may send no head, or never the end of one; on HTTP/2 it may answer pings for ever, or take nothing by keeping
//! its windows closed. So every request is followed here: it is our turn while a request is worked on or its answer has
//! nothing to send, the peer's while a piece waits to be taken. With no turn of ours for too long, the connection is
//! over.
//!
//! Each request begins and ends a turn, and hardly ever is one missed: so that costs a count and a look at the clock, and
//! whoever waits finds out at the end of his time what has been going on. hyper's own timer for heads is set and taken
//! back for each request, a fiftieth of all that a short answer takes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

/// The turns of one connection; clones count together.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

/// A turn of ours, until dropped.
pub(crate) struct Turn(Arc<Shared>);

struct Shared {
    begun: Instant,
    /// Turns of ours.
    count: AtomicUsize,
    /// When the last one ended, in nanoseconds from the beginning.
    ended: AtomicU64,
}

impl Turns {
    /// Of a connection that has just begun: the peer is to speak.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { begun: Instant::now(), count: AtomicUsize::new(0), ended: AtomicU64::new(0) }))
    }

    /// Begins a turn of ours.
    pub(crate) fn ours(&self) -> Turn {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        Turn(self.0.clone())
    }

    /// Waits until it has been the peer's turn for `limit` from now on without a pause.
    pub(crate) async fn missed(&self, limit: Duration) {
        let mut since = Instant::now();
        loop {
            sleep_until(since + limit).await;
            let Shared { begun, count, ended } = &*self.0;
            // Who has counted down has told when, so that the count is looked at first.
            let is_ours = count.load(Ordering::Acquire) > 0;
            let last = *begun + Duration::from_nanos(ended.load(Ordering::Relaxed));
            if !is_ours && last <= since {
                return;
            }
            since = if is_ours { Instant::now() } else { last };
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let so_far = u64::try_from(self.0.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.ended.store(so_far, Ordering::Relaxed);
        self.0.count.fetch_sub(1, Ordering::Release);
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
