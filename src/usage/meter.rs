//! What one request takes: summed for its answer, and booked attempt by attempt.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::futures::OwnedNotified;

use super::budgets::Hold;
use super::{Account, Books, Purpose, Unpaid};
use crate::clock::Time;
use crate::metrics;
use crate::money::{NanoUsd, Price, Tokens};
use crate::storage::AttemptRow;

/// The outcome of an attempt that was dropped without a word: the caller left.
const CANCELLED: &str = "cancelled";

/// Sums what one request takes. Clones count together, so that the concurrent parts of a request, and an answer
/// that outlives its handler, share one.
#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    account: Account,
    books: Arc<Books>,
    totals: Mutex<Vec<Total>>,
    attempts: AtomicU32,
    /// Why attempts are dropped from now on, if it is not that the caller left.
    dropped_for: OnceLock<&'static str>,
}

impl Meter {
    /// A meter whose attempts go to these books.
    pub fn new(account: Account, books: Arc<Books>) -> Self {
        let (totals, attempts) = (Mutex::new(Vec::new()), AtomicU32::new(0));
        Self(Arc::new(Shared { account, books, totals, attempts, dropped_for: OnceLock::new() }))
    }

    /// Loads what was spent of its budgets, so that nothing waits for it later. To be done right before an attempt, or
    /// [`Meter::check`].
    pub async fn load_spending(&self) {
        if self.has_budget() {
            // In a box, as calls without a budget need no room for it.
            Box::pin(self.0.books.ledger.load_spending(&self.0.account, self.now())).await;
        }
    }

    /// Begins an attempt at `model` (its full identifier), `now`, at this price, if it is known. Where there is a
    /// budget, `most` says what it may cost at most (`None` if that cannot be told), and that much is reserved until the
    /// attempt is on the books.
    ///
    /// # Errors
    /// If a budget does not allow it. Nothing is booked then, and nothing may be called.
    pub fn attempt(
        &self,
        model: impl Into<Arc<str>>,
        purpose: Purpose,
        price: Option<Price>,
        now: Instant,
        most: impl FnOnce() -> Option<NanoUsd>,
    ) -> Result<Attempt, Unpaid> {
        let Shared { account, books, .. } = &*self.0;
        let hold = if account.budget.is_set() {
            Some(books.ledger.reserve(account, most(), self.now())?)
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
            hold,
            is_booked: false,
        })
    }

    /// Whether there is a budget to keep to.
    pub fn has_budget(&self) -> bool {
        self.0.account.budget.is_set()
    }

    /// Whether an attempt that may cost this much could begin now; for requests that answer before they begin one.
    ///
    /// # Errors
    /// If a budget would not allow it.
    pub fn check(&self, most: Option<NanoUsd>) -> Result<(), Unpaid> {
        if !self.has_budget() {
            return Ok(());
        }
        self.0.books.ledger.check(&self.0.account, most, self.now())
    }

    /// Completes when a call has given back some of what it had reserved of a budget: what did not fit may fit then. To be
    /// asked for before the attempt that may not fit, so that nothing is missed. `None` where there is no budget.
    pub fn freed(&self) -> Option<Pin<Box<OwnedNotified>>> {
        let mut freed = self.has_budget().then(|| Box::pin(self.0.books.ledger.freed()))?;
        freed.as_mut().enable();
        Some(freed)
    }

    /// The time that attempts are booked at.
    pub fn now(&self) -> Time {
        self.0.books.clock.now()
    }

    /// What has been booked so far, by model (in order of first use) and purpose.
    pub fn totals(&self) -> Vec<Total> {
        self.lock_totals().clone()
    }

    /// What has been booked so far, over all models.
    pub fn sum(&self) -> Sum {
        let zero =
            Sum { attempts: 0, prompt_tokens: 0, completion_tokens: 0, cost: Some(NanoUsd::default()) };
        let totals = self.lock_totals();
        let sum = totals.iter().filter(|total| !total.is_nothing()).fold(zero, |sum, total| Sum {
            prompt_tokens: sum.prompt_tokens.saturating_add(total.prompt_tokens),
            completion_tokens: sum.completion_tokens.saturating_add(total.completion_tokens),
            cost: sum.cost.zip(total.cost).map(|(sum, more)| sum.plus(more)),
            ..sum
        });
        Sum { attempts: self.0.attempts.load(Ordering::Relaxed), ..sum }
    }

    /// Counts that an attempt at `model` repeats one that failed.
    pub fn retried(&self, model: &str) {
        self.0.books.metrics().attempts.count_retry(model);
    }

    /// Counts and logs that `fallback` is asked in the place of `model`.
    pub fn fell_back(&self, model: &str, fallback: &str) {
        self.0.books.metrics().attempts.count_fallback(model);
        tracing::warn!(model, fallback, "another model is asked in the place of one that failed");
    }

    /// Ends the attempts that are still under way: those that are dropped from now on have come to this outcome.
    pub fn cut_off(&self, outcome: &'static str) {
        // The first reason holds.
        let _ = self.0.dropped_for.set(outcome);
    }

    fn book(&self, attempt: &Attempt, hold: Option<Hold>, outcome: &'static str, used: Used) {
        let Used { tokens, cost } = used;
        let took = attempt.begun.elapsed();
        let order = self.add(&attempt.model, attempt.purpose, used);
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
        self.0.books.metrics().attempts.count(&counted);
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
            at: self.0.books.clock.now(),
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
            is_first: order.is_first,
            is_first_of_model: order.is_first_of_model,
        };
        self.0.books.ledger.book(row, hold);
    }

    fn add(&self, model: &Arc<str>, purpose: Purpose, used: Used) -> Order {
        let mut totals = self.lock_totals();
        let order = Order {
            is_first: totals.is_empty(),
            is_first_of_model: totals.iter().all(|total| total.model != *model),
        };
        let known = totals.iter_mut().find(|total| total.model == *model && total.purpose == purpose);
        if let Some(total) = known {
            total.add(used);
            return order;
        }
        let mut total =
            Total { model: model.clone(), purpose, prompt_tokens: 0, completion_tokens: 0, cost: None };
        total.add(used);
        totals.push(total);
        order
    }

    /// Also after a panic elsewhere: sums are whole after every step.
    fn lock_totals(&self) -> MutexGuard<'_, Vec<Total>> {
        self.0.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an attempt stands among those of its request, in the order in which they are booked.
#[derive(Clone, Copy)]
struct Order {
    is_first: bool,
    is_first_of_model: bool,
}

/// What an attempt used.
#[derive(Clone, Copy)]
struct Used {
    tokens: Tokens,
    /// `None` where its price is not known.
    cost: Option<NanoUsd>,
}

/// An attempt under way; booked as `cancelled` if dropped, or as what [`Meter::cut_off`] told.
#[must_use = "an attempt that is dropped is booked as cancelled"]
pub struct Attempt {
    meter: Meter,
    model: Arc<str>,
    purpose: Purpose,
    /// What its tokens cost. Without it the whole total of this model and purpose has no cost.
    price: Option<Price>,
    begun: Instant,
    first_token: Option<Duration>,
    /// What it is booked with if it is dropped.
    expected: Tokens,
    /// What is reserved for it, where there is a budget.
    hold: Option<Hold>,
    is_booked: bool,
}

impl Attempt {
    /// Sets what the attempt is booked with if it is cancelled: the tokens of the prompt and of what has come of
    /// the answer so far.
    pub const fn expect(&mut self, tokens: Tokens) {
        self.expected = tokens;
    }

    /// Notes that the first event of its stream is there.
    pub fn streams(&mut self) {
        self.first_token = Some(self.begun.elapsed());
    }

    /// Books the attempt. `outcome` is `ok` or a failure's code.
    pub fn finish(mut self, outcome: &'static str, tokens: Tokens) {
        self.is_booked = true;
        self.book(outcome, tokens);
    }

    fn book(&mut self, outcome: &'static str, tokens: Tokens) {
        let cost = self.price.map(|price| price.of(tokens));
        let mut hold = self.hold.take();
        if let (Some(hold), Some(cost)) = (&mut hold, cost) {
            hold.settle(cost);
        }
        self.meter.book(self, hold, outcome, Used { tokens, cost });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_booked {
            let outcome = self.meter.0.dropped_for.get().copied().unwrap_or(CANCELLED);
            self.book(outcome, self.expected);
        }
    }
}

/// What a whole request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// How many attempts were made.
    pub attempts: u32,
    /// Of prompts.
    pub prompt_tokens: u64,
    /// Of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price.
    pub cost: Option<NanoUsd>,
}

/// What one model took for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// By its configured identifier.
    pub model: Arc<str>,
    /// What for.
    pub purpose: Purpose,
    /// Of prompts.
    pub prompt_tokens: u64,
    /// Of completions.
    pub completion_tokens: u64,
    /// `None` as soon as one attempt that used tokens has no known price, and while none has one.
    pub cost: Option<NanoUsd>,
}

impl Total {
    /// Whether nothing was used, at a price that nobody knows.
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
        let meter = Meter::new(account, Books::new(ledger.clone(), Clock::manual(NOW)));
        Desk { store, ledger, meter }
    }

    /// At a nano-dollar a token.
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
    fn a_finished_attempt_is_booked_once_and_summed() {
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

        let total = |model: &str, purpose, prompt_tokens, completion_tokens, cost| Total {
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
        let sum = Sum { attempts: 4, prompt_tokens: 12, completion_tokens: 8, cost: Some(NanoUsd(20)) };
        assert_eq!(desk.meter.sum(), sum);
    }

    #[test]
    fn a_dropped_attempt_is_booked_as_cancelled() {
        let desk = desk();
        let mut attempt = begin(&desk, "a/x", Purpose::Verification);
        attempt.expect(tokens(120, 0));
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
    fn an_attempt_that_a_deadline_ends_is_booked_as_that() {
        let desk = desk();
        let attempt = begin(&desk, "a/x", Purpose::Verification);
        desk.meter.cut_off("timeout");
        drop(attempt);
        assert_eq!(booked(&desk)[0].outcome, "timeout");
    }

    #[test]
    fn what_used_nothing_at_an_unknown_price_has_no_cost_and_costs_the_others_nothing() {
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
        attempt.expect(tokens(7, 0));
        drop(attempt);
        begin(&desk, "a/x", Purpose::Verification).finish("ok", tokens(1, 1));
        let totals = desk.meter.totals();
        assert_eq!((totals.len(), totals[0].prompt_tokens, totals[0].cost), (1, 9, None));
        assert_eq!(desk.meter.sum().cost, None);
    }

    #[test]
    fn parts_that_run_side_by_side_are_all_counted() {
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
