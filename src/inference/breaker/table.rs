//! The breakers of one provider: of the whole and of each of its models.
//!
//! What must hold: while none of them has anything to remember, a call costs some loads of a number and no lock; no
//! lock is held over a wait; the table is bounded, as the names of models come from callers; a probe that is dropped
//! makes room for the next.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{Breaker, Change, Threshold, Verdict, Way, of_model, of_provider};
use crate::providers::Failure;

/// The most models of a provider whose failures are remembered.
const MAX_MODELS: usize = 1000;

/// A circuit breaker that has something to remember. Those that have not are closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerReport {
    /// The provider's configured name.
    pub provider: String,
    /// By the provider's own name; `None` for the provider as a whole.
    pub model: Option<String>,
    /// How it stands.
    pub state: BreakerState,
}

/// How a circuit breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are made; some have failed since the last success.
    Closed,
    /// No call is made.
    Open,
    /// The pause is over: a probe is under way, or the next call will be it.
    HalfOpen,
}

/// The breakers of one provider.
pub(in crate::inference) struct Table {
    provider: String,
    /// How many breakers have something to remember. Without any, nobody needs the lock.
    watched: AtomicUsize,
    kept: Mutex<Kept>,
}

struct Kept {
    /// For the provider as a whole; models bring their own.
    threshold: Threshold,
    whole: Breaker,
    /// Those of models that have failed lately.
    models: HashMap<String, Breaker>,
}

/// The time that a call was given.
#[derive(Clone, Copy, Debug)]
pub(in crate::inference) struct Span {
    /// When it was asked for: waiting for a turn and earlier tries included.
    pub(in crate::inference) asked: Instant,
    /// When it ends.
    pub(in crate::inference) deadline: Instant,
}

/// Leave to make one call, to be settled with its outcome. Dropped, it says nothing: the caller has left.
pub(in crate::inference) struct Ticket<'a> {
    table: Arc<Table>,
    model: Cow<'a, str>,
    threshold: Threshold,
    span: Span,
    begun: Instant,
    /// Whether a part of the answer is on its way to the caller.
    is_under_way: bool,
    /// Of the whole provider.
    probes_whole: bool,
    probes_model: bool,
}

impl Table {
    pub(in crate::inference) fn new(provider: String, threshold: Threshold) -> Self {
        let kept = Kept { threshold, whole: Breaker::default(), models: HashMap::new() };
        Self { provider, watched: AtomicUsize::new(0), kept: Mutex::new(kept) }
    }

    /// Goes by another threshold for the provider as a whole from now on.
    pub(in crate::inference) fn set_threshold(&self, threshold: Threshold) {
        self.lock().threshold = threshold;
    }

    /// Why `model` would not be asked now, if so. Takes no probe's place.
    pub(in crate::inference) fn refusal(&self, model: &str, now: Instant) -> Option<Failure> {
        if self.watched.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.lock().refusal(model, now)
    }

    /// Leave to ask `model` now.
    ///
    /// # Errors
    /// [`Failure::Paused`].
    pub(in crate::inference) fn enter<'a>(
        self: &Arc<Self>,
        model: &'a str,
        threshold: Threshold,
        span: Span,
        now: Instant,
    ) -> Result<Ticket<'a>, Failure> {
        let mut ticket = Ticket {
            table: self.clone(),
            model: Cow::Borrowed(model),
            threshold,
            span,
            begun: now,
            is_under_way: false,
            probes_whole: false,
            probes_model: false,
        };
        if self.watched.load(Ordering::Relaxed) == 0 {
            return Ok(ticket);
        }
        let mut kept = self.lock();
        if let Some(paused) = kept.refusal(model, now) {
            return Err(paused);
        }
        if kept.whole.way(now) == Way::Probe {
            kept.whole.probe();
            ticket.probes_whole = true;
        }
        if let Some(breaker) = kept.models.get_mut(model).filter(|breaker| breaker.way(now) == Way::Probe) {
            breaker.probe();
            ticket.probes_model = true;
        }
        Ok(ticket)
    }

    /// What is remembered, the whole provider first, then models by name.
    pub(in crate::inference) fn report(&self, now: Instant) -> Vec<BreakerReport> {
        if self.watched.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let kept = self.lock();
        let mut reports: Vec<BreakerReport> = std::iter::once((None, &kept.whole))
            .chain(kept.models.iter().map(|(model, breaker)| (Some(model.clone()), breaker)))
            .filter(|(_, breaker)| !breaker.is_clean())
            .map(|(model, breaker)| BreakerReport {
                provider: self.provider.clone(),
                model,
                state: match breaker.way(now) {
                    Way::Free => BreakerState::Closed,
                    Way::Barred(wait) if !wait.is_zero() => BreakerState::Open,
                    Way::Probe | Way::Barred(_) => BreakerState::HalfOpen,
                },
            })
            .collect();
        drop(kept);
        reports.sort_by(|a, b| a.model.cmp(&b.model));
        reports
    }

    fn note(&self, kept: &Kept) {
        self.watched.store(kept.models.len() + usize::from(!kept.whole.is_clean()), Ordering::Relaxed);
    }

    /// Also after a panic elsewhere: a breaker is whole after every step.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, model: Option<&str>, change: Change, because: &str) {
        let provider = self.provider.as_str();
        match change {
            Change::Opened { failures, pause } => {
                tracing::warn!(
                    provider,
                    model,
                    failures,
                    ?pause,
                    outcome = because,
                    "a circuit breaker opens"
                );
            }
            Change::Closed => tracing::info!(provider, model, "a circuit breaker closes"),
        }
    }
}

impl Kept {
    /// The longer of both pauses, as both have to end.
    fn refusal(&self, model: &str, now: Instant) -> Option<Failure> {
        let paused = |whole_provider, breaker: &Breaker| match breaker.way(now) {
            Way::Barred(retry_after) => {
                Some(Failure::Paused { whole_provider, because: breaker.because(), retry_after })
            }
            Way::Free | Way::Probe => None,
        };
        let of_model = self.models.get(model).and_then(|breaker| paused(false, breaker));
        let of_whole = paused(true, &self.whole);
        of_model.into_iter().chain(of_whole).max_by_key(Failure::retry_after)
    }

    /// The breaker of a model that has failed. A full table forgets what counts little: failures that have paused
    /// nothing, and pauses that are over. `None` if only models under a pause are left.
    fn of_failing(&mut self, model: &str, now: Instant) -> Option<&mut Breaker> {
        if self.models.len() >= MAX_MODELS && !self.models.contains_key(model) {
            self.models.retain(|_, breaker| matches!(breaker.way(now), Way::Barred(_)));
            if self.models.len() >= MAX_MODELS {
                return None;
            }
        }
        Some(self.models.entry(model.to_owned()).or_default())
    }
}

impl Ticket<'_> {
    /// The model has answered, all of it.
    pub(in crate::inference) fn succeeded(mut self) {
        self.settle(Verdict::For, Verdict::For, None, self.begun);
    }

    /// The model has not answered.
    pub(in crate::inference) fn failed(mut self, failure: &Failure, now: Instant) {
        if !self.is_out_of_time(failure, now) {
            self.settle(of_provider(failure), of_model(failure), Some(failure), now);
        }
    }

    /// The first part of the answer is there. That is all a probe is for; what becomes of the rest counts as that of
    /// any other call.
    pub(in crate::inference) fn under_way(mut self) -> Ticket<'static> {
        if self.probes_whole || self.probes_model {
            self.settle(Verdict::For, Verdict::For, None, self.begun);
        }
        Ticket {
            table: self.table.clone(),
            model: Cow::Owned(std::mem::take(&mut self.model).into_owned()),
            threshold: self.threshold,
            span: self.span,
            begun: self.begun,
            is_under_way: true,
            probes_whole: false,
            probes_model: false,
        }
    }

    /// Whether a call ended with its deadline for want of time that others have used up: those before it in its
    /// provider's queue, or the reader of its answer.
    fn is_out_of_time(&self, failure: &Failure, now: Instant) -> bool {
        if *failure != Failure::Timeout || now < self.span.deadline {
            return false;
        }
        let given = self.span.deadline.saturating_duration_since(self.span.asked);
        self.is_under_way || now.saturating_duration_since(self.begun) * 2 < given
    }

    /// Successes and calls that say nothing may come with an earlier `now`: only a failure sets a time.
    fn settle(&mut self, whole: Verdict, model: Verdict, failure: Option<&Failure>, now: Instant) {
        let (probes_whole, probes_model) =
            (std::mem::take(&mut self.probes_whole), std::mem::take(&mut self.probes_model));
        let is_against = whole == Verdict::Against || model == Verdict::Against;
        if !is_against && self.table.watched.load(Ordering::Relaxed) == 0 {
            return;
        }
        let because = failure.map(|failure| (failure.code(), failure.retry_after()));
        let mut guard = self.table.lock();
        let kept = &mut *guard;
        let of_whole = kept.whole.settle(whole, probes_whole, kept.threshold, because, now);
        let breaker = if model == Verdict::Against && self.threshold.failures > 0 {
            kept.of_failing(&self.model, now)
        } else {
            kept.models.get_mut(&*self.model)
        };
        let of_model =
            breaker.and_then(|breaker| breaker.settle(model, probes_model, self.threshold, because, now));
        if kept.models.get(&*self.model).is_some_and(Breaker::is_clean) {
            kept.models.remove(&*self.model);
        }
        self.table.note(kept);
        drop(guard);
        let because = failure.map_or("", Failure::code);
        for (model, change) in [(None, of_whole), (Some(&*self.model), of_model)] {
            if let Some(change) = change {
                self.table.log(model, change, because);
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.probes_whole || self.probes_model {
            self.settle(Verdict::Neither, Verdict::Neither, None, self.begun);
        }
    }
}
