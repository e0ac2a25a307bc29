//! A write timeout for connections, which disconnects peers that stop reading: neither hyper nor warp has one.
//!
//! The timer is armed only when a write cannot proceed at once, so that the usual write costs nothing. While a write
//! waits, the connection counts as busy, not as idle.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::activity::{Activity, BusyGuard};

/// A stream whose writes fail with `TimedOut` when the peer accepts nothing for too long.
pub(crate) struct WriteTimeout<S> {
    inner: S,
    limit: Duration,
    activity: Activity,
    /// The timer of a write that is pending.
    pending: Option<(Pin<Box<Sleep>>, BusyGuard)>,
    stalled: WriteStalled,
}

/// Whether a stream's last write is pending, to be asked while hyper owns the stream. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct WriteStalled(Arc<AtomicBool>);

impl WriteStalled {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(inner: S, limit: Duration, activity: Activity) -> Self {
        Self { inner, limit, activity, pending: None, stalled: WriteStalled::default() }
    }

    /// A handle that tells whether a write waits for the peer.
    pub(crate) fn stalled(&self) -> WriteStalled {
        self.stalled.clone()
    }

    fn check<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if self.pending.take().is_some() {
                self.stalled.0.store(false, Ordering::Relaxed);
            }
            return outcome;
        }
        self.stalled.0.store(true, Ordering::Relaxed);
        let Self { limit, activity, pending, .. } = self;
        let (limit, start) = (*limit, || (Box::pin(sleep(*limit)), activity.busy()));
        let (timer, _) = pending.get_or_insert_with(start);
        ready!(timer.as_mut().poll(context));
        timer.as_mut().reset(Instant::now() + limit);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.check(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(context);
        self.check(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(context);
        self.check(context, outcome)
    }
}
