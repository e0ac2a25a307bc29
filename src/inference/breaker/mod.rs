//! Circuit breakers: no calls for a while to what keeps failing, then one probe at a time until one succeeds.
//!
//! ```text
//!          N consecutive failures                  the pause is over, a call arrives
//!   closed ───────────────────────▶ open for a pause ──────────────────────────────▶ half-open: that call probes
//!     ▲                                   ▲    └──────── the probe is inconclusive ◀─────┤  │
//!     │                                   └───────────── it fails: the pause doubles ◀───┘  │
//!     └───────────────────────────────────────────────── it succeeds ◀──────────────────────┘
//! ```
//!
//! There is a breaker for each model, and one for each provider as a whole. A failure counts against whoever could be
//! at fault. Only a connection that cannot be established (DNS, address, TLS) concerns all models of a provider, as no
//! request can cause that. All other failures count against the model alone, including rejected keys and exhausted
//! quotas: providers respond with those for single models and single requests as well, so that otherwise one caller,
//! who may name any model, could have the provider paused for everybody. Where the key really is wrong, that costs a
//! few more calls, which are rejected at once and free of charge.
//!
//! What the caller causes (a content refusal, an invalid or too long request, an unknown model, leaving early) and a
//! rate limit that passes within a minute count against nobody. A call that times out because it had to wait in the
//! queue, or because its reader is slow, does not count against the model either, nor does one that failed because this
//! server was out of file descriptors count against the provider.
//!
//! This file is the pure state machine; [`table`] holds the breakers of one provider.

mod table;

use std::time::Duration;

use tokio::time::Instant;

use super::retry;
use crate::providers::{CallPolicy, Failure};

pub use table::{BreakerReport, BreakerState};
pub(super) use table::{BreakerTable, CallTime, Ticket};

/// When a breaker opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    /// After this many consecutive failures; 0 for never.
    pub(super) failures: u32,
    /// How long it opens for at first.
    pub(super) pause: Duration,
    /// How long it opens for at most.
    pub(super) max_pause: Duration,
}

impl Threshold {
    pub(super) const fn of(policy: &CallPolicy) -> Self {
        let CallPolicy { breaker_failures, breaker_pause, breaker_max_pause, .. } = *policy;
        Self { failures: breaker_failures, pause: breaker_pause, max_pause: breaker_max_pause }
    }
}

/// The part of a pause that is left to chance, so that several servers do not probe at the same time, and none in step
/// with what fails at regular times.
const JITTER: f64 = 0.25;

/// What the outcome of a call says about the model or provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It works.
    Healthy,
    /// It does not work.
    Unhealthy,
    /// Nothing can be concluded.
    Neutral,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Yes, as the breaker is closed.
    Allowed,
    /// Yes, as the probe; its caller has to call [`Breaker::begin_probe`].
    Probe,
    /// Not before this time has passed; zero while a probe is in progress.
    Blocked(Duration),
}

/// A change of state that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// The breaker has opened.
    Opened {
        /// Consecutive failures, failed probes included.
        failures: u32,
        /// How long until the next probe.
        pause: Duration,
    },
    /// The breaker has closed.
    Closed,
}

/// One circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    state: State,
    /// Consecutive failures.
    failures: u32,
    /// The code of the last one.
    cause: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// No calls before `until`; the first one after that is the probe.
    Open { until: Instant, pause: Duration },
    /// A probe is in progress.
    Probing { pause: Duration },
}

impl Breaker {
    /// Whether a call may be made now.
    pub(super) fn admission(&self, now: Instant) -> Admission {
        match self.state {
            State::Closed => Admission::Allowed,
            State::Open { until, .. } if until <= now => Admission::Probe,
            State::Open { until, .. } => Admission::Blocked(until - now),
            State::Probing { .. } => Admission::Blocked(Duration::ZERO),
        }
    }

    /// Notes that a call that got [`Admission::Probe`] is being made.
    pub(super) fn begin_probe(&mut self) {
        if let State::Open { pause, .. } = self.state {
            self.state = State::Probing { pause };
        }
    }

    /// Records the outcome of a call. `failure` is its code and the wait that the provider asks for: a pause is never
    /// shorter than that, up to the longest pause that is set. `jitter`, from `0.0..1.0`, shortens a pause of our own.
    ///
    /// Calls that began before the breaker opened no longer count: the probe alone decides.
    pub(super) fn record(
        &mut self,
        evidence: Evidence,
        is_probe: bool,
        threshold: Threshold,
        failure: Option<(&'static str, Option<Duration>)>,
        now: Instant,
        jitter: f64,
    ) -> Option<Transition> {
        let probed = match self.state {
            State::Closed => None,
            State::Probing { pause } if is_probe => Some(pause),
            State::Open { .. } | State::Probing { .. } => return None,
        };
        match evidence {
            Evidence::Healthy => {
                *self = Self::default();
                probed.map(|_| Transition::Closed)
            }
            Evidence::Neutral => {
                if let Some(pause) = probed {
                    self.state = State::Open { until: now, pause };
                }
                None
            }
            // Turned off, it also drops a pause that it began before.
            Evidence::Unhealthy if threshold.failures == 0 => {
                *self = Self::default();
                probed.map(|_| Transition::Closed)
            }
            Evidence::Unhealthy => {
                let (cause, wait) = failure.unwrap_or_default();
                self.failures = self.failures.saturating_add(1);
                self.cause = cause;
                if probed.is_none() && self.failures < threshold.failures {
                    return None;
                }
                let max_pause = threshold.max_pause.max(threshold.pause);
                let pause = probed.map_or(threshold.pause, |pause| pause.saturating_mul(2)).min(max_pause);
                let asked = wait.unwrap_or_default().min(max_pause);
                let actual = pause.mul_f64(JITTER.mul_add(-jitter.clamp(0.0, 1.0), 1.0)).max(asked);
                self.state = State::Open { until: now + actual, pause };
                Some(Transition::Opened { failures: self.failures, pause: actual })
            }
        }
    }

    /// Whether it is as good as new: closed, and no failure since the last success.
    pub(super) const fn is_clean(&self) -> bool {
        matches!(self.state, State::Closed) && self.failures == 0
    }

    /// The code of the last failure.
    pub(super) const fn cause(&self) -> &'static str {
        self.cause
    }
}

/// What a failure says about the model that was called.
pub(super) fn model_evidence(failure: &Failure) -> Evidence {
    match failure {
        Failure::Unauthorized
        | Failure::QuotaExhausted
        | Failure::Overloaded { .. }
        | Failure::Broken { .. }
        | Failure::Malformed
        | Failure::Cut
        | Failure::Timeout => Evidence::Unhealthy,
        Failure::RateLimited { retry_after }
            if retry_after.is_some_and(|wait| wait > retry::MAX_RETRY_AFTER) =>
        {
            Evidence::Unhealthy
        }
        // The model has read the prompt and answered.
        Failure::Refused => Evidence::Healthy,
        Failure::RateLimited { .. }
        | Failure::UnknownModel
        | Failure::ContextOverflow { .. }
        // The caller's request can cause these: one caller must not get the model paused for all.
        | Failure::NoAnswer
        | Failure::TooLarge { .. }
        | Failure::Rejected { .. }
        | Failure::Unsupported { .. }
        | Failure::Unreachable
        | Failure::NoDescriptors
        | Failure::Paused { .. }
        | Failure::BudgetExceeded(_)
        | Failure::PriceUnknown
        | Failure::StoreUnavailable => Evidence::Neutral,
    }
}

/// What a failure says about the provider as a whole: whether it can be reached.
pub(super) const fn provider_evidence(failure: &Failure) -> Evidence {
    match failure {
        Failure::Unreachable => Evidence::Unhealthy,
        Failure::NoDescriptors | Failure::Timeout | Failure::Unsupported { .. } | Failure::Paused { .. } => {
            Evidence::Neutral
        }
        unpaid if unpaid.is_unpaid() => Evidence::Neutral,
        _ => Evidence::Healthy,
    }
}

#[cfg(test)]
mod tests;
