//! For how long the time of day has gone evenly: what is deleted by it is gone for good, also where it was wrong only
//! for a moment.

use std::time::{Duration, Instant};

use crate::clock::Time;

/// A clock that is put right may move by so much from one look to the next; what is deleted that much too early is no
/// loss.
const MOST_CORRECTED: Duration = Duration::from_mins(1);

/// The clock as it was last looked at.
#[derive(Default)]
pub(super) struct Steady {
    last: Option<(Time, Instant)>,
    since: Option<Instant>,
}

impl Steady {
    /// How long the clock has gone evenly that shows `now` at the moment `at`, as far as looks like this one can tell.
    pub(super) fn span(&mut self, now: Time, at: Instant) -> Duration {
        if !self.last.is_some_and(|last| is_even(last, (now, at))) {
            self.since = Some(at);
        }
        self.last = Some((now, at));
        self.since.map_or(Duration::ZERO, |since| at.duration_since(since))
    }
}

/// Whether as much time has passed by the clock as has passed.
fn is_even((time, instant): (Time, Instant), (now, at): (Time, Instant)) -> bool {
    let expected = time.plus(at.duration_since(instant));
    now.since(expected).max(expected.since(now)) <= MOST_CORRECTED
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);
    const HOUR: Duration = Duration::from_hours(1);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_clock_that_jumps_is_believed_when_it_has_gone_evenly_again() {
        let (begun, day) = (Instant::now(), 24 * HOUR);
        let mut steady = Steady::default();
        assert_eq!(steady.span(NOON, begun), Duration::ZERO);
        assert_eq!(steady.span(NOON.plus(HOUR), begun + HOUR), HOUR);
        // Put right by a little, to and fro.
        assert_eq!(steady.span(NOON.plus(2 * HOUR + 50 * SECOND), begun + 2 * HOUR), 2 * HOUR);
        assert_eq!(steady.span(NOON.plus(3 * HOUR), begun + 3 * HOUR), 3 * HOUR);
        // Wrong for a second.
        let jumped = begun + 3 * HOUR + SECOND;
        assert_eq!(steady.span(NOON.plus(400 * day), jumped), Duration::ZERO);
        let right = NOON.plus(3 * HOUR + 2 * SECOND);
        assert_eq!(steady.span(right, jumped + SECOND), Duration::ZERO);
        assert_eq!(steady.span(right.plus(HOUR), jumped + SECOND + HOUR), HOUR);
    }
}
