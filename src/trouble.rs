//! Something that keeps failing, told once: a line when it begins, a reminder now and then, and one when it is over.
//!
//! What is tried again every few milliseconds (a full disk, a locked database, no descriptors) would otherwise fill the
//! log, and with it often the very disk that is full. What must hold: a cause that has not been told yet is told at
//! once, as long as there are not too many at the same time, and none is told more often than every five minutes.

use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a cause that stays is told.
const REMIND: Duration = Duration::from_mins(5);
/// For so long nothing may fail before it is over: what fails every other time is not.
const QUIET: Duration = Duration::from_secs(2);
/// Different causes of the last five minutes that are kept apart; more than these share the place of the last.
const MOST: usize = 8;

/// What is known of something that may keep failing.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<Vec<Told>>);

#[derive(Debug)]
struct Told {
    cause: String,
    at: Instant,
    latest: Instant,
    untold: u64,
}

impl Trouble {
    /// Nothing has failed yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// It has failed, for this cause. If that is to be told now: how often it has failed without a line since the last.
    pub fn happened(&self, cause: &impl Display) -> Option<u64> {
        self.happened_at(&cause.to_string(), Instant::now())
    }

    /// It has gone well. Whether it had failed before, and is over now, which is to be told.
    pub fn went_well(&self) -> bool {
        self.went_well_at(Instant::now())
    }

    fn happened_at(&self, cause: &str, now: Instant) -> Option<u64> {
        let mut told = self.lock();
        told.retain(|told| told.cause == cause || now.duration_since(told.latest) < REMIND);
        let is_full = told.len() >= MOST;
        let known = match told.iter().position(|told| told.cause == cause) {
            None if is_full => told.last_mut(),
            place => place.and_then(|place| told.get_mut(place)),
        };
        let Some(known) = known else {
            told.push(Told { cause: cause.to_owned(), at: now, latest: now, untold: 0 });
            return Some(0);
        };
        known.latest = now;
        if now.duration_since(known.at) < REMIND {
            known.untold += 1;
            return None;
        }
        known.at = now;
        Some(std::mem::take(&mut known.untold))
    }

    fn went_well_at(&self, now: Instant) -> bool {
        let mut told = self.lock();
        let is_quiet = |told: &Told| now.duration_since(told.latest) >= QUIET;
        if told.is_empty() || !told.iter().all(is_quiet) {
            return false;
        }
        told.clear();
        true
    }

    /// Also after a panic elsewhere: the list is whole after every step.
    fn lock(&self) -> MutexGuard<'_, Vec<Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once_and_then_now_and_then() {
        let (trouble, begun) = (Trouble::new(), Instant::now());
        assert_eq!(trouble.happened_at("full", begun), Some(0));
        for tenths in 1..=30 {
            assert_eq!(trouble.happened_at("full", begun + Duration::from_millis(100) * tenths), None);
        }
        assert_eq!(trouble.happened_at("locked", begun), Some(0), "another cause is news");
        assert_eq!(trouble.happened_at("full", begun + REMIND), Some(30));
        assert_eq!(trouble.happened_at("full", begun + REMIND), None);
    }

    #[test]
    fn it_is_over_once_and_only_when_nothing_fails_in_between() {
        let (trouble, begun) = (Trouble::new(), Instant::now());
        assert!(!trouble.went_well_at(begun), "nothing had failed");
        trouble.happened_at("full", begun);
        assert!(!trouble.went_well_at(begun + QUIET / 2));
        trouble.happened_at("full", begun + QUIET / 2);
        assert!(!trouble.went_well_at(begun + QUIET));
        assert!(trouble.went_well_at(begun + QUIET * 2));
        assert!(!trouble.went_well_at(begun + QUIET * 2), "told already");
        assert_eq!(trouble.happened_at("full", begun + QUIET * 2), Some(0), "it begins anew");
    }

    #[test]
    fn causes_without_end_are_bounded() {
        let (trouble, begun) = (Trouble::new(), Instant::now());
        let told = (0..1000).filter(|number| trouble.happened_at(&number.to_string(), begun).is_some());
        assert_eq!(told.count(), MOST);
        assert_eq!(trouble.happened_at("news", begun + REMIND / 2), None);
        assert_eq!(trouble.happened_at("the last one's place is taken", begun + REMIND), Some(0));
    }
}
