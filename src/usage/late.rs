//! Calls that go on without their caller, so that a budget learns what they have used.
//!
//! The rule: a caller who leaves ends the calls made for them, and what they have used by then is booked, as far as it
//! was seen. But what was seen is no measure of what is charged: reasoning is never shown, and a whole answer is not
//! seen before its end. So nobody may hang up early and pay less: a call that a budget pays for is read on, for nobody,
//! until its provider says what it has used, and that is booked. Where that cannot be, what was reserved for the call
//! is charged, as an estimate: if [`MAX_CALLS`] are read on already, after [`MAX_TIME`], if the answer breaks off
//! without a report, if the server shuts down, and if it was the server that gave the call up at its own deadline.
//!
//! A call that is read on keeps its own timeouts, its limits of size, its place among the provider's calls and its
//! reservation, so none of these can be evaded by leaving either.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::money::Usage;

/// How many calls are read on at once, on all budgets together. Each takes as much memory as any call under way.
const MAX_CALLS: usize = 256;

/// For how long a call is read on at most.
const MAX_TIME: Duration = Duration::from_mins(2);

/// The calls that are read on.
pub(super) struct LateCalls {
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Default for LateCalls {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_CALLS)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl LateCalls {
    /// Calls `book` once `used` is known, and drops it if that is `None` or will never be: a dropped attempt is charged
    /// what was reserved.
    pub(super) fn follow(
        &self,
        used: impl Future<Output = Option<Usage>> + Send + 'static,
        book: impl FnOnce(Usage) + Send + 'static,
    ) {
        if self.stop.is_cancelled() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let Ok(permit) = self.permits.clone().try_acquire_owned() else { return };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let known = stop.run_until_cancelled(timeout(MAX_TIME, used)).await;
            if let Some(Ok(Some(usage))) = known {
                book(usage);
            }
            drop(permit);
        });
    }

    /// Stops all, and waits until they are booked. To be called once no more requests begin.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
