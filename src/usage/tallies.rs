//! What keys and apps with a budget have spent and may still take this month. Pure: no store, no clock, no lock.
//!
//! A tally is what the ledger knows to be spent, what calls have cost that are over but not in the ledger yet, and the
//! most that those under way may cost. What must hold: nothing is taken that does not fit beside all three; a call
//! takes of the key's and of the app's budget or of neither; what was taken is given back once, when the ledger knows
//! what became of it. A tally that nobody holds of or asks for is dropped, unless it knows of costs that the ledger never
//! will: those count until their month ends, or the process does.

use std::collections::HashMap;

use crate::clock::Time;
use crate::money::{BudgetOf, NanoUsd, Shortage};
use crate::storage::MonthOf;

/// A budget that a call has to fit into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit<'a> {
    /// Whose it is.
    pub(super) of: BudgetOf,
    /// The id of that key or app.
    pub(super) subject: &'a str,
    /// For the month.
    pub(super) budget: NanoUsd,
}

/// The tallies of all keys and apps with a budget that are in use, by id.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    by_subject: HashMap<String, Tally>,
    /// Counts the times that the ledger was read for all.
    refreshed: u64,
    /// The last month that anybody has asked for.
    latest: i64,
}

#[derive(Debug, Default)]
struct Tally {
    /// As [`Time::utc_month`] counts.
    month: i64,
    /// What the ledger knows to be spent in that month; `None` if it has to be asked.
    spent: Option<NanoUsd>,
    /// What calls have cost that the ledger does not know yet.
    settled: NanoUsd,
    /// What calls of that month have cost that the ledger will never know.
    lost: NanoUsd,
    /// What calls under way may cost.
    reserved: NanoUsd,
    /// How many calls hold something of it, under way or not in the ledger yet.
    open: usize,
    /// Whether anybody has asked since the ledger was last read for all.
    is_used: bool,
}

impl Tallies {
    /// Those of `limits` whose spending the ledger has to be asked for, and a number for [`Tallies::take_over`]. Whoever
    /// asks is about to take: the others stay known until then.
    pub(super) fn missing(&mut self, limits: &[Limit<'_>], month: i64) -> (Vec<MonthOf>, u64) {
        let mut months = Vec::new();
        for limit in limits {
            match self.by_subject.get_mut(limit.subject) {
                Some(tally) if tally.month == month && tally.spent.is_some() => tally.is_used = true,
                _ => months.push(MonthOf { subject: limit.subject.to_owned(), month }),
            }
        }
        (months, self.refreshed)
    }

    /// Notes what the ledger says to a question of [`Tallies::missing`]. Returns false, and notes nothing, if the
    /// ledger was read for all in between: the answer may be older than what was dropped since.
    pub(super) fn take_over(&mut self, answers: &[(MonthOf, NanoUsd)], asked_at: u64) -> bool {
        if self.refreshed != asked_at {
            return false;
        }
        for (of, spent) in answers {
            let tally = self.by_subject.entry(of.subject.clone()).or_default();
            if tally.month != of.month {
                // What calls hold will be booked in the new month.
                (tally.month, tally.spent, tally.lost) = (of.month, None, NanoUsd::default());
            }
            tally.spent = tally.spent.max(Some(*spent));
            tally.is_used = true;
            self.latest = self.latest.max(of.month);
        }
        true
    }

    /// Takes `most` of every one of `limits`, or of none. All must be known.
    pub(super) fn take(
        &mut self,
        limits: &[Limit<'_>],
        most: NanoUsd,
        now: Time,
    ) -> Result<(), Box<Shortage>> {
        self.check(limits, most, now)?;
        for limit in limits {
            if let Some(tally) = self.by_subject.get_mut(limit.subject) {
                tally.reserved = tally.reserved.plus(most);
                tally.open += 1;
                tally.is_used = true;
            }
        }
        Ok(())
    }

    /// Whether `most` could be taken; else which budget is in the way: one that stays so, of these the one with the least
    /// left.
    pub(super) fn check(&self, limits: &[Limit<'_>], most: NanoUsd, now: Time) -> Result<(), Box<Shortage>> {
        let shortage = |limit: &Limit<'_>| {
            let tally = self.by_subject.get(limit.subject)?;
            let shortage = Shortage {
                of: limit.of,
                budget: limit.budget,
                spent: tally.spent.unwrap_or_default().plus(tally.settled).plus(tally.lost),
                reserved: tally.reserved,
                most,
                anew: now.next_utc_month(),
            };
            (most > shortage.left()).then_some(shortage)
        };
        match limits.iter().filter_map(shortage).min_by_key(|shortage| (shortage.may_pass(), shortage.left()))
        {
            Some(shortage) => Err(Box::new(shortage)),
            None => Ok(()),
        }
    }

    /// Puts what a call has cost in the place of what it might have cost.
    pub(super) fn settle(&mut self, subject: &str, most: NanoUsd, actual: NanoUsd) {
        if let Some(tally) = self.by_subject.get_mut(subject) {
            tally.reserved = tally.reserved.minus(most);
            tally.settled = tally.settled.plus(actual);
        }
    }

    /// Gives back what a call held: its cost, if it is settled, or what was reserved for it.
    pub(super) fn give_back(&mut self, subject: &str, held: NanoUsd, is_settled: bool) {
        if let Some(tally) = self.by_subject.get_mut(subject) {
            let from = if is_settled { &mut tally.settled } else { &mut tally.reserved };
            *from = from.minus(held);
            tally.open = tally.open.saturating_sub(1);
        }
    }

    /// As [`Tallies::give_back`] for a call of this month that the ledger will never know: its cost counts as spent.
    pub(super) fn lose(&mut self, subject: &str, held: NanoUsd, is_settled: bool, month: i64) {
        self.give_back(subject, held, is_settled);
        if let Some(tally) = self.by_subject.get_mut(subject)
            && is_settled
            && tally.month == month
        {
            tally.lost = tally.lost.plus(held);
        }
    }

    /// Everything that the ledger is to be asked for anew.
    pub(super) fn watched(&self) -> Vec<MonthOf> {
        let of =
            |(subject, tally): (&String, &Tally)| MonthOf { subject: subject.clone(), month: tally.month };
        self.by_subject.iter().map(of).collect()
    }

    /// Notes what the ledger now knows. Spending only grows within a month: an answer that was overtaken changes
    /// nothing. To be followed by [`Tallies::drop_idle`].
    pub(super) fn refresh(&mut self, answers: impl IntoIterator<Item = (MonthOf, NanoUsd)>) {
        self.refreshed += 1;
        for (of, spent) in answers {
            if let Some(tally) = self.by_subject.get_mut(&of.subject)
                && tally.month == of.month
            {
                tally.spent = tally.spent.max(Some(spent));
            }
        }
    }

    /// Forgets the tallies that nobody has asked for since the last time, of which no call holds anything, and that
    /// know nothing of this month which the ledger does not.
    pub(super) fn drop_idle(&mut self) {
        let latest = self.latest;
        self.by_subject.retain(|_, tally| {
            let has_lost = tally.lost > NanoUsd::default() && tally.month >= latest;
            std::mem::take(&mut tally.is_used) || tally.open > 0 || has_lost
        });
    }

    /// The ledger could not be read: it is to be read before anything more is taken.
    pub(super) fn invalidate(&mut self) {
        self.refreshed += 1;
        self.by_subject.values_mut().for_each(|tally| tally.spent = None);
    }
}

#[cfg(test)]
mod tests;
