//! The usage of one request: totalled for its response, and recorded attempt by attempt.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use tokio::sync::futures::OwnedNotified;

use super::budgets::Reservation;
use super::journal::{OpenCall, Registration};
use super::request::{CANCELLED, End, Request};
use super::totals::Used;
use super::{Account, Accounting, BudgetError, ModelTotal, Purpose, RequestTotal, spans};
use crate::clock::Time;
use crate::lock::Lock;
use crate::metrics;
use crate::money::{NanoUsd, Price, Tokens, Usage};
use crate::storage::CACHED;
use crate::traces::{self, Kind, Parent, Span};

/// Adds up what one request uses. Clones share the totals, for the concurrent parts of a request and for a response
/// that outlives its handler.
#[derive(Clone)]
pub struct Meter {
    request: Arc<Request>,
    accounting: Arc<Accounting>,
}

impl Meter {
    /// A meter whose attempts are recorded there.
    pub fn new(account: Account, accounting: Arc<Accounting>) -> Self {
        let request = Arc::new(Request::new(account, accounting.clock.clone()));
        Self { request, accounting }
    }

    /// The key whose request this is.
    pub fn key_id(&self) -> &Arc<str> {
        &self.request.account.key_id
    }

    /// The app whose request this is.
    pub fn app_id(&self) -> &Arc<str> {
        &self.request.account.app_id
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
        Box::pin(self.accounting.ledger.load_spending(&self.request.account, self.now())).await
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
        let account = &self.request.account;
        let reservation = if account.budget.is_set() {
            Some(self.accounting.ledger.reserve(account, max_cost(), self.now())?)
        } else {
            None
        };
        let model = model.into();
        let span = spans::begin(&self.place(), &model, purpose, now);
        Ok(self.begin(OpenCall::new(self.request.clone(), model, price, now, span), purpose, reservation))
    }

    fn begin(&self, call: OpenCall, purpose: Purpose, reservation: Option<Reservation>) -> Attempt {
        Attempt {
            accounting: self.accounting.clone(),
            registration: self.accounting.ledger.journal().begin(call),
            purpose,
            first_token: None,
            reservation,
            is_booked: false,
        }
    }

    /// Records that an answer of `model` was found instead of being asked for: a request that used nothing, whatever is
    /// left of budgets. `price` is the model's, if known.
    pub fn book_found(&self, model: Arc<str>, price: Option<Price>) {
        let call = OpenCall::new(self.request.clone(), model, price, Instant::now(), Span::default());
        self.begin(call, Purpose::Chat, None).finish(CACHED, Usage::reported(Tokens::default()));
    }

    /// Whether the account has a budget.
    pub fn has_budget(&self) -> bool {
        self.request.account.budget.is_set()
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
        self.accounting.ledger.check(&self.request.account, max_cost, self.now())
    }

    /// Completes when a call has released a part of its reservation, so that another attempt may fit. To be called
    /// before the attempt that may not fit, so that no release is missed. `None` without a budget.
    pub fn freed(&self) -> Option<Pin<Box<OwnedNotified>>> {
        let mut freed = self.has_budget().then(|| Box::pin(self.accounting.ledger.freed()))?;
        freed.as_mut().enable();
        Some(freed)
    }

    /// The time at which attempts are recorded.
    pub fn now(&self) -> Time {
        self.request.now()
    }

    /// The recorded usage so far, by model (in order of first use) and purpose.
    pub fn totals(&self) -> Vec<ModelTotal> {
        self.request.totals()
    }

    /// The recorded usage so far, over all models.
    pub fn sum(&self) -> RequestTotal {
        self.request.sum()
    }

    /// A part of the request's work in its trace, inside the span that this thread is in.
    pub fn span(&self, name: &'static str) -> Span {
        self.place().child(name, Kind::Internal, Instant::now())
    }

    /// What begins now is a part of this span: the one that this thread is in, or else the request's.
    fn place(&self) -> Parent {
        let request = &self.request.account.trace;
        if request.is_none() {
            return Parent::default();
        }
        let inner = traces::current();
        if inner.is_none() { request.clone() } else { inner }
    }

    /// Counts a retry of a failed attempt at `model`.
    pub fn count_retry(&self, model: &str) {
        self.accounting.metrics().attempts.count_retry(model);
    }

    /// Counts and logs that `fallback` is called in place of `model`; `outcome` says why, by the code of a failure.
    pub fn count_fallback(&self, model: &str, outcome: &str, fallback: &str) {
        self.accounting.metrics().attempts.count_fallback(model);
        tracing::warn!(model, outcome, fallback, "falling back to another model");
    }

    /// Sets the outcome of the attempts that are dropped from now on, such as those under way.
    pub fn abort_with(&self, outcome: &'static str) {
        self.request.abort_with(outcome);
    }
}

/// An attempt under way. If dropped, it is recorded as `cancelled`, or with the outcome set by [`Meter::abort_with`];
/// what was reserved for it of a budget is charged then, as nobody knows what it has used (`late` has the rule).
#[must_use = "an attempt that is dropped is booked as cancelled"]
pub struct Attempt {
    accounting: Arc<Accounting>,
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
        if self.is_traced() { self.registration.call().span.locked().traceparent() } else { None }
    }

    fn is_traced(&self) -> bool {
        !self.request().account.trace.is_none()
    }

    /// Tells its span something, if it is recorded.
    pub fn note(&self, tell: impl FnOnce(&mut Span)) {
        if self.is_traced() {
            let mut span = self.registration.call().span.locked();
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
        // What the server itself gives up is booked before its request is summed up.
        if self.is_paid_by_budget() && self.request().aborted().is_none() {
            let accounting = self.accounting.clone();
            accounting.ledger.late().follow(used, |usage| self.finish(CANCELLED, usage));
        }
    }

    fn cost(&self, usage: Usage) -> Option<NanoUsd> {
        self.registration.call().price.map(|price| price.of(usage.tokens))
    }

    fn request(&self) -> &Request {
        &self.registration.call().request
    }

    fn book(&mut self, outcome: &'static str, usage: Usage, cost: Option<NanoUsd>) {
        let mut reservation = self.reservation.take();
        if let (Some(reservation), Some(cost)) = (&mut reservation, cost) {
            reservation.settle(cost);
        }
        let ledger = &self.accounting.ledger;
        let call = self.registration.call();
        let took = call.begun.elapsed();
        ledger.journal().end(&self.registration);
        let used = Used { usage, cost };
        let position = call.request.add(&call.model, self.purpose, outcome, used);
        let tokens = usage.tokens;
        let counted = metrics::Attempt {
            model: &call.model,
            outcome,
            took,
            first_token: self.first_token,
            prompt_tokens: tokens.prompt,
            completion_tokens: tokens.completion,
            cached_tokens: tokens.cached,
            cache_write_tokens: tokens.cache_written,
            cost,
        };
        self.accounting.metrics().attempts.count(&counted);
        if self.is_traced() {
            let span = std::mem::take(&mut *call.span.locked());
            spans::end(span, &counted, usage.is_estimated);
        }
        let row = call.row(&End { outcome, used, took, position }, ledger.journal().server());
        tracing::debug!(
            request_id = &*row.request_id,
            model = &*row.model,
            purpose = ?self.purpose,
            outcome,
            prompt_tokens = tokens.prompt,
            completion_tokens = tokens.completion,
            is_estimated = usage.is_estimated,
            cost_usd = cost.map(NanoUsd::usd),
            ms = row.latency_ms,
            "attempt"
        );
        ledger.book(row, reservation);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_booked {
            let call = self.registration.call();
            let (outcome, used) = (call.request.aborted(), call.used());
            let reserved = self.reservation.as_ref().map(Reservation::amount);
            let usage = Usage::estimated(used);
            let cost = self.cost(usage).map(|cost| cost.max(reserved.unwrap_or_default()));
            self.book(outcome.unwrap_or(CANCELLED), usage, cost);
        }
    }
}

#[cfg(test)]
mod tests;
