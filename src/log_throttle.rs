//! Throttles log lines about something that keeps failing: a line when it begins, an occasional reminder, and one when
//! it is over.
//!
//! Operations that are retried every few milliseconds (with a full disk, a locked database, no file descriptors) would
//! otherwise fill the log, and often the very disk that is full. What must hold: a new cause is logged at once, unless
//! there are too many at the same time, and none is logged more often than every five minutes.

use std::fmt::Display;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::Lock;

/// How often a persistent cause is logged.
const REMINDER_INTERVAL: Duration = Duration::from_mins(5);
/// How long nothing may fail before it counts as over: what fails every other time is not over.
const QUIET_TIME: Duration = Duration::from_secs(2);
/// The number of different causes within five minutes that are told apart; any more share the last one's entry.
const MAX_CAUSES: usize = 8;

/// The recent causes of failure of one operation.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<Vec<Cause>>);

#[derive(Debug)]
struct Cause {
    message: String,
    at: Instant,
    latest: Instant,
    unlogged: u64,
}

impl LogThrottle {
    /// Without any failures yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Records a failure with this cause. Returns `Some` if it is to be logged now, with the number of failures since
    /// its last line that were not.
    pub fn failed(&self, cause: &impl Display) -> Option<u64> {
        self.failed_at(&cause.to_string(), Instant::now())
    }

    /// Records a success. Returns whether this ends a series of failures, which is to be logged.
    pub fn succeeded(&self) -> bool {
        self.succeeded_at(Instant::now())
    }

    fn failed_at(&self, cause: &str, now: Instant) -> Option<u64> {
        let mut causes = self.0.locked();
        causes.retain(|known| known.message == cause || now.duration_since(known.latest) < REMINDER_INTERVAL);
        let is_full = causes.len() >= MAX_CAUSES;
        let known = match causes.iter().position(|known| known.message == cause) {
            None if is_full => causes.last_mut(),
            place => place.and_then(|place| causes.get_mut(place)),
        };
        let Some(known) = known else {
            causes.push(Cause { message: cause.to_owned(), at: now, latest: now, unlogged: 0 });
            return Some(0);
        };
        known.latest = now;
        if now.duration_since(known.at) < REMINDER_INTERVAL {
            known.unlogged += 1;
            return None;
        }
        known.at = now;
        Some(std::mem::take(&mut known.unlogged))
    }

    fn succeeded_at(&self, now: Instant) -> bool {
        let mut causes = self.0.locked();
        let is_quiet = |cause: &Cause| now.duration_since(cause.latest) >= QUIET_TIME;
        if causes.is_empty() || !causes.iter().all(is_quiet) {
            return false;
        }
        causes.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_logged_once_and_then_occasionally() {
        let (throttle, begun) = (LogThrottle::new(), Instant::now());
        assert_eq!(throttle.failed_at("full", begun), Some(0));
        for tenths in 1..=30 {
            assert_eq!(throttle.failed_at("full", begun + Duration::from_millis(100) * tenths), None);
        }
        assert_eq!(throttle.failed_at("locked", begun), Some(0), "another cause is news");
        assert_eq!(throttle.failed_at("full", begun + REMINDER_INTERVAL), Some(30));
        assert_eq!(throttle.failed_at("full", begun + REMINDER_INTERVAL), None);
    }

    #[test]
    fn recovery_is_reported_once_and_only_after_a_quiet_time() {
        let (throttle, begun) = (LogThrottle::new(), Instant::now());
        assert!(!throttle.succeeded_at(begun), "nothing had failed");
        throttle.failed_at("full", begun);
        assert!(!throttle.succeeded_at(begun + QUIET_TIME / 2));
        throttle.failed_at("full", begun + QUIET_TIME / 2);
        assert!(!throttle.succeeded_at(begun + QUIET_TIME));
        assert!(throttle.succeeded_at(begun + QUIET_TIME * 2));
        assert!(!throttle.succeeded_at(begun + QUIET_TIME * 2), "logged already");
        assert_eq!(throttle.failed_at("full", begun + QUIET_TIME * 2), Some(0), "it begins anew");
    }

    #[test]
    fn the_number_of_causes_is_bounded() {
        let (throttle, begun) = (LogThrottle::new(), Instant::now());
        let causes = (0..1000).filter(|number| throttle.failed_at(&number.to_string(), begun).is_some());
        assert_eq!(causes.count(), MAX_CAUSES);
        assert_eq!(throttle.failed_at("news", begun + REMINDER_INTERVAL / 2), None);
        assert_eq!(throttle.failed_at("the last one's place is taken", begun + REMINDER_INTERVAL), Some(0));
    }
}
