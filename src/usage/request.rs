//! One request: on whose account it runs, and what its calls have used so far.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::totals::Used;
use super::{Account, ModelTotal, Purpose, RequestTotal};
use crate::clock::{Clock, Time};
use crate::lock::Lock;
use crate::money::NanoUsd;
use crate::storage::{AttemptRow, CACHED, CallId};

/// The outcome of an attempt that was simply dropped: the caller left.
pub(super) const CANCELLED: &str = "cancelled";

/// What the calls of one request share.
pub(super) struct Request {
    pub(super) account: Account,
    clock: Clock,
    totals: Mutex<Vec<ModelTotal>>,
    attempts: AtomicU32,
    /// The outcome of attempts dropped from now on, if it is not that the caller left.
    drop_outcome: OnceLock<&'static str>,
    /// Its number in the journal of calls under way; 0 as long as none of its attempts is there.
    journal_number: AtomicU64,
}

/// How a call ended, or would end if its server died now.
pub(super) struct End {
    pub(super) outcome: &'static str,
    pub(super) used: Used,
    pub(super) took: Duration,
    pub(super) position: Position,
}

/// The position of an attempt among those of its request, in the order of recording.
#[derive(Clone, Copy)]
pub(super) struct Position {
    is_first: bool,
    is_first_of_model: bool,
}

impl Request {
    /// A request that has used nothing yet.
    pub(super) fn new(account: Account, clock: Clock) -> Self {
        Self {
            account,
            clock,
            totals: Mutex::default(),
            attempts: AtomicU32::new(0),
            drop_outcome: OnceLock::new(),
            journal_number: AtomicU64::new(0),
        }
    }

    /// The time at which attempts are recorded.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// What was recorded so far, by model (in order of first use) and purpose.
    pub(super) fn totals(&self) -> Vec<ModelTotal> {
        self.totals.locked().clone()
    }

    /// What was recorded so far, over all models.
    pub(super) fn sum(&self) -> RequestTotal {
        let attempts = self.attempts.load(Ordering::Relaxed);
        let zero =
            RequestTotal { attempts, prompt_tokens: 0, completion_tokens: 0, cost: Some(NanoUsd::default()) };
        let totals = self.totals.locked();
        totals.iter().filter(|total| !total.is_nothing()).fold(zero, |sum, total| RequestTotal {
            prompt_tokens: sum.prompt_tokens.saturating_add(total.prompt_tokens),
            completion_tokens: sum.completion_tokens.saturating_add(total.completion_tokens),
            cost: sum.cost.zip(total.cost).map(|(sum, more)| sum.plus(more)),
            ..sum
        })
    }

    /// Sets the outcome of the attempts that are dropped from now on; the first one stays.
    pub(super) fn abort_with(&self, outcome: &'static str) {
        let _ = self.drop_outcome.set(outcome);
    }

    /// The outcome of attempts dropped from now on, if it is not that the caller left.
    pub(super) fn aborted(&self) -> Option<&'static str> {
        self.drop_outcome.get().copied()
    }

    /// Numbers the request in the journal; the first number is kept.
    pub(super) fn number(&self, number: u64) {
        let _ = self.journal_number.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Adds what an attempt used, and gives its position.
    pub(super) fn add(
        &self,
        model: &Arc<str>,
        purpose: Purpose,
        outcome: &'static str,
        used: Used,
    ) -> Position {
        let mut totals = self.totals.locked();
        let position = Position::next(&totals, model);
        let known = totals.iter_mut().find(|total| total.model == *model && total.purpose == purpose);
        if let Some(total) = known {
            total.add(used);
        } else {
            let mut total = ModelTotal {
                model: model.clone(),
                purpose,
                prompt_tokens: 0,
                completion_tokens: 0,
                cost: None,
            };
            total.add(used);
            totals.push(total);
        }
        drop(totals);
        self.attempts.fetch_add(u32::from(outcome != CACHED), Ordering::Relaxed);
        position
    }

    /// The position of an attempt at `model` that is recorded next.
    pub(super) fn next_position(&self, model: &Arc<str>) -> Position {
        Position::next(&self.totals.locked(), model)
    }

    /// The row of a call to `model` that has this number in the journal of `server`, if any.
    pub(super) fn row(
        &self,
        model: &Arc<str>,
        end: &End,
        server: &Arc<str>,
        number: Option<u64>,
    ) -> AttemptRow {
        let Self { account, journal_number, .. } = self;
        let End { outcome, used, took, position } = *end;
        AttemptRow {
            at: self.now(),
            request_id: account.request_id.clone(),
            app_id: account.app_id.clone(),
            key_id: account.key_id.clone(),
            service: account.service,
            model: model.clone(),
            outcome: Cow::Borrowed(outcome),
            prompt_tokens: used.usage.tokens.prompt,
            completion_tokens: used.usage.tokens.completion,
            cached_tokens: used.usage.tokens.cached,
            cache_write_tokens: used.usage.tokens.cache_written,
            cost: used.cost,
            is_estimated: used.usage.is_estimated,
            latency_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            is_first: position.is_first,
            is_first_of_model: position.is_first_of_model,
            labels: account.labels.clone(),
            call: match journal_number.load(Ordering::Relaxed) {
                0 => None,
                request => Some(Box::new(CallId { server: server.clone(), request, number })),
            },
        }
    }
}

impl Position {
    /// That of an attempt at `model` after those that are in `totals`.
    fn next(totals: &[ModelTotal], model: &Arc<str>) -> Self {
        Self {
            is_first: totals.is_empty(),
            is_first_of_model: totals.iter().all(|total| total.model != *model),
        }
    }
}
