//! A model as it is called, and the one way to begin an attempt at it: for a verification and for a caller's
//! completion alike.
//!
//! What must hold: nothing is called without a place among the provider's calls, leave of the breakers and the money
//! for it, taken in this order, so that nothing is reserved and no probe is held while a call waits for its turn; a
//! call that was not made is neither booked nor counted.

use std::time::Duration;

use tokio::time::Instant;

use super::breaker::{Span, Threshold, Ticket};
use super::gateway::Known;
use super::retry;
use crate::providers::{CallPolicy, Failure, Permit};
use crate::usage::{Attempt, Meter, Unpaid};

/// A model to be called, and what all attempts at it share. It is kept for each call that waits, so it holds only those
/// parts of the call policy that each round needs.
pub(super) struct Upstream<'a> {
    pub(super) known: &'a Known,
    /// By the provider's own name.
    pub(super) model: &'a str,
    threshold: Threshold,
    /// How often it may be tried again.
    most_retries: u32,
    pub(super) span: Span,
    pub(super) meter: &'a Meter,
}

/// An attempt that may be made now, and has to be.
pub(super) struct Started<'a> {
    pub(super) permit: Permit,
    pub(super) ticket: Ticket<'a>,
    pub(super) attempt: Attempt,
    /// When its turn had come.
    pub(super) at: Instant,
}

impl<'a> Upstream<'a> {
    pub(super) const fn new(
        known: &'a Known,
        model: &'a str,
        call_policy: &CallPolicy,
        span: Span,
        meter: &'a Meter,
    ) -> Self {
        let threshold =
            Threshold { failures: call_policy.breaker_failures, pause: call_policy.breaker_pause };
        Self { known, model, threshold, most_retries: call_policy.retries, span, meter }
    }

    /// Begins an attempt, `now` or once its turn has come, which it does not wait for longer than `limit`. `begin` is
    /// told when that was, and reserves what it may cost.
    ///
    /// # Errors
    /// With what kept it from being made.
    #[expect(clippy::manual_async_fn, reason = "an async fn would keep its arguments twice while it waits")]
    pub(super) fn start(
        &self,
        now: Instant,
        limit: Option<Duration>,
        begin: impl FnOnce(Instant) -> Result<Attempt, Unpaid>,
    ) -> impl Future<Output = Result<Started<'a>, Failure>> {
        async move {
            // Asked before the wait for a turn as well: nobody queues up for a call that will not be made.
            if let Some(paused) = self.known.breakers.refusal(self.model, now) {
                return Err(paused);
            }
            let deadline = self.span.deadline;
            let admitted_by = limit.map_or(deadline, |limit| deadline.min(now + limit));
            let (permit, at) = self.known.provider.admit(now, admitted_by).await?;
            let ticket = self.known.breakers.enter(self.model, self.threshold, self.span, at)?;
            self.meter.load_spending().await;
            let attempt = begin(at)?;
            Ok(Started { permit, ticket, attempt, at })
        }
    }

    /// How long to pause after a failure before the model is tried once more than the `retries` so far; `None` if it
    /// should not be.
    pub(super) fn pause(&self, failure: &Failure, retries: u32) -> Option<Duration> {
        let now = Instant::now();
        retry::pause(failure, retries, retry::chance()).filter(|pause| {
            retries < self.most_retries
                && now + *pause < self.span.deadline
                && self.known.breakers.refusal(self.model, now).is_none()
        })
    }
}
