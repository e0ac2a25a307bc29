//! What a streamed answer occupies at its provider: a connection, and a place among the calls at once.
//!
//! A stream is pulled at its caller's pace, and a caller who takes nothing more is waited for by nobody here: no limit
//! of a pull would ever be looked at, and a few such callers would keep a provider from all others. So a task of its
//! own ends the lease when the answer's time is up.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::sleep_until;
use tokio_util::task::AbortOnDropHandle;

use super::opened::Opened;
use super::{Failure, Permit};

/// An answer under way and its place. Dropping it stops the provider.
pub(super) struct Lease {
    /// `None` once its time is up. Waited for only while the other side ends.
    held: Arc<Mutex<Option<(Opened, Permit)>>>,
    _timer: AbortOnDropHandle<()>,
}

impl Lease {
    pub(super) fn new(opened: Opened, permit: Permit) -> Self {
        let end = opened.end;
        let held = Arc::new(Mutex::new(Some((opened, permit))));
        let ending = held.clone();
        let timer = async move {
            sleep_until(end).await;
            // A pull that is under way has the same limit and comes first.
            drop(ending.lock().await.take());
        };
        Self { held, _timer: AbortOnDropHandle::new(tokio::spawn(timer)) }
    }

    /// The next piece of the body; `None` at its end. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// As [`Opened::next`], and if the answer's time is up.
    pub(super) async fn next(&self) -> Result<Option<Bytes>, Failure> {
        match &mut *self.held.lock().await {
            Some((opened, _)) => opened.next().await,
            None => Err(Failure::Timeout),
        }
    }

    /// Gives the place back; the answer, unless its time is up.
    pub(super) fn end(self) -> Option<Opened> {
        let (opened, _) = self.held.try_lock().ok()?.take()?;
        Some(opened)
    }
}
