//! The breakers of one provider: one for the provider as a whole and one for each of its models.
//!
//! What must hold: no lock is held across an await; the table is bounded, as model names come from callers; a probe that
//! is dropped makes way for the next.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::{Admission, Breaker, Evidence, Threshold, Transition, model_evidence, provider_evidence};
use crate::inference::retry;
use crate::lock::Lock;
use crate::providers::Failure;

/// For how many models of a provider failures are remembered.
const MAX_MODELS: usize = 1000;

/// A circuit breaker that has recorded failures. All others are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerReport {
    /// The provider's configured name.
    pub provider: String,
    /// The model, by the provider's name for it; `None` for the provider as a whole.
    pub model: Option<String>,
    /// The state of the breaker.
    pub state: BreakerState,
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are made, although some have failed since the last success.
    Closed,
    /// No calls are made.
    Open,
    /// The pause is over: a probe is in progress, or the next call will be the probe.
    HalfOpen,
}

/// The breakers of one provider.
pub(in crate::inference) struct BreakerTable {
    provider_name: String,
    inner: Mutex<Inner>,
}

struct Inner {
    /// For the provider as a whole; each call brings the threshold of its model.
    provider_threshold: Threshold,
    provider: Breaker,
    /// The breakers of models that have failed lately.
    models: HashMap<String, Breaker>,
}

/// The time that a call has.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct CallTime {
    /// When it was requested: before it waited in a queue, and before earlier attempts.
    pub(in crate::inference) requested: Instant,
    /// When it has to be over.
    pub(in crate::inference) deadline: Instant,
}

/// Permission for one call, to be settled with its outcome. Dropped before that, it proves nothing: the caller has
/// left.
pub(in crate::inference) struct Ticket<'a> {
    table: Arc<BreakerTable>,
    model: Cow<'a, str>,
    threshold: Threshold,
    time: CallTime,
    started: Instant,
    /// Whether a part of the answer is on its way to the caller.
    is_streaming: bool,
    /// Whether the call is the probe of the provider as a whole.
    probes_provider: bool,
    /// Whether the call is the probe of its model.
    probes_model: bool,
}

impl BreakerTable {
    pub(in crate::inference) fn new(provider_name: String, threshold: Threshold) -> Self {
        let inner =
            Inner { provider_threshold: threshold, provider: Breaker::default(), models: HashMap::new() };
        Self { provider_name, inner: Mutex::new(inner) }
    }

    /// Sets the threshold for the provider as a whole.
    pub(in crate::inference) fn set_threshold(&self, threshold: Threshold) {
        self.inner.locked().provider_threshold = threshold;
    }

    /// [`Failure::Paused`] if `model` must not be called now. Begins no probe.
    pub(in crate::inference) fn paused(&self, model: &str, now: Instant) -> Option<Failure> {
        self.inner.locked().paused(model, now)
    }

    /// Permission to call `model` now.
    ///
    /// # Errors
    /// [`Failure::Paused`].
    pub(in crate::inference) fn admit<'a>(
        self: &Arc<Self>,
        model: &'a str,
        threshold: Threshold,
        time: CallTime,
        now: Instant,
    ) -> Result<Ticket<'a>, Failure> {
        let mut ticket = Ticket {
            table: self.clone(),
            model: Cow::Borrowed(model),
            threshold,
            time,
            started: now,
            is_streaming: false,
            probes_provider: false,
            probes_model: false,
        };
        let mut inner = self.inner.locked();
        if let Some(paused) = inner.paused(model, now) {
            return Err(paused);
        }
        if inner.provider.admission(now) == Admission::Probe {
            inner.provider.begin_probe();
            ticket.probes_provider = true;
        }
        if let Some(breaker) =
            inner.models.get_mut(model).filter(|breaker| breaker.admission(now) == Admission::Probe)
        {
            breaker.begin_probe();
            ticket.probes_model = true;
        }
        Ok(ticket)
    }

    /// All breakers that are not clean: that of the provider first, then those of models by name.
    pub(in crate::inference) fn report(&self, now: Instant) -> Vec<BreakerReport> {
        let inner = self.inner.locked();
        let mut reports: Vec<BreakerReport> = std::iter::once((None, &inner.provider))
            .chain(inner.models.iter().map(|(model, breaker)| (Some(model.clone()), breaker)))
            .filter(|(_, breaker)| !breaker.is_clean())
            .map(|(model, breaker)| BreakerReport {
                provider: self.provider_name.clone(),
                model,
                state: match breaker.admission(now) {
                    Admission::Allowed => BreakerState::Closed,
                    Admission::Blocked(wait) if !wait.is_zero() => BreakerState::Open,
                    Admission::Probe | Admission::Blocked(_) => BreakerState::HalfOpen,
                },
            })
            .collect();
        drop(inner);
        reports.sort_by(|a, b| a.model.cmp(&b.model));
        reports
    }

    fn log(&self, model: Option<&str>, transition: Transition, cause: &str) {
        let provider = self.provider_name.as_str();
        match transition {
            Transition::Opened { failures, pause } => {
                tracing::warn!(provider, model, failures, ?pause, outcome = cause, "a circuit breaker opens");
            }
            Transition::Closed => tracing::info!(provider, model, "a circuit breaker closes"),
        }
    }
}

impl Inner {
    /// The longer one of the model's and the provider's pause, as both have to end.
    fn paused(&self, model: &str, now: Instant) -> Option<Failure> {
        let paused = |whole_provider, breaker: &Breaker| match breaker.admission(now) {
            Admission::Blocked(retry_after) => {
                Some(Failure::Paused { whole_provider, because: breaker.cause(), retry_after })
            }
            Admission::Allowed | Admission::Probe => None,
        };
        let of_model = self.models.get(model).and_then(|breaker| paused(false, breaker));
        let of_provider = paused(true, &self.provider);
        of_model.into_iter().chain(of_provider).max_by_key(Failure::retry_after)
    }

    /// The breaker of a model that has failed. A full table evicts the least important entries: failures that have not
    /// led to a pause, and pauses that are over. `None` if all models in the table are paused.
    fn entry_of_failing(&mut self, model: &str, now: Instant) -> Option<&mut Breaker> {
        if self.models.len() >= MAX_MODELS && !self.models.contains_key(model) {
            self.models.retain(|_, breaker| matches!(breaker.admission(now), Admission::Blocked(_)));
            if self.models.len() >= MAX_MODELS {
                return None;
            }
        }
        Some(self.models.entry(model.to_owned()).or_default())
    }
}

impl Ticket<'_> {
    /// Settles it: the model has given a complete answer.
    pub(in crate::inference) fn succeeded(mut self) {
        self.settle(Evidence::Healthy, Evidence::Healthy, None, self.started);
    }

    /// Settles it: the call has failed.
    pub(in crate::inference) fn failed(mut self, failure: &Failure, now: Instant) {
        if !self.is_excused(failure, now) {
            self.settle(provider_evidence(failure), model_evidence(failure), Some(failure), now);
        }
    }

    /// The ticket for the rest of a stream whose first part has arrived. That settles a probe; the rest of its stream
    /// counts like any other call.
    pub(in crate::inference) fn into_streaming(mut self) -> Ticket<'static> {
        if self.probes_provider || self.probes_model {
            self.settle(Evidence::Healthy, Evidence::Healthy, None, self.started);
        }
        Ticket {
            table: self.table.clone(),
            model: Cow::Owned(std::mem::take(&mut self.model).into_owned()),
            threshold: self.threshold,
            time: self.time,
            started: self.started,
            is_streaming: true,
            probes_provider: false,
            probes_model: false,
        }
    }

    /// Whether a call ran into its deadline because others used up its time: the calls ahead of it in its provider's
    /// queue, or the reader of its answer.
    fn is_excused(&self, failure: &Failure, now: Instant) -> bool {
        if *failure != Failure::Timeout || now < self.time.deadline {
            return false;
        }
        let allowed = self.time.deadline.saturating_duration_since(self.time.requested);
        self.is_streaming || now.saturating_duration_since(self.started) * 2 < allowed
    }

    /// `now` may be in the past where nothing has failed: only a failure sets a time.
    fn settle(&mut self, provider: Evidence, model: Evidence, failure: Option<&Failure>, now: Instant) {
        let (probes_provider, probes_model) =
            (std::mem::take(&mut self.probes_provider), std::mem::take(&mut self.probes_model));
        let is_unhealthy = provider == Evidence::Unhealthy || model == Evidence::Unhealthy;
        let details = failure.map(|failure| (failure.code(), failure.retry_after()));
        let jitter = if is_unhealthy { retry::jitter() } else { 0.0 };
        let mut guard = self.table.inner.locked();
        let inner = &mut *guard;
        let of_provider =
            inner.provider.record(provider, probes_provider, inner.provider_threshold, details, now, jitter);
        let breaker = if model == Evidence::Unhealthy && self.threshold.failures > 0 {
            inner.entry_of_failing(&self.model, now)
        } else {
            inner.models.get_mut(&*self.model)
        };
        let of_model = breaker
            .and_then(|breaker| breaker.record(model, probes_model, self.threshold, details, now, jitter));
        if inner.models.get(&*self.model).is_some_and(Breaker::is_clean) {
            inner.models.remove(&*self.model);
        }
        drop(guard);
        let cause = failure.map_or("", Failure::code);
        for (model, transition) in [(None, of_provider), (Some(&*self.model), of_model)] {
            if let Some(transition) = transition {
                self.table.log(model, transition, cause);
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.probes_provider || self.probes_model {
            self.settle(Evidence::Neutral, Evidence::Neutral, None, self.started);
        }
    }
}
