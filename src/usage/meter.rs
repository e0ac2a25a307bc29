//! The usage of one request: totalled for its response, and recorded attempt by attempt.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::futures::OwnedNotified;

use super::budgets::Reservation;
use super::{Account, Accounting, BudgetError, Purpose};
use crate::clock::Time;
use crate::metrics;
use crate::money::{NanoUsd, Price, Tokens};
use crate::storage::AttemptRow;

/// The outcome of an attempt that was simply dropped: the caller left.
const CANCELLED: &str = "cancelled";

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
}

impl Meter {
    /// A meter whose attempts are recorded there.
    pub fn new(account: Account, accounting: Arc<Accounting>) -> Self {
        let (totals, attempts) = (Mutex::new(Vec::new()), AtomicU32::new(0));
        Self(Arc::new(Shared { account, accounting, totals, attempts, drop_outcome: OnceLock::new() }))
    }

    /// Loads what was spent of the account's budgets, so that nothing has to wait for it later. To be called right
    /// before an attempt or [`Meter::check`].
    pub async fn load_spending(&self) {
        if self.has_budget() {
            // Boxed, as calls without a budget need no room for it.
            Box::pin(self.0.accounting.ledger.load_spending(&self.0.account, self.now())).await;
        }
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
        Ok(Attempt {
            meter: self.clone(),
            model: model.into(),
            purpose,
            price,
            begun: now,
            first_token: None,
            expected: Tokens::default(),
            reservation,
            is_booked: false,
        })
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
        self.lock_totals().clone()
    }

    /// The recorded usage so far, over all models.
    pub fn sum(&self) -> RequestTotal {
        let zero = RequestTotal {
            attempts: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            cost: Some(NanoUsd::default()),
        };
        let totals = self.lock_totals();
        let sum = totals.iter().filter(|total| !total.is_nothing()).fold(zero, |sum, total| RequestTotal {
            prompt_tokens: sum.prompt_tokens.saturating_add(total.prompt_tokens),
            completion_tokens: sum.completion_tokens.saturating_add(total.completion_tokens),
            cost: sum.cost.zip(total.cost).map(|(sum, more)| sum.plus(more)),
            ..sum
        });
        RequestTotal { attempts: self.0.attempts.load(Ordering::Relaxed), ..sum }
    }

    /// Counts a retry of a failed attempt at `model`.
    pub fn count_retry(&self, model: &str) {
        self.0.accounting.metrics().attempts.count_retry(model);
    }

    /// Counts and logs that `fallback` is called in place of `model`.
    pub fn count_fallback(&self, model: &str, fallback: &str) {
        self.0.accounting.metrics().attempts.count_fallback(model);
        tracing::warn!(model, fallback, "another model is asked in the place of one that failed");
    }

    /// Sets the outcome of the attempts that are dropped from now on, such as those under way.
    pub fn abort_with(&self, outcome: &'static str) {
        // The first reason stays.
        let _ = self.0.drop_outcome.set(outcome);
    }

    fn book(&self, attempt: &Attempt, reservation: Option<Reservation>, outcome: &'static str, used: Used) {
        let Used { tokens, cost } = used;
        let took = attempt.begun.elapsed();
        let position = self.add(&attempt.model, attempt.purpose, used);
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        let account = &self.0.account;
        let counted = metrics::Attempt {
            model: &attempt.model,
            outcome,
            took,
            first_token: attempt.first_token,
            prompt_tokens: tokens.prompt,
            completion_tokens: tokens.completion,
            cost,
        };
        self.0.accounting.metrics().attempts.count(&counted);
        let latency_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            request_id = &*account.request_id,
            model = &*attempt.model,
            purpose = ?attempt.purpose,
            outcome,
            prompt_tokens = tokens.prompt,
            completion_tokens = tokens.completion,
            cost_usd = cost.map(NanoUsd::usd),
            ms = latency_ms,
            "attempt"
        );
        let row = AttemptRow {
            at: self.0.accounting.clock.now(),
            request_id: account.request_id.clone(),
            app_id: account.app_id.clone(),
            key_id: account.key_id.clone(),
            service: account.service,
            model: attempt.model.clone(),
            outcome: Cow::Borrowed(outcome),
            prompt_tokens: tokens.prompt,
            completion_tokens: tokens.completion,
            cost,
            latency_ms,
            is_first: position.is_first,
            is_first_of_model: position.is_first_of_model,
        };
        self.0.accounting.ledger.book(row, reservation);
    }

    fn add(&self, model: &Arc<str>, purpose: Purpose, used: Used) -> Position {
        let mut totals = self.lock_totals();
        let position = Position {
            is_first: totals.is_empty(),
            is_first_of_model: totals.iter().all(|total| total.model != *model),
        };
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

    /// Ignores poisoning: totals are consistent after every step.
    fn lock_totals(&self) -> MutexGuard<'_, Vec<ModelTotal>> {
        self.0.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The position of an attempt among those of its request, in the order of recording.
#[derive(Clone, Copy)]
struct Position {
    is_first: bool,
    is_first_of_model: bool,
}

/// What an attempt used.
#[derive(Clone, Copy)]
struct Used {
    tokens: Tokens,
    /// `None` if its price is unknown.
    cost: Option<NanoUsd>,
}

/// An attempt under way. If dropped, it is recorded as `cancelled`, or with the outcome set by [`Meter::abort_with`].
#[must_use = "an attempt that is dropped is booked as cancelled"]
pub struct Attempt {
    meter: Meter,
    model: Arc<str>,
    purpose: Purpose,
    /// The price of its tokens. Without it, the total of this model and purpose has no cost.
    price: Option<Price>,
    begun: Instant,
    first_token: Option<Duration>,
    /// The usage recorded if it is dropped.
    expected: Tokens,
    /// The amount reserved for it, if there is a budget.
    reservation: Option<Reservation>,
    is_booked: bool,
}

impl Attempt {
    /// Sets the usage recorded if the attempt is cancelled: the tokens of the prompt, and of the completion received so
    /// far.
    pub const fn set_expected(&mut self, tokens: Tokens) {
        self.expected = tokens;
    }

    /// Records that the first event of its stream has arrived.
    pub fn mark_first_token(&mut self) {
        self.first_token = Some(self.begun.elapsed());
    }

    /// Records the attempt. `outcome` is `ok` or a failure's code.
    pub fn finish(mut self, outcome: &'static str, tokens: Tokens) {
        self.is_booked = true;
        self.book(outcome, tokens);
    }

    fn book(&mut self, outcome: &'static str, tokens: Tokens) {
        let cost = self.price.map(|price| price.of(tokens));
        let mut reservation = self.reservation.take();
        if let (Some(reservation), Some(cost)) = (&mut reservation, cost) {
            reservation.settle(cost);
        }
        self.meter.book(self, reservation, outcome, Used { tokens, cost });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_booked {
            let outcome = self.meter.0.drop_outcome.get().copied().unwrap_or(CANCELLED);
            self.book(outcome, self.expected);
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

    fn add(&mut self, Used { tokens, cost }: Used) {
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
mod tests {
    use super::*;
    use crate::api::Service;
    use crate::clock::Clock;
    use crate::storage::Store;
    use crate::usage::{Budget, Ledger};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    struct Desk {
        store: Store,
        ledger: Ledger,
        meter: Meter,
    }

    fn desk() -> Desk {
        let store = Store::in_memory(NOW).unwrap();
        let ledger = Ledger::new(store.clone());
        let account = Account {
            request_id: "req_1".into(),
            app_id: "app_1".into(),
            key_id: "key_1".into(),
            service: Service::Verify,
            budget: Budget::default(),
        };
        let meter = Meter::new(account, Accounting::new(ledger.clone(), Clock::manual(NOW)));
        Desk { store, ledger, meter }
    }

    /// At one nano-dollar per token.
    fn begin(desk: &Desk, model: &str, purpose: Purpose) -> Attempt {
        let each = NanoUsd(1_000_000);
        begin_at(desk, model, purpose, Some(Price { input_per_mtok: each, output_per_mtok: each }))
    }

    fn begin_at(desk: &Desk, model: &str, purpose: Purpose, price: Option<Price>) -> Attempt {
        desk.meter.attempt(model, purpose, price, Instant::now(), || None).unwrap()
    }

    const fn tokens(prompt: u64, completion: u64) -> Tokens {
        Tokens { prompt, completion }
    }

    fn booked(desk: &Desk) -> Vec<AttemptRow> {
        desk.ledger.flush().unwrap();
        desk.store.attempts_of("req_1").unwrap()
    }

    #[test]
    fn a_finished_attempt_is_recorded_once_and_summed() {
        let desk = desk();
        begin(&desk, "a/x", Purpose::Extraction).finish("ok", tokens(10, 5));
        begin_at(&desk, "b/y", Purpose::Verification, None).finish("provider_timeout", tokens(0, 0));
        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
        begin(&desk, "a/x", Purpose::Extraction).finish("ok", tokens(1, 2));

        let rows = booked(&desk);
        assert_eq!(rows.len(), 4);
        assert_eq!((&*rows[0].model, &*rows[0].outcome, rows[0].at), ("a/x", "ok", NOW));
        assert_eq!((&*rows[0].app_id, &*rows[0].key_id), ("app_1", "key_1"));
        assert_eq!((&*rows[1].outcome, rows[1].cost), ("provider_timeout", None));
        let places: Vec<_> = rows.iter().map(|row| (row.is_first, row.is_first_of_model)).collect();
        assert_eq!(places, [(true, true), (false, true), (false, false), (false, false)]);

        let total = |model: &str, purpose, prompt_tokens, completion_tokens, cost| ModelTotal {
            model: model.into(),
            purpose,
            prompt_tokens,
            completion_tokens,
            cost,
        };
        let expected = [
            total("a/x", Purpose::Extraction, 11, 7, Some(NanoUsd(18))),
            total("b/y", Purpose::Verification, 0, 0, None),
            total("a/x", Purpose::Verification, 1, 1, Some(NanoUsd(2))),
        ];
        assert_eq!(desk.meter.totals(), expected);
        let sum =
            RequestTotal { attempts: 4, prompt_tokens: 12, completion_tokens: 8, cost: Some(NanoUsd(20)) };
        assert_eq!(desk.meter.sum(), sum);
    }

    #[test]
    fn a_dropped_attempt_is_recorded_as_cancelled() {
        let desk = desk();
        let mut attempt = begin(&desk, "a/x", Purpose::Verification);
        attempt.set_expected(tokens(120, 0));
        drop(attempt);
        let rows = booked(&desk);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (&*rows[0].outcome, rows[0].prompt_tokens, rows[0].cost),
            ("cancelled", 120, Some(NanoUsd(120)))
        );
        assert_eq!(desk.meter.totals()[0].cost, Some(NanoUsd(120)));
    }

    #[test]
    fn an_attempt_cut_off_by_a_deadline_is_recorded_as_such() {
        let desk = desk();
        let attempt = begin(&desk, "a/x", Purpose::Verification);
        desk.meter.abort_with("timeout");
        drop(attempt);
        assert_eq!(booked(&desk)[0].outcome, "timeout");
    }

    #[test]
    fn an_unpriced_attempt_without_usage_leaves_the_sum_known() {
        let desk = desk();
        let failed = |model| {
            begin_at(&desk, model, Purpose::Verification, None).finish("overloaded", tokens(0, 0));
        };
        failed("a/x");
        assert_eq!((desk.meter.totals()[0].cost, desk.meter.sum().cost), (None, Some(NanoUsd(0))));
        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 3));
        failed("a/x");
        failed("a/y");
        let costs: Vec<_> = desk.meter.totals().iter().map(|total| total.cost).collect();
        assert_eq!((costs, desk.meter.sum().cost), (vec![Some(NanoUsd(4)), None], Some(NanoUsd(4))));
    }

    #[test]
    fn one_unknown_price_makes_the_sum_unknown() {
        let desk = desk();
        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
        let mut attempt = begin_at(&desk, "a/x", Purpose::Verification, None);
        attempt.set_expected(tokens(7, 0));
        drop(attempt);
        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
        let totals = desk.meter.totals();
        assert_eq!((totals.len(), totals[0].prompt_tokens, totals[0].cost), (1, 9, None));
        assert_eq!(desk.meter.sum().cost, None);
    }

    #[test]
    fn concurrent_attempts_are_all_counted() {
        let desk = desk();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(2, 1));
                    }
                });
            }
        });
        assert_eq!(desk.meter.totals()[0].prompt_tokens, 1600);
        let rows = booked(&desk);
        assert_eq!(rows.len(), 800);
        assert_eq!(rows.iter().filter(|row| row.is_first).count(), 1);
        assert_eq!(rows.iter().filter(|row| row.is_first_of_model).count(), 1);
    }
}
