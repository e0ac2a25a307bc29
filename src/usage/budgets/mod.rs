//! Budgets, shared by all requests of a server: the most that a call may cost is reserved before it begins, and
//! released when the ledger knows its actual cost.
//!
//! Requests without a budget never come here. Those with one lock a map for some nanoseconds; spending is only read
//! from the store (a small indexed read) for a key or an app that was not in use a moment ago. It is read anew after
//! every flush ([`Budgets::refresh`]), which includes what other servers on the same database have spent.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Account;
use super::spending::{Limit, Spending};
use crate::clock::Time;
use crate::lock::Lock;
use crate::log_throttle::LogThrottle;
use crate::money::{BudgetScope, BudgetShortage, NanoUsd, Period};
use crate::storage::{Error, ReadPurpose, Store, SubjectMonth};

/// How often in a row spending is read anew because a flush made the result outdated while it was read. That hardly
/// ever happens to a read that takes less than the time between two flushes.
const MAX_LOADS: usize = 8;

/// What a key, its app and the end user of a request may spend, if not said otherwise in a UTC calendar month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The limit of the key alone; `None` for none.
    pub key: Option<NanoUsd>,
    /// The limit of all keys of the app together; `None` for none.
    pub app: Option<NanoUsd>,
    /// The limit of the app's end user; `None` for none.
    pub end_user: Option<NanoUsd>,
    /// The limit of the app's end user on a UTC day; `None` for none.
    pub end_user_per_day: Option<NanoUsd>,
}

impl Budget {
    /// Whether there is a limit.
    pub const fn is_set(&self) -> bool {
        self.key.is_some() || self.app.is_some() || self.end_user.is_some() || self.end_user_per_day.is_some()
    }
}

/// Why a call must not be made.
#[derive(Debug, PartialEq, Eq)]
pub enum BudgetError {
    /// A budget does not cover what it may cost.
    Exceeded(Box<BudgetShortage>),
    /// There is a budget, and the cost of the call is unknown.
    PriceUnknown,
    /// What has been spent cannot be read from the store.
    Unavailable,
}

impl From<Box<BudgetShortage>> for BudgetError {
    fn from(shortage: Box<BudgetShortage>) -> Self {
        Self::Exceeded(shortage)
    }
}

/// Reads what is unknown; see [`Budgets::load`].
type Load = Box<dyn FnOnce(&Store) -> Result<bool, Error> + Send>;

/// The budgets of all keys and apps. Clones share them.
#[derive(Clone)]
pub(super) struct Budgets {
    store: Store,
    spending: Arc<Mutex<Spending>>,
    log_throttle: Arc<LogThrottle>,
    /// Notified whenever a call releases some of its reservation.
    freed: Arc<Notify>,
}

/// What a call has reserved; released on drop.
pub(super) struct Reservation {
    budgets: Budgets,
    subjects: Vec<String>,
    amount: NanoUsd,
    /// Whether the amount is what the call has cost, no longer what it may cost.
    is_settled: bool,
}

impl Budgets {
    /// Budgets based on the spending in `store`.
    pub(super) fn new(store: Store) -> Self {
        Self { store, spending: Arc::default(), log_throttle: Arc::default(), freed: Arc::default() }
    }

    /// Reserves `max_cost` (`None` if unknown) for a call of this account, which has a budget.
    pub(super) fn reserve(
        &self,
        account: &Account,
        max_cost: Option<NanoUsd>,
        now: Time,
    ) -> Result<Reservation, BudgetError> {
        let amount = max_cost.ok_or(BudgetError::PriceUnknown)?;
        let limits = limits(account);
        self.known(&limits, now)?.reserve(&limits, amount, now)?;
        let subjects = limits.into_iter().map(|limit| limit.subject.into_owned()).collect();
        Ok(Reservation { budgets: self.clone(), subjects, amount, is_settled: false })
    }

    /// Whether `max_cost` could be reserved now.
    pub(super) fn check(
        &self,
        account: &Account,
        max_cost: Option<NanoUsd>,
        now: Time,
    ) -> Result<(), BudgetError> {
        let amount = max_cost.ok_or(BudgetError::PriceUnknown)?;
        let limits = limits(account);
        Ok(self.known(&limits, now)?.check(&limits, amount, now)?)
    }

    /// Completes when a call has released some of its reservation, of whichever budget.
    pub(super) fn freed(&self) -> OwnedNotified {
        self.freed.clone().notified_owned()
    }

    /// The entries, once the spending of `limits` is known. The store is read without the lock.
    fn known(&self, limits: &[Limit<'_>], now: Time) -> Result<MutexGuard<'_, Spending>, BudgetError> {
        loop {
            let mut spending = self.spending.locked();
            if spending.missing(limits, now).0.is_empty() {
                return Ok(spending);
            }
            drop(spending);
            // For a remote store it was loaded before, or could not be.
            if !self.store.is_local() {
                return Err(BudgetError::Unavailable);
            }
            self.load(limits, now).map_err(|cause| self.unavailable(&cause))?;
        }
    }

    /// Loads the spending of an account's budgets if the store is remote: to be called before anything is reserved, as
    /// reserving never waits.
    ///
    /// # Errors
    /// If it cannot be loaded; then nothing can be reserved.
    pub(super) async fn load_spending(&self, account: &Account, now: Time) -> Result<(), BudgetError> {
        if self.store.is_local() || self.spending.locked().missing(&limits(account), now).0.is_empty() {
            return Ok(());
        }
        self.load_in_turn(account, now, |load| self.store.read_async(ReadPurpose::Spending, load)).await
    }

    /// Loads the spending of an account's budgets, with reads that `in_turn` runs when it is their turn.
    async fn load_in_turn<F: Future<Output = Result<bool, Error>>>(
        &self,
        account: &Account,
        now: Time,
        in_turn: impl Fn(Load) -> F,
    ) -> Result<(), BudgetError> {
        for _ in 0..MAX_LOADS {
            let (budgets, account) = (self.clone(), account.clone());
            let load: Load = Box::new(move |_| budgets.load(&limits(&account), now));
            match in_turn(load).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(cause) => return Err(self.unavailable(&cause)),
            }
        }
        Err(self.unavailable(&"reading it takes longer than the time between two flushes"))
    }

    /// Reads the spending of those `limits` for which it is not known. Blocking. Returns false if all entries were
    /// refreshed meanwhile, and the result may be outdated.
    ///
    /// What is unknown is looked up only when it is this read's turn: waiting for that may take longer than the time
    /// between two refreshes, and others may have read the same.
    fn load(&self, limits: &[Limit<'_>], now: Time) -> Result<bool, Error> {
        let (unknown, as_of) = self.spending.locked().missing(limits, now);
        if unknown.is_empty() {
            return Ok(true);
        }
        let spent = self.store.spent(&unknown)?;
        let answers: Vec<(SubjectMonth, NanoUsd)> = unknown.into_iter().zip(spent).collect();
        Ok(self.spending.locked().insert(&answers, as_of))
    }

    fn unavailable(&self, cause: &impl Display) -> BudgetError {
        if let Some(suppressed) = self.log_throttle.failed(cause) {
            tracing::error!(%cause, suppressed, "cannot read what has been spent of a budget");
        }
        BudgetError::Unavailable
    }

    /// Reads all spending anew, and releases the reservations of `written` rows, whose costs are in the ledger now.
    pub(super) fn refresh(&self, written: impl IntoIterator<Item = Reservation>) -> Result<(), Error> {
        let subjects = self.spending.locked().subjects();
        if subjects.is_empty() {
            return Ok(());
        }
        let spent = self.store.spent(&subjects);
        let mut spending = self.spending.locked();
        let outcome = match spent {
            Ok(spent) => {
                spending.refresh(subjects.into_iter().zip(spent));
                Ok(())
            }
            Err(cause) => {
                spending.invalidate();
                Err(cause)
            }
        };
        for mut reservation in written {
            reservation.release(&mut spending);
        }
        spending.drop_idle();
        outcome
    }

    /// The ledger cannot be written, and perhaps not read: what it has said is no longer relied upon.
    pub(super) fn invalidate(&self) {
        self.spending.locked().invalidate();
    }
}

impl Reservation {
    /// The amount.
    pub(super) const fn amount(&self) -> NanoUsd {
        self.amount
    }

    /// The call has ended and has cost this. To be called once.
    pub(super) fn settle(&mut self, actual: NanoUsd) {
        let mut spending = self.budgets.spending.locked();
        for subject in &self.subjects {
            spending.settle(subject, self.amount, actual);
        }
        drop(spending);
        (self.amount, self.is_settled) = (actual, true);
        self.budgets.freed.notify_waiters();
    }

    /// The call ended at this time and will never be in the ledger: what it has cost stays spent.
    pub(super) fn lose(mut self, at: Time) {
        let budgets = self.budgets.clone();
        let mut spending = budgets.spending.locked();
        for subject in self.subjects.drain(..) {
            spending.lose(&subject, self.amount, self.is_settled, at);
        }
    }

    fn release(&mut self, spending: &mut Spending) {
        for subject in self.subjects.drain(..) {
            spending.release(&subject, self.amount, self.is_settled);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.subjects.is_empty() {
            let budgets = self.budgets.clone();
            self.release(&mut budgets.spending.locked());
            budgets.freed.notify_waiters();
        }
    }
}

fn limits(account: &Account) -> Vec<Limit<'_>> {
    let Account { key_id, app_id, budget, .. } = account;
    let monthly = |scope, subject, budget| Limit { scope, subject, budget, period: Period::Month };
    let of_key = budget.key.map(|budget| monthly(BudgetScope::Key, Cow::Borrowed(&**key_id), budget));
    let of_app = budget.app.map(|budget| monthly(BudgetScope::App, Cow::Borrowed(&**app_id), budget));
    let of_user = account.end_user().into_iter().flat_map(|user| {
        let in_month =
            budget.end_user.map(|budget| monthly(BudgetScope::EndUser, user.month_subject().into(), budget));
        let on_day = budget.end_user_per_day.map(|budget| {
            let subject = user.day_subject().into();
            Limit { scope: BudgetScope::EndUser, subject, budget, period: Period::Day }
        });
        in_month.into_iter().chain(on_day)
    });
    of_key.into_iter().chain(of_app).chain(of_user).collect()
}

#[cfg(test)]
mod tests;
