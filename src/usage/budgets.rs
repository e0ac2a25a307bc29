//! Budgets, as all requests of a server share them: what a call may cost at most is reserved before it begins, and
//! given back when the ledger knows what it has cost.
//!
//! Requests without a budget never come here. Those with one lock a map for some nanoseconds; what was spent is only
//! read from the store (a small indexed read) for a key or app that was not in use a moment ago. After every flush it
//! is read anew ([`Budgets::refresh`]), which includes what other servers on the same database have spent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Account;
use super::tallies::{Limit, Tallies};
use crate::clock::Time;
use crate::money::{BudgetOf, NanoUsd, Shortage};
use crate::storage::{Error, MonthOf, Store};
use crate::trouble::Trouble;

/// What a key and its app may spend in a UTC calendar month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The key alone; `None` for any amount.
    pub key: Option<NanoUsd>,
    /// All keys of the app together; `None` for any amount.
    pub app: Option<NanoUsd>,
}

impl Budget {
    /// Whether there is any.
    pub const fn is_set(&self) -> bool {
        self.key.is_some() || self.app.is_some()
    }
}

/// Why a call may not be made.
#[derive(Debug, PartialEq, Eq)]
pub enum Unpaid {
    /// A budget does not cover what it may cost.
    Exceeded(Box<Shortage>),
    /// There is a budget, and what the call costs cannot be told.
    PriceUnknown,
    /// The store cannot say what has been spent.
    Unavailable,
}

impl From<Box<Shortage>> for Unpaid {
    fn from(shortage: Box<Shortage>) -> Self {
        Self::Exceeded(shortage)
    }
}

/// The budgets of all keys and apps. Clones share them.
#[derive(Clone)]
pub(super) struct Budgets {
    store: Store,
    tallies: Arc<Mutex<Tallies>>,
    trouble: Arc<Trouble>,
    /// Told whenever a call gives back some of what it reserved.
    freed: Arc<Notify>,
}

/// What a call has reserved; given back when it is dropped.
pub(super) struct Hold {
    budgets: Budgets,
    subjects: Vec<String>,
    amount: NanoUsd,
    /// Whether that is what the call has cost, no longer what it may cost.
    is_settled: bool,
}

impl Budgets {
    /// Budgets on what `store` knows to be spent.
    pub(super) fn new(store: Store) -> Self {
        Self { store, tallies: Arc::default(), trouble: Arc::default(), freed: Arc::default() }
    }

    /// Reserves `most` (`None` if it cannot be told) for a call on this account, which has a budget.
    pub(super) fn reserve(
        &self,
        account: &Account,
        most: Option<NanoUsd>,
        now: Time,
    ) -> Result<Hold, Unpaid> {
        let amount = most.ok_or(Unpaid::PriceUnknown)?;
        let limits = limits(account);
        self.known(&limits, now)?.take(&limits, amount, now)?;
        let subjects = limits.iter().map(|limit| limit.subject.to_owned()).collect();
        Ok(Hold { budgets: self.clone(), subjects, amount, is_settled: false })
    }

    /// Whether `most` could be reserved now.
    pub(super) fn check(&self, account: &Account, most: Option<NanoUsd>, now: Time) -> Result<(), Unpaid> {
        let amount = most.ok_or(Unpaid::PriceUnknown)?;
        let limits = limits(account);
        Ok(self.known(&limits, now)?.check(&limits, amount, now)?)
    }

    /// Completes when a call has given back some of what it reserved, of whichever budget.
    pub(super) fn freed(&self) -> OwnedNotified {
        self.freed.clone().notified_owned()
    }

    /// The tallies, once what has been spent of `limits` is known. The ledger is asked without the lock.
    fn known(&self, limits: &[Limit<'_>], now: Time) -> Result<MutexGuard<'_, Tallies>, Unpaid> {
        let month = now.utc_month();
        loop {
            let mut tallies = self.lock();
            let (unknown, asked_at) = tallies.missing(limits, month);
            if unknown.is_empty() {
                return Ok(tallies);
            }
            drop(tallies);
            // Elsewhere it was loaded before, or could not be.
            if !self.store.is_local() {
                return Err(Unpaid::Unavailable);
            }
            let spent = self.store.spent(&unknown).map_err(|cause| self.untold(&cause))?;
            let answers: Vec<(MonthOf, NanoUsd)> = unknown.into_iter().zip(spent).collect();
            let mut tallies = self.lock();
            if tallies.take_over(&answers, asked_at) {
                return Ok(tallies);
            }
        }
    }

    /// Loads what has been spent of an account's budgets where the store is over the network: to be done before anything is
    /// reserved, as that waits for nobody. If it cannot be loaded, nothing can be reserved.
    pub(super) async fn load_spending(&self, account: &Account, now: Time) {
        if self.store.is_local() {
            return;
        }
        let month = now.utc_month();
        loop {
            let (unknown, asked_at) = self.lock().missing(&limits(account), month);
            if unknown.is_empty() {
                return;
            }
            let asked = unknown.clone();
            let spent = match self.store.ask(move |store| store.spent(&asked)).await {
                Ok(spent) => spent,
                Err(cause) => {
                    self.untold(&cause);
                    return;
                }
            };
            let answers: Vec<(MonthOf, NanoUsd)> = unknown.into_iter().zip(spent).collect();
            if self.lock().take_over(&answers, asked_at) {
                return;
            }
        }
    }

    fn untold(&self, cause: &Error) -> Unpaid {
        if let Some(untold) = self.trouble.happened(cause) {
            tracing::error!(%cause, untold, "cannot tell what has been spent of a budget");
        }
        Unpaid::Unavailable
    }

    /// Asks the ledger what has been spent, and gives back what `written` held: the ledger knows their costs.
    pub(super) fn refresh(&self, written: impl IntoIterator<Item = Hold>) -> Result<(), Error> {
        let watched = self.lock().watched();
        if watched.is_empty() {
            return Ok(());
        }
        let spent = self.store.spent(&watched);
        let mut tallies = self.lock();
        let outcome = match spent {
            Ok(spent) => {
                tallies.refresh(watched.into_iter().zip(spent));
                Ok(())
            }
            Err(cause) => {
                tallies.invalidate();
                Err(cause)
            }
        };
        for mut hold in written {
            hold.give_back(&mut tallies);
        }
        tallies.drop_idle();
        outcome
    }

    /// The ledger cannot be written, and perhaps not read: what it has said is no longer relied upon.
    pub(super) fn invalidate(&self) {
        self.lock().invalidate();
    }

    /// Also after a panic elsewhere: tallies are whole after every step.
    fn lock(&self) -> MutexGuard<'_, Tallies> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    /// The call is over and has cost this. To be said once.
    pub(super) fn settle(&mut self, actual: NanoUsd) {
        let mut tallies = self.budgets.lock();
        for subject in &self.subjects {
            tallies.settle(subject, self.amount, actual);
        }
        drop(tallies);
        (self.amount, self.is_settled) = (actual, true);
        self.budgets.freed.notify_waiters();
    }

    /// The call was of this moment, and the ledger will never know of it: what it has cost stays spent.
    pub(super) fn lose(mut self, at: Time) {
        let budgets = self.budgets.clone();
        let mut tallies = budgets.lock();
        for subject in self.subjects.drain(..) {
            tallies.lose(&subject, self.amount, self.is_settled, at.utc_month());
        }
    }

    fn give_back(&mut self, tallies: &mut Tallies) {
        for subject in self.subjects.drain(..) {
            tallies.give_back(&subject, self.amount, self.is_settled);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.subjects.is_empty() {
            let budgets = self.budgets.clone();
            self.give_back(&mut budgets.lock());
            budgets.freed.notify_waiters();
        }
    }
}

fn limits(account: &Account) -> Vec<Limit<'_>> {
    let Account { key_id, app_id, budget, .. } = account;
    let of_key = budget.key.map(|budget| Limit { of: BudgetOf::Key, subject: key_id, budget });
    let of_app = budget.app.map(|budget| Limit { of: BudgetOf::App, subject: app_id, budget });
    of_key.into_iter().chain(of_app).collect()
}

#[cfg(test)]
mod tests;
