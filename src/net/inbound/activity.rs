//! Activity tracking for connections, so that a peer that never does its part can be disconnected.
//!
//! A peer may send no head, or never the end of one; on HTTP/2 it may answer pings for ever, or take nothing by keeping
//! its windows closed. So every request is followed here: the connection is busy while a request is worked on or its
//! body has nothing to send yet, and idle while a chunk waits for the peer to take it. A connection that has been idle
//! for too long is closed.
//!
//! Every request starts and ends an activity, while the idle timeout hardly ever fires: so an activity costs a counter
//! and a reading of the clock, and only the waiting side works out, when its time is up, what has happened meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The activity of one connection; clones share their state.
#[derive(Clone)]
pub(crate) struct Activity(Arc<Shared>);

/// Keeps a connection busy until dropped.
pub(crate) struct BusyGuard(Arc<Shared>);

struct Shared {
    start: Instant,
    /// How many [`BusyGuard`]s there are.
    busy: AtomicUsize,
    /// When the last one was dropped, in nanoseconds since `start`.
    last_busy: AtomicU64,
    /// Notified when the connection is to make room for others.
    eviction: Notify,
}

impl Activity {
    /// The activity of a connection that has just been opened: idle, as the peer has to speak first.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            start: Instant::now(),
            busy: AtomicUsize::new(0),
            last_busy: AtomicU64::new(0),
            eviction: Notify::new(),
        }))
    }

    /// Marks the connection as busy until the guard is dropped.
    pub(crate) fn busy(&self) -> BusyGuard {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard(self.0.clone())
    }

    /// Since when the connection has been idle; `None` while it is busy.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let Shared { start, busy, last_busy, .. } = &*self.0;
        // A dropped guard stores the time before it decrements the counter, so the counter is read first.
        let is_busy = busy.load(Ordering::Acquire) > 0;
        let last = Duration::from_nanos(last_busy.load(Ordering::Relaxed));
        (!is_busy).then(|| *start + last)
    }

    /// Waits until the connection has been idle for `limit` without interruption, counted from now on.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        let mut since = Instant::now();
        loop {
            sleep_until(since + limit).await;
            let idle_since = self.idle_since();
            if idle_since.is_some_and(|last| last <= since) {
                return;
            }
            since = idle_since.unwrap_or_else(Instant::now);
        }
    }

    /// Asks the connection to close if it is still idle.
    pub(crate) fn evict(&self) {
        self.0.eviction.notify_one();
    }

    /// Waits until the connection is asked to close while it is idle.
    pub(crate) async fn evicted(&self) {
        loop {
            self.0.eviction.notified().await;
            if self.idle_since().is_some() {
                return;
            }
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        let so_far = u64::try_from(self.0.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.last_busy.store(so_far, Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Release);
    }
}

/// A response body that keeps its connection busy only while it produces a frame. hyper polls it only when the peer has
/// room for one, so a peer that takes nothing leaves the connection idle.
pub(crate) struct BusyWhilePolled<B> {
    body: B,
    activity: Activity,
    guard: Option<BusyGuard>,
}

impl<B> BusyWhilePolled<B> {
    /// Wraps a body; `guard` is the one under which its response was made.
    pub(crate) fn new(body: B, activity: Activity, guard: BusyGuard) -> Self {
        Self { body, activity, guard: Some(guard) }
    }
}

impl<B: Body + Unpin> Body for BusyWhilePolled<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if self.guard.is_none() {
            self.guard = Some(self.activity.busy());
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.guard = None;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that keeps its connection busy until its end, however slowly the peer reads: on HTTP/1, stalled
/// writes have a timeout of their own, and activity only tells whether a request is under way.
pub(crate) struct BusyUntilDone<B> {
    body: B,
    _guard: BusyGuard,
}

impl<B> BusyUntilDone<B> {
    /// Wraps a body; `guard` is the one under which its response was made.
    pub(crate) fn new(body: B, guard: BusyGuard) -> Self {
        Self { body, _guard: guard }
    }
}

impl<B: Body + Unpin> Body for BusyUntilDone<B> {
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
    async fn a_connection_is_idle_only_while_no_guard_is_held() {
        let activity = Activity::new();
        let start = std::time::Instant::now();
        let (first, second) = (activity.busy(), activity.busy());
        let work = async {
            tokio::time::sleep(LIMIT * 2).await;
            drop(first);
            tokio::time::sleep(LIMIT * 2).await;
            drop(second);
            // An activity that ends at once counts as well.
            tokio::time::sleep(LIMIT / 4).await;
            drop(activity.busy());
        };
        tokio::join!(work, activity.idle_for(LIMIT));
        assert!(start.elapsed() >= LIMIT * 5 + LIMIT / 4, "{:?}", start.elapsed());
    }
}
