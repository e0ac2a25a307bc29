//! Circuit breakers: what keeps failing is left alone for a while, and one call at a time finds out if it is well.
//!
//! ```text
//!            N failures in a row                     the pause is over, a call comes
//!   closed ───────────────────────▶ open for a pause ──────────────────────────────▶ half-open: that call probes
//!     ▲                                   ▲    └──────── a probe that tells nothing ◀────┤  │
//!     │                                   └───────────── it fails: twice the pause ◀─────┘  │
//!     └───────────────────────────────────────────────── it succeeds ◀───────────────────────┘
//! ```
//!
//! There is one for each model, and one for each provider as a whole. What counts where follows from who could be at
//! fault. Only a connection that does not stand (name, address, TLS) concerns all models of a provider: no request can
//! bring that about. All other failures count for the model alone, refused keys and spent quotas included: providers
//! answer with those for single models and single requests as well, so that otherwise one caller, who names models as
//! he likes, could have the provider paused for everybody. Where the key is wrong indeed, that costs a few calls more,
//! which are refused at once and for nothing.
//!
//! What the caller brings about (a refusal of the content, a request that is wrong or too long, a model that nobody
//! knows, leaving early) and a rate limit that passes within a minute speak against nobody. A call that runs out of
//! time because it had to wait for its turn, or because its reader is slow, is not held against the model either, nor is
//! one that this server had no descriptor for held against the provider.
//!
//! This file is the pure part; [`table`] keeps the breakers of one provider.

mod table;

use std::time::Duration;

use tokio::time::Instant;

use super::retry;
use crate::providers::{Failure, MAX_BREAKER_PAUSE};

pub use table::{BreakerReport, BreakerState};
pub(super) use table::{Span, Table, Ticket};

/// When to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    /// After so many failures in a row; 0 for never.
    pub(super) failures: u32,
    /// For how long at first.
    pub(super) pause: Duration,
}

/// What the outcome of a call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is well.
    For,
    /// It is not.
    Against,
    /// Nothing.
    Neither,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Like any other.
    Free,
    /// As the probe, if [`Breaker::probe`] is told.
    Probe,
    /// Not before this has passed; zero while a probe is under way.
    Barred(Duration),
}

/// What is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It opens for so long, after so many failures in a row.
    Opened {
        /// In a row, failed probes included.
        failures: u32,
        /// Until the next probe.
        pause: Duration,
    },
    /// It has closed.
    Closed,
}

/// One breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Breaker {
    state: State,
    /// In a row.
    failures: u32,
    /// The code of the last of them.
    because: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// Closed to calls until then; from then on the next one probes.
    Open { until: Instant, pause: Duration },
    /// A probe is under way.
    Probing { pause: Duration },
}

impl Breaker {
    /// Whether a call may be made now.
    pub(super) fn way(&self, now: Instant) -> Way {
        match self.state {
            State::Closed => Way::Free,
            State::Open { until, .. } if until <= now => Way::Probe,
            State::Open { until, .. } => Way::Barred(until - now),
            State::Probing { .. } => Way::Barred(Duration::ZERO),
        }
    }

    /// The call that was told [`Way::Probe`] is made.
    pub(super) fn probe(&mut self) {
        if let State::Open { pause, .. } = self.state {
            self.state = State::Probing { pause };
        }
    }

    /// A call is over; of its failure the code counts, and how long its provider asks us to wait: a pause is never
    /// shorter than that, but for the longest there is.
    ///
    /// Calls that began before it opened have no weight any more: the probe alone decides.
    pub(super) fn settle(
        &mut self,
        verdict: Verdict,
        is_probe: bool,
        threshold: Threshold,
        failure: Option<(&'static str, Option<Duration>)>,
        now: Instant,
    ) -> Option<Change> {
        let probed = match self.state {
            State::Closed => None,
            State::Probing { pause } if is_probe => Some(pause),
            State::Open { .. } | State::Probing { .. } => return None,
        };
        match verdict {
            Verdict::For => {
                *self = Self::default();
                probed.map(|_| Change::Closed)
            }
            Verdict::Neither => {
                if let Some(pause) = probed {
                    self.state = State::Open { until: now, pause };
                }
                None
            }
            // Turned off, it forgets a pause as well that it had begun before.
            Verdict::Against if threshold.failures == 0 => {
                *self = Self::default();
                probed.map(|_| Change::Closed)
            }
            Verdict::Against => {
                let (because, wait) = failure.unwrap_or_default();
                self.failures = self.failures.saturating_add(1);
                self.because = because;
                if probed.is_none() && self.failures < threshold.failures {
                    return None;
                }
                let pause = probed.map_or(threshold.pause, |pause| pause.saturating_mul(2));
                let pause = pause.min(MAX_BREAKER_PAUSE);
                let stay = wait.unwrap_or_default().clamp(pause, MAX_BREAKER_PAUSE);
                self.state = State::Open { until: now + stay, pause };
                Some(Change::Opened { failures: self.failures, pause: stay })
            }
        }
    }

    /// Whether there is nothing to remember.
    pub(super) const fn is_clean(&self) -> bool {
        matches!(self.state, State::Closed) && self.failures == 0
    }

    /// The code of the last failure.
    pub(super) const fn because(&self) -> &'static str {
        self.because
    }
}

/// What a failure says of the model that was asked.
pub(super) fn of_model(failure: &Failure) -> Verdict {
    match failure {
        Failure::Unauthorized
        | Failure::QuotaExhausted
        | Failure::Overloaded { .. }
        | Failure::Broken { .. }
        | Failure::Malformed
        | Failure::Cut
        | Failure::Timeout => Verdict::Against,
        Failure::RateLimited { retry_after }
            if retry_after.is_some_and(|wait| wait > retry::LONGEST_WAIT) =>
        {
            Verdict::Against
        }
        // It has read the prompt and answered.
        Failure::Refused => Verdict::For,
        Failure::RateLimited { .. }
        | Failure::UnknownModel
        | Failure::ContextOverflow
        // One caller is not to have the model paused for all.
        | Failure::NoAnswer
        | Failure::TooLarge { .. }
        | Failure::Rejected { .. }
        | Failure::Unsupported { .. }
        | Failure::Unreachable
        | Failure::NoDescriptors
        | Failure::Paused { .. }
        | Failure::BudgetExceeded(_)
        | Failure::PriceUnknown
        | Failure::StoreUnavailable => Verdict::Neither,
    }
}

/// What a failure says of the provider as a whole: whether it can be reached.
pub(super) const fn of_provider(failure: &Failure) -> Verdict {
    match failure {
        Failure::Unreachable => Verdict::Against,
        Failure::NoDescriptors | Failure::Timeout | Failure::Unsupported { .. } | Failure::Paused { .. } => {
            Verdict::Neither
        }
        unpaid if unpaid.is_unpaid() => Verdict::Neither,
        _ => Verdict::For,
    }
}

#[cfg(test)]
mod tests;
