//! A model to be called, and the only way to start an attempt, for verifications and callers' completions alike.
//!
//! What must hold: each attempt has a permit of the provider's queue, a ticket of the breakers and a reservation of
//! budget, acquired in this order, so that no budget is reserved and no probe is held up while a call waits in the
//! queue; a call that was not made is neither booked nor counted.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::time::Instant;

use super::breaker::{CallTime, Threshold, Ticket};
use super::gateway::ProviderEntry;
use super::retry;
use crate::providers::{CallPermit, CallPolicy, Failure};
use crate::traces::Span;
use crate::usage::{Attempt, BudgetError, Meter};

/// A model to be called, and what all attempts share. As every waiting call holds one, it has only those settings of
/// the model that each attempt needs.
#[derive(Clone, Copy)]
pub(super) struct Upstream<'a> {
    pub(super) entry: &'a Arc<ProviderEntry>,
    /// The provider's name for the model.
    pub(super) model: &'a str,
    threshold: Threshold,
    /// How often a failed call may be retried.
    max_retries: u32,
    pub(super) time: CallTime,
    pub(super) meter: &'a Meter,
}

/// An attempt that may be made now, and must be.
pub(super) struct Started<'a> {
    pub(super) permit: CallPermit,
    pub(super) ticket: Ticket<'a>,
    pub(super) attempt: Attempt,
    /// When the permit was acquired.
    pub(super) at: Instant,
}

impl<'a> Upstream<'a> {
    pub(super) const fn new(
        entry: &'a Arc<ProviderEntry>,
        model: &'a str,
        call_policy: &CallPolicy,
        time: CallTime,
        meter: &'a Meter,
    ) -> Self {
        let threshold = Threshold::of(call_policy);
        Self { entry, model, threshold, max_retries: call_policy.retries, time, meter }
    }

    /// Starts an attempt once there is a permit, for which it waits no longer than `wait_limit`. `reserve` gets the
    /// time of that and reserves what the attempt may cost.
    ///
    /// # Errors
    /// The reason why the attempt must not be made.
    #[expect(clippy::manual_async_fn, reason = "an async fn would store its arguments twice while it waits")]
    pub(super) fn start(
        &self,
        now: Instant,
        wait_limit: Option<Duration>,
        reserve: impl FnOnce(Instant) -> Result<Attempt, BudgetError>,
    ) -> impl Future<Output = Result<Started<'a>, Failure>> {
        async move {
            // Checked before the queue as well: no call waits for a permit that it could not use.
            if let Some(paused) = self.entry.breakers.paused(self.model, now) {
                return Err(paused);
            }
            // Waiting for a database must not take up a place among the provider's calls, which others could use.
            let now = self.load_spending(now).await?;
            let deadline = self.time.deadline;
            let wait_until = wait_limit.map_or(deadline, |limit| deadline.min(now + limit));
            let (permit, at) = self.entry.provider.admit(self.meter.key_id(), now, wait_until).await?;
            let ticket = self.entry.breakers.admit(self.model, self.threshold, self.time, at)?;
            // It is forgotten if the call has waited for long.
            let at = self.load_spending(at).await?;
            let attempt = reserve(at)?;
            attempt.note(|span| self.tell_server(span));
            let permit = permit.in_trace(attempt.traceparent());
            Ok(Started { permit, ticket, attempt, at })
        }
    }

    /// Tells a span which server is called.
    fn tell_server(&self, span: &mut Span) {
        let settings = self.entry.provider.settings();
        let Ok(address) = settings.base_url.parse::<Uri>() else { return };
        span.set_some("server.address", address.host().map(str::to_owned));
        let usual = if address.scheme_str() == Some("http") { 80 } else { 443 };
        span.set_some("server.port", address.host().map(|_| address.port_u16().unwrap_or(usual)));
    }

    /// Makes sure that the caller's spending is known. Returns the time after that: `now`, unless it may have taken some,
    /// which is not to be counted as the provider's.
    async fn load_spending(&self, now: Instant) -> Result<Instant, Failure> {
        if !self.meter.has_budget() {
            return Ok(now);
        }
        self.meter.load_spending().await?;
        Ok(Instant::now())
    }

    /// How long to pause after a failure before the next retry, with `retries` made so far; `None` if there should be
    /// no further retry.
    pub(super) fn pause(&self, failure: &Failure, retries: u32) -> Option<Duration> {
        let now = Instant::now();
        retry::pause(failure, retries, retry::jitter()).filter(|pause| {
            retries < self.max_retries
                && now + *pause < self.time.deadline
                && self.entry.breakers.paused(self.model, now).is_none()
        })
    }
}
