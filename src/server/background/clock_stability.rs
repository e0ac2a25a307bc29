//! How long the system clock has run without jumping: what is deleted because of its age is gone for good, even if the
//! clock was wrong only for a moment.

use std::time::{Duration, Instant};

use crate::clock::Time;

/// The largest correction of the clock between two observations that is no jump; nothing is lost if something is
/// deleted that much too early.
const MAX_CORRECTION: Duration = Duration::from_mins(1);

/// Compares the system clock with the monotonic one.
#[derive(Default)]
pub(in crate::server) struct ClockStability {
    last: Option<(Time, Instant)>,
    stable_since: Option<Instant>,
}

impl ClockStability {
    /// Observes that the clock shows `now` at the instant `at`. Returns for how long it has been stable, as far as the
    /// observations so far can tell.
    pub(in crate::server) fn observe(&mut self, now: Time, at: Instant) -> Duration {
        if !self.last.is_some_and(|last| is_continuous(last, (now, at))) {
            self.stable_since = Some(at);
        }
        self.last = Some((now, at));
        self.stable_since.map_or(Duration::ZERO, |since| at.duration_since(since))
    }
}

/// Whether as much time has passed by the system clock as by the monotonic one.
fn is_continuous((time, instant): (Time, Instant), (now, at): (Time, Instant)) -> bool {
    let expected = time.plus(at.duration_since(instant));
    now.since(expected).max(expected.since(now)) <= MAX_CORRECTION
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);
    const HOUR: Duration = Duration::from_hours(1);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_clock_that_jumps_is_trusted_once_it_has_been_stable_again() {
        let (start, day) = (Instant::now(), 24 * HOUR);
        let mut clock = ClockStability::default();
        assert_eq!(clock.observe(NOON, start), Duration::ZERO);
        assert_eq!(clock.observe(NOON.plus(HOUR), start + HOUR), HOUR);
        // Corrected by a little, back and forth.
        assert_eq!(clock.observe(NOON.plus(2 * HOUR + 50 * SECOND), start + 2 * HOUR), 2 * HOUR);
        assert_eq!(clock.observe(NOON.plus(3 * HOUR), start + 3 * HOUR), 3 * HOUR);
        // Wrong for one second.
        let jumped = start + 3 * HOUR + SECOND;
        assert_eq!(clock.observe(NOON.plus(400 * day), jumped), Duration::ZERO);
        let right = NOON.plus(3 * HOUR + 2 * SECOND);
        assert_eq!(clock.observe(right, jumped + SECOND), Duration::ZERO);
        assert_eq!(clock.observe(right.plus(HOUR), jumped + SECOND + HOUR), HOUR);
    }
}
