//! A peer that stops reading is cut off: hyper has no write timeout, and neither has warp.
//!
//! The timer is armed only when a write cannot go on at once, so that the usual write costs nothing. While a write
//! waits, the connection counts as busy and not as idle.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::turns::{Turn, Turns};

/// A stream whose writes fail with `TimedOut` when the peer takes nothing for too long.
pub(crate) struct StallGuard<S> {
    inner: S,
    limit: Duration,
    turns: Turns,
    /// While a write cannot go on, which is a turn of ours.
    waiting: Option<(Pin<Box<Sleep>>, Turn)>,
    stalled: Stalled,
}

/// Tells from beside whether a stream's last write could not go on. Clones tell the same.
#[derive(Clone, Default)]
pub(crate) struct Stalled(Arc<AtomicBool>);

impl Stalled {
    /// Whether it could not.
    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> StallGuard<S> {
    pub(crate) fn new(inner: S, limit: Duration, turns: Turns) -> Self {
        Self { inner, limit, turns, waiting: None, stalled: Stalled::default() }
    }

    /// Whether it waits for its peer.
    pub(crate) fn stalled(&self) -> Stalled {
        self.stalled.clone()
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.waiting.take().is_some() {
                self.stalled.0.store(false, Ordering::Relaxed);
            }
            return outcome;
        }
        self.stalled.0.store(true, Ordering::Relaxed);
        let Self { limit, turns, waiting, .. } = self;
        let (limit, begin) = (*limit, || (Box::pin(sleep(*limit)), turns.ours()));
        let (timer, _) = waiting.get_or_insert_with(begin);
        ready!(timer.as_mut().poll(context));
        timer.as_mut().reset(Instant::now() + limit);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        self.watch(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(context);
        self.watch(context, outcome)
    }
}
