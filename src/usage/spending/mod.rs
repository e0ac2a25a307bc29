//! What keys, apps and end users with a budget have spent and may still spend this month or day. Pure: no store, no
//! clock, no lock.
//!
//! An entry adds up three parts: what is spent according to the ledger, the cost of finished calls that are not in
//! the ledger yet, and the most that calls under way may cost. What must hold: nothing is reserved that does not fit
//! beside all three; a call reserves of all its budgets or of none; a reservation is released once, when the ledger
//! knows its outcome. An entry without reservations that nobody asks for is dropped, unless it knows of costs that the
//! ledger will never know: those count until their month or day or the process ends.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::clock::Time;
use crate::money::{BudgetScope, BudgetShortage, NanoUsd, Period};
use crate::storage::SubjectMonth;

/// A budget that a call has to fit into.
#[derive(Clone, Debug)]
pub(super) struct Limit<'a> {
    /// Whose it is.
    pub(super) scope: BudgetScope,
    /// What its spending is kept under.
    pub(super) subject: Cow<'a, str>,
    /// The amount per period.
    pub(super) budget: NanoUsd,
    /// How long it lasts.
    pub(super) period: Period,
}

/// The entries of all budgets that are in use, by what their spending is kept under.
#[derive(Debug, Default)]
pub(super) struct Spending {
    by_subject: HashMap<String, SpendingEntry>,
    /// How often all entries were refreshed from the ledger.
    refreshes: u64,
    /// The latest time at which anybody has asked.
    latest: Option<Time>,
}

#[derive(Debug, Default)]
struct SpendingEntry {
    /// How long its budget lasts.
    period: Period,
    /// The month or day, as [`Period::number`] counts.
    month: i64,
    /// What is spent in that time according to the ledger; `None` if it has to be read.
    spent: Option<NanoUsd>,
    /// The cost of finished calls that are not in the ledger yet.
    settled: NanoUsd,
    /// The cost of calls of that time that will never be in the ledger.
    lost: NanoUsd,
    /// The most that calls under way may cost.
    reserved: NanoUsd,
    /// The number of reservations: of calls under way, or not in the ledger yet.
    open: usize,
    /// Whether anybody has asked since the last refresh.
    is_used: bool,
}

impl Spending {
    /// The entries of `limits` whose spending must be read from the ledger, and the refresh count for
    /// [`Spending::insert`]. The caller is about to reserve, so the others are kept until then.
    pub(super) fn missing(&mut self, limits: &[Limit<'_>], now: Time) -> (Vec<SubjectMonth>, u64) {
        self.latest = self.latest.max(Some(now));
        let mut months = Vec::new();
        for limit in limits {
            let month = limit.period.number(now);
            match self.by_subject.get_mut(&*limit.subject) {
                Some(entry) if entry.month == month && entry.spent.is_some() => entry.is_used = true,
                _ => months.push(SubjectMonth { subject: limit.subject.to_string(), month }),
            }
        }
        (months, self.refreshes)
    }

    /// Inserts what the ledger says to a request of [`Spending::missing`]. Returns false, and inserts nothing, if all
    /// accounts were refreshes in between: the result may be older than entries dropped since.
    pub(super) fn insert(&mut self, answers: &[(SubjectMonth, NanoUsd)], as_of: u64) -> bool {
        if self.refreshes != as_of {
            return false;
        }
        for (of, spent) in answers {
            let entry = self.by_subject.entry(of.subject.clone()).or_default();
            if entry.month != of.month {
                // Calls under way will be recorded in the new month.
                (entry.month, entry.spent, entry.lost) = (of.month, None, NanoUsd::default());
            }
            entry.spent = entry.spent.max(Some(*spent));
            entry.is_used = true;
        }
        true
    }

    /// Reserves `most` of every one of `limits`, or of none. All must be known.
    pub(super) fn reserve(
        &mut self,
        limits: &[Limit<'_>],
        max_cost: NanoUsd,
        now: Time,
    ) -> Result<(), Box<BudgetShortage>> {
        self.check(limits, max_cost, now)?;
        for limit in limits {
            if let Some(entry) = self.by_subject.get_mut(&*limit.subject) {
                entry.period = limit.period;
                entry.reserved = entry.reserved.plus(max_cost);
                entry.open += 1;
                entry.is_used = true;
            }
        }
        Ok(())
    }

    /// Whether `most` could be reserved; otherwise the budget in the way: preferably one that cannot free up, and of
    /// these the one with the least left.
    pub(super) fn check(
        &self,
        limits: &[Limit<'_>],
        max_cost: NanoUsd,
        now: Time,
    ) -> Result<(), Box<BudgetShortage>> {
        let shortage = |limit: &Limit<'_>| {
            let entry = self.by_subject.get(&*limit.subject)?;
            let shortage = BudgetShortage {
                scope: limit.scope,
                period: limit.period,
                budget: limit.budget,
                spent: entry.spent.unwrap_or_default().plus(entry.settled).plus(entry.lost),
                reserved: entry.reserved,
                max_cost,
                renews_at: limit.period.end(now),
            };
            (max_cost > shortage.left()).then_some(shortage)
        };
        match limits
            .iter()
            .filter_map(shortage)
            .min_by_key(|shortage| (shortage.is_temporary(), shortage.left()))
        {
            Some(shortage) => Err(Box::new(shortage)),
            None => Ok(()),
        }
    }

    /// Replaces the reservation of a call with its actual cost.
    pub(super) fn settle(&mut self, subject: &str, max_cost: NanoUsd, actual: NanoUsd) {
        if let Some(entry) = self.by_subject.get_mut(subject) {
            entry.reserved = entry.reserved.minus(max_cost);
            entry.settled = entry.settled.plus(actual);
        }
    }

    /// Releases what a call held: its cost, if it is settled, or its reservation.
    pub(super) fn release(&mut self, subject: &str, held: NanoUsd, is_settled: bool) {
        if let Some(entry) = self.by_subject.get_mut(subject) {
            let from = if is_settled { &mut entry.settled } else { &mut entry.reserved };
            *from = from.minus(held);
            entry.open = entry.open.saturating_sub(1);
        }
    }

    /// Like [`Spending::release`], for a call of this time that will never be in the ledger: its cost counts as spent.
    pub(super) fn lose(&mut self, subject: &str, held: NanoUsd, is_settled: bool, at: Time) {
        self.release(subject, held, is_settled);
        if let Some(entry) = self.by_subject.get_mut(subject)
            && is_settled
            && entry.month == entry.period.number(at)
        {
            entry.lost = entry.lost.plus(held);
        }
    }

    /// All entries, to be refreshed from the ledger.
    pub(super) fn subjects(&self) -> Vec<SubjectMonth> {
        let of = |(subject, entry): (&String, &SpendingEntry)| SubjectMonth {
            subject: subject.clone(),
            month: entry.month,
        };
        self.by_subject.iter().map(of).collect()
    }

    /// Updates entries with what the ledger knows now. Spending only grows within a month or day, so an outdated result
    /// changes nothing. To be followed by [`Spending::drop_idle`].
    pub(super) fn refresh(&mut self, answers: impl IntoIterator<Item = (SubjectMonth, NanoUsd)>) {
        self.refreshes += 1;
        for (of, spent) in answers {
            if let Some(entry) = self.by_subject.get_mut(&of.subject)
                && entry.month == of.month
            {
                entry.spent = entry.spent.max(Some(spent));
            }
        }
    }

    /// Drops the entries that nobody has asked for since the last time, that have no reservations, and that know
    /// nothing of this month or day beyond the ledger.
    pub(super) fn drop_idle(&mut self) {
        let latest = self.latest;
        self.by_subject.retain(|_, entry| {
            let has_lost = entry.lost > NanoUsd::default()
                && latest.is_none_or(|latest| entry.month >= entry.period.number(latest));
            std::mem::take(&mut entry.is_used) || entry.open > 0 || has_lost
        });
    }

    /// The ledger could not be read: it must be read before anything more is reserved.
    pub(super) fn invalidate(&mut self) {
        self.refreshes += 1;
        self.by_subject.values_mut().for_each(|entry| entry.spent = None);
    }
}

#[cfg(test)]
mod tests;
