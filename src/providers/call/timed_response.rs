//! The resources that a streamed answer occupies: a connection and a permit for a concurrent call.
//!
//! A stream is pulled at its caller's pace. If the caller stops reading, nothing polls it, so no timeout of a pull
//! would ever fire, and a few such callers could block a provider for all others. So a task of its own ends the lease
//! at the deadline of the answer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::sleep_until;
use tokio_util::task::AbortOnDropHandle;

use super::open_response::OpenResponse;
use crate::providers::{CallPermit, Failure};

/// A response in progress and its permit. Dropping it stops the provider.
pub(in crate::providers) struct TimedResponse {
    /// `None` after the deadline. The lock is contended only while the timer ends the lease.
    held: Arc<Mutex<Option<(OpenResponse, CallPermit)>>>,
    _timer: AbortOnDropHandle<()>,
}

impl TimedResponse {
    pub(in crate::providers) fn new(response: OpenResponse, permit: CallPermit) -> Self {
        let end = response.end;
        let held = Arc::new(Mutex::new(Some((response, permit))));
        let ending = held.clone();
        let timer = async move {
            sleep_until(end).await;
            // A pull in progress has the same deadline and comes first.
            drop(ending.lock().await.take());
        };
        Self { held, _timer: AbortOnDropHandle::new(tokio::spawn(timer)) }
    }

    /// The next piece of the body; `None` at its end. Cancel-safe.
    ///
    /// # Errors
    /// As [`OpenResponse::next`], and [`Failure::Timeout`] after the deadline.
    pub(in crate::providers) async fn next(&self) -> Result<Option<Bytes>, Failure> {
        match &mut *self.held.lock().await {
            Some((response, _)) => response.next().await,
            None => Err(Failure::Timeout),
        }
    }

    /// Releases the permit and returns the response, unless its deadline has passed.
    pub(in crate::providers) fn into_response(self) -> Option<OpenResponse> {
        let (response, _) = self.held.try_lock().ok()?.take()?;
        Some(response)
    }
}
