//! The usage of one request: totalled for its response, and recorded attempt by attempt.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use tokio::sync::futures::OwnedNotified;

use super::budgets::Reservation;
use super::journal::{OpenCall, Registration};
use super::spans;
use super::{Account, Accounting, BudgetError, Purpose};
use crate::clock::Time;
use crate::lock::Lock;
use crate::metrics;
use crate::money::{NanoUsd, Price, Tokens, Usage};
use crate::storage::{AttemptRow, CACHED, CallId, INTERRUPTED};
use crate::traces::{self, Kind, Parent, Span};

/// The outcome of an attempt that was simply dropped: the caller left.
pub(super) const CANCELLED: &str = "cancelled";

/// Adds up what one request uses. Clones share the totals, for the concurrent parts of a request and for a response
/// that outlives its handler.
#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    account: Account,
    accounting: Arc<Accounting>,
    totals: Mutex<Vec<ModelTotal>>,
    attempts: AtomicU32,
    /// The outcome of attempts dropped from now on, if it is not that the caller left.
    drop_outcome: OnceLock<&'static str>,
    /// Its number in the journal of calls under way; 0 as long as none of its attempts is there.
    journal_number: AtomicU64,
}

impl Meter {
    /// A meter whose attempts are recorded there.
    pub fn new(account: Account, accounting: Arc<Accounting>) -> Self {
        Self(Arc::new(Shared {
            account,
            accounting,
            totals: Mutex::new(Vec::new()),
            attempts: AtomicU32::new(0),
            drop_outcome: OnceLock::new(),
            journal_number: AtomicU64::new(0),
        }))
    }

    /// The key whose request this is.
    pub fn key_id(&self) -> &Arc<str> {
        &self.0.account.key_id
    }

    /// The app whose request this is.
    pub fn app_id(&self) -> &Arc<str> {
        &self.0.account.app_id
    }

    /// Loads what was spent of the account's budgets, so that nothing has to wait for it later. To be called right
    /// before an attempt or [`Meter::check`].
    ///
    /// # Errors
    /// If it cannot be loaded; an attempt would fail.
    pub async fn load_spending(&self) -> Result<(), BudgetError> {
        if !self.has_budget() {
            return Ok(());
        }
        // Boxed, as calls without a budget need no room for it.
        Box::pin(self.0.accounting.ledger.load_spending(&self.0.account, self.now())).await
    }

    /// Begins an attempt at `model` (its full identifier) at the time `now`, with its price if that is known. If there
    /// is a budget, `max_cost` returns the most it may cost (`None` if unknown), which is reserved until the attempt is
    /// in the ledger.
    ///
    /// # Errors
    /// If a budget does not allow it. Then nothing is recorded, and the model must not be called.
    pub fn attempt(
        &self,
        model: impl Into<Arc<str>>,
        purpose: Purpose,
        price: Option<Price>,
        now: Instant,
        max_cost: impl FnOnce() -> Option<NanoUsd>,
    ) -> Result<Attempt, BudgetError> {
        let Shared { account, accounting, .. } = &*self.0;
        let reservation = if account.budget.is_set() {
            Some(accounting.ledger.reserve(account, max_cost(), self.now())?)
        } else {
            None
        };
        let model = model.into();
        let span = spans::begin(self, &model, purpose, now);
        Ok(self.begin(OpenCall::new(self.clone(), model, price, now, span), purpose, reservation))
    }

    fn begin(&self, call: OpenCall, purpose: Purpose, reservation: Option<Reservation>) -> Attempt {
        let registration = self.0.accounting.ledger.journal().begin(call);
        Attempt { registration, purpose, first_token: None, reservation, is_booked: false }
    }

    /// Records that an answer of `model` was found instead of being asked for: a request that used nothing, whatever is
    /// left of budgets. `price` is the model's, if known.
    pub fn book_found(&self, model: Arc<str>, price: Option<Price>) {
        let call = OpenCall::new(self.clone(), model, price, Instant::now(), Span::default());
        self.begin(call, Purpose::Chat, None).finish(CACHED, Usage::reported(Tokens::default()));
    }

    /// Whether the account has a budget.
    pub fn has_budget(&self) -> bool {
        self.0.account.budget.is_set()
    }

    /// Checks that an attempt of this cost at most could begin now; for requests that respond before their first
    /// attempt.
    ///
    /// # Errors
    /// If a budget would not allow it.
    pub fn check(&self, max_cost: Option<NanoUsd>) -> Result<(), BudgetError> {
        if !self.has_budget() {
            return Ok(());
        }
        self.0.accounting.ledger.check(&self.0.account, max_cost, self.now())
    }

    /// Completes when a call has released a part of its reservation, so that another attempt may fit. To be called
    /// before the attempt that may not fit, so that no release is missed. `None` without a budget.
    pub fn freed(&self) -> Option<Pin<Box<OwnedNotified>>> {
        let mut freed = self.has_budget().then(|| Box::pin(self.0.accounting.ledger.freed()))?;
        freed.as_mut().enable();
        Some(freed)
    }

    /// The time at which attempts are recorded.
    pub fn now(&self) -> Time {
        self.0.accounting.clock.now()
    }

    /// The recorded usage so far, by model (in order of first use) and purpose.
    pub fn totals(&self) -> Vec<ModelTotal> {
        self.0.totals.locked().clone()
    }

    /// The recorded usage so far, over all models.
    pub fn sum(&self) -> RequestTotal {
        let zero = RequestTotal {
            attempts: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            cost: Some(NanoUsd::default()),
        };
        let totals = self.0.totals.locked();
        let sum = totals.iter().filter(|total| !total.is_nothing()).fold(zero, |sum, total| RequestTotal {
            prompt_tokens: sum.prompt_tokens.saturating_add(total.prompt_tokens),
            completion_tokens: sum.completion_tokens.saturating_add(total.completion_tokens),
            cost: sum.cost.zip(total.cost).map(|(sum, more)| sum.plus(more)),
            ..sum
        });
        RequestTotal { attempts: self.0.attempts.load(Ordering::Relaxed), ..sum }
    }

    /// A part of the request's work in its trace, inside the span that this thread is in.
    pub fn span(&self, name: &'static str) -> Span {
        self.place().child(name, Kind::Internal, Instant::now())
    }

    /// What begins now is a part of this span: the one that this thread is in, or else the request's.
    pub(super) fn place(&self) -> Parent {
        let request = &self.0.account.trace;
        if request.is_none() {
            return Parent::default();
        }
        let inner = traces::current();
        if inner.is_none() { request.clone() } else { inner }
    }

    /// Counts a retry of a failed attempt at `model`.
    pub fn count_retry(&self, model: &str) {
        self.0.accounting.metrics().attempts.count_retry(model);
    }

    /// Counts and logs that `fallback` is called in place of `model`; `outcome` says why, by the code of a failure.
    pub fn count_fallback(&self, model: &str, outcome: &str, fallback: &str) {
        self.0.accounting.metrics().attempts.count_fallback(model);
        tracing::warn!(model, outcome, fallback, "falling back to another model");
    }

    /// Sets the outcome of the attempts that are dropped from now on, such as those under way.
    pub fn abort_with(&self, outcome: &'static str) {
        // The first reason stays.
        let _ = self.0.drop_outcome.set(outcome);
    }

    fn book(&self, attempt: &Attempt, reservation: Option<Reservation>, outcome: &'static str, used: Used) {
        let Used { usage: Usage { tokens, is_estimated }, cost } = used;
        let call = attempt.registration.call();
        let took = call.begun.elapsed();
        attempt.registration.end();
        let position = self.add(&call.model, attempt.purpose, used);
        self.0.attempts.fetch_add(u32::from(outcome != CACHED), Ordering::Relaxed);
        let account = &self.0.account;
        let counted = metrics::Attempt {
            model: &call.model,
            outcome,
            took,
            first_token: attempt.first_token,
            prompt_tokens: tokens.prompt,
            completion_tokens: tokens.completion,
            cached_tokens: tokens.cached,
            cache_write_tokens: tokens.cache_written,
            cost,
        };
        self.0.accounting.metrics().attempts.count(&counted);
        if !account.trace.is_none() {
            let span = std::mem::take(&mut *call.span.locked());
            spans::end(span, &counted, is_estimated);
        }
        let row = self.row(call, outcome, used, took, position);
        tracing::debug!(
            request_id = &*account.request_id,
            model = &*call.model,
            purpose = ?attempt.purpose,
            outcome,
            prompt_tokens = tokens.prompt,
            completion_tokens = tokens.completion,
            is_estimated,
            cost_usd = cost.map(NanoUsd::usd),
            ms = row.latency_ms,
            "attempt"
        );
        self.0.accounting.ledger.book(row, reservation);
    }

    /// Numbers the request in the journal; the first number is kept.
    pub(super) fn number_request(&self, number: u64) {
        let _ = self.0.journal_number.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What a call that the journal has numbered would be booked as if its server died now.
    pub(super) fn under_way(&self, call: &OpenCall, tokens: Tokens) -> AttemptRow {
        let position = Position::next(&self.0.totals.locked(), &call.model);
        let used = Used { usage: Usage::estimated(tokens), cost: call.price.map(|price| price.of(tokens)) };
        self.row(call, INTERRUPTED, used, call.begun.elapsed(), position)
    }

    fn row(
        &self,
        call: &OpenCall,
        outcome: &'static str,
        used: Used,
        took: Duration,
        position: Position,
    ) -> AttemptRow {
        let Shared { account, accounting, journal_number, .. } = &*self.0;
        let place = |request| CallId {
            server: accounting.ledger.journal().server().clone(),
            request,
            number: call.number(),
        };
        AttemptRow {
            at: accounting.clock.now(),
            request_id: account.request_id.clone(),
            app_id: account.app_id.clone(),
            key_id: account.key_id.clone(),
            service: account.service,
            model: call.model.clone(),
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
                request => Some(Box::new(place(request))),
            },
        }
    }

    fn add(&self, model: &Arc<str>, purpose: Purpose, used: Used) -> Position {
        let mut totals = self.0.totals.locked();
        let position = Position::next(&totals, model);
        let known = totals.iter_mut().find(|total| total.model == *model && total.purpose == purpose);
        if let Some(total) = known {
            total.add(used);
            return position;
        }
        let mut total =
            ModelTotal { model: model.clone(), purpose, prompt_tokens: 0, completion_tokens: 0, cost: None };
        total.add(used);
        totals.push(total);
        position
    }
}

/// The position of an attempt among those of its request, in the order of recording.
#[derive(Clone, Copy)]
struct Position {
    is_first: bool,
    is_first_of_model: bool,
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

/// What an attempt used.
#[derive(Clone, Copy)]
struct Used {
    usage: Usage,
    /// `None` if its price is unknown.
    cost: Option<NanoUsd>,
}

/// An attempt under way. If dropped, it is recorded as `cancelled`, or with the outcome set by [`Meter::abort_with`];
/// what was reserved for it of a budget is charged then, as nobody knows what it has used (`late` has the rule).
#[must_use = "an attempt that is dropped is booked as cancelled"]
pub struct Attempt {
    registration: Registration,
    purpose: Purpose,
    first_token: Option<Duration>,
    /// The amount reserved for it, if there is a budget.
    reservation: Option<Reservation>,
    is_booked: bool,
}

impl Attempt {
    /// Sets the usage recorded if the attempt is cancelled, or its server dies: the tokens of the prompt, and of the
    /// completion received so far.
    pub fn set_expected(&mut self, tokens: Tokens) {
        self.registration.call().set_used(tokens);
    }

    /// The header that tells the provider which trace it is part of; `None` without traces.
    pub fn traceparent(&self) -> Option<HeaderValue> {
        if self.registration.call().meter.0.account.trace.is_none() {
            return None;
        }
        self.registration.call().span.locked().traceparent()
    }

    /// Tells its span something, if it is recorded.
    pub fn note(&self, tell: impl FnOnce(&mut Span)) {
        let call = self.registration.call();
        if !call.meter.0.account.trace.is_none() {
            let mut span = call.span.locked();
            if span.is_recorded() {
                tell(&mut span);
            }
        }
    }

    /// Records that the first event of its stream has arrived.
    pub fn mark_first_token(&mut self) {
        self.first_token = Some(self.registration.call().begun.elapsed());
    }

    /// Records the attempt. `outcome` is `ok` or a failure's code.
    pub fn finish(mut self, outcome: &'static str, usage: impl Into<Usage>) {
        let usage = usage.into();
        self.is_booked = true;
        self.book(outcome, usage, self.cost(usage));
    }

    /// Records an attempt that the server itself has given up early, with what was seen of it.
    pub fn give_up(self) {
        let used = self.registration.call().used();
        self.finish(CANCELLED, Usage::estimated(used));
    }

    /// Whether a budget pays for it, so that its usage has to be known even if its caller leaves.
    pub fn is_paid_by_budget(&self) -> bool {
        self.reservation.as_ref().is_some_and(|reservation| reservation.amount() > NanoUsd::default())
    }

    /// Records an attempt whose caller has left, once `used` is known, if a budget pays for it; else as if dropped. It
    /// resolves to `None` if what was used will never be known. Dropping it ends the call.
    pub fn follow(self, used: impl Future<Output = Option<Usage>> + Send + 'static) {
        let meter = self.registration.call().meter.clone();
        // What the server itself gives up is booked before its request is summed up.
        if self.is_paid_by_budget() && meter.0.drop_outcome.get().is_none() {
            meter.0.accounting.ledger.late().follow(self, used);
        }
    }

    fn cost(&self, usage: Usage) -> Option<NanoUsd> {
        self.registration.call().price.map(|price| price.of(usage.tokens))
    }

    fn book(&mut self, outcome: &'static str, usage: Usage, cost: Option<NanoUsd>) {
        let mut reservation = self.reservation.take();
        if let (Some(reservation), Some(cost)) = (&mut reservation, cost) {
            reservation.settle(cost);
        }
        self.registration.call().meter.book(self, reservation, outcome, Used { usage, cost });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_booked {
            let call = self.registration.call();
            let (outcome, used) = (call.meter.0.drop_outcome.get().copied(), call.used());
            let reserved = self.reservation.as_ref().map(Reservation::amount);
            let usage = Usage::estimated(used);
            let cost = self.cost(usage).map(|cost| cost.max(reserved.unwrap_or_default()));
            self.book(outcome.unwrap_or(CANCELLED), usage, cost);
        }
    }
}

/// The usage of a whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTotal {
    /// The number of attempts.
    pub attempts: u32,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price.
    pub cost: Option<NanoUsd>,
}

/// The usage of one model for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTotal {
    /// The model's configured identifier.
    pub model: Arc<str>,
    /// What it was used for.
    pub purpose: Purpose,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price, and as long as no attempt has one.
    pub cost: Option<NanoUsd>,
}

impl ModelTotal {
    /// Whether nothing was used, at an unknown price.
    pub const fn is_nothing(&self) -> bool {
        self.prompt_tokens == 0 && self.completion_tokens == 0 && self.cost.is_none()
    }

    fn add(&mut self, Used { usage: Usage { tokens, .. }, cost }: Used) {
        self.cost = match (self.cost, cost) {
            (None, cost) if self.is_nothing() => cost,
            (Some(sum), None) if tokens == Tokens::default() => Some(sum),
            (sum, more) => sum.zip(more).map(|(sum, more)| sum.plus(more)),
        };
        self.prompt_tokens = self.prompt_tokens.saturating_add(tokens.prompt);
        self.completion_tokens = self.completion_tokens.saturating_add(tokens.completion);
    }
}

#[cfg(test)]
mod tests;
