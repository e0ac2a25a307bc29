//! The arithmetic of one subject's windows: a sliding minute and a UTC day.
//!
//! **Minute.** It keeps the times of the requests admitted within the last 60 s, to the millisecond: only then no span
//! of 60 s ever holds more than the limit, wherever it begins. Requests are recorded only while there is a limit, so
//! that an unlimited subject takes no memory.
//!
//! **Day.** A count that starts over at midnight UTC.
//!
//! **Clocks that step back** must not give requests away. For up to a minute (and between threads whose clock readings
//! overtake each other) time stands still until the clock has caught up. A longer step is a clock being corrected: the
//! recorded requests move back with it, as if no time had passed, so that nobody is locked out until a wrong future
//! arrives. A day that it returns to continues with its former count, plus what was counted in that wrong future.

mod minute;

use self::minute::{MINUTE_MS, Minute};
use super::{Decision, LimitState, Quota, WindowState};
use crate::clock::Time;

const MINUTE: i64 = MINUTE_MS as i64;

/// The counts of both windows, whoever keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests in the minute.
    pub(super) minute: u32,
    /// When the minute has room for one more than now, in Unix milliseconds.
    pub(super) minute_frees_at: i64,
    /// Requests on the day.
    pub(super) day: u32,
    /// When the day ends, in Unix milliseconds.
    pub(super) midnight: i64,
}

/// The windows of one subject.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// The latest time seen, in Unix milliseconds.
    now: i64,
    minute: Minute,
    /// Days since the epoch, UTC.
    day: i64,
    /// Requests admitted on that day.
    used: u32,
    /// The previously counted day and its count, if it was counted here.
    before: Option<(i64, u32)>,
}

/// The day that a [`Windows`] counts after it was advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Day {
    /// A day whose requests it has all counted itself.
    Known,
    /// A day that the clock went back to, and that may have been counted elsewhere.
    Regained,
}

impl Windows {
    /// Empty windows.
    pub(super) fn new(now: Time) -> Self {
        Self { now: now.unix_ms(), minute: Minute::default(), day: now.utc_day(), used: 0, before: None }
    }

    /// Counts a request, or refuses it.
    pub(super) fn take(&mut self, quota: Quota, clock: Time) -> Decision {
        self.advance(clock);
        let before = self.state(quota, clock);
        if let Some(window) = before.used_up() {
            return Decision::Refused(before, window);
        }
        if quota.per_minute > 0 {
            self.minute.add(low_bits(self.now));
        }
        self.used = self.used.saturating_add(1);
        Decision::Admitted(self.state(quota, clock))
    }

    /// Records a decision made elsewhere, by the counts of all servers: whether one more request was admitted, and the
    /// count of this day.
    pub(super) fn record(&mut self, quota: Quota, clock: Time, is_admitted: bool, (day, used): (i64, u32)) {
        self.advance(clock);
        if is_admitted && quota.per_minute > 0 {
            self.minute.add(low_bits(self.now));
        }
        if day == self.day {
            self.raise_day(used);
        }
    }

    /// The state without counting.
    pub(super) fn peek(&mut self, quota: Quota, clock: Time) -> LimitState {
        self.advance(clock);
        self.state(quota, clock)
    }

    /// Whether there was no request in the last minute.
    pub(super) fn is_idle(&mut self, clock: Time) -> bool {
        self.advance(clock);
        self.minute.is_empty()
    }

    /// How long, as of the latest time seen, no request has been admitted; a minute stands for any longer time.
    pub(super) fn quiet_ms(&self) -> u32 {
        self.minute.newest().map_or(MINUTE_MS, |admitted| low_bits(self.now).wrapping_sub(admitted))
    }

    /// The current day and its count.
    pub(super) fn day_count(&self) -> (i64, u32) {
        (self.day, self.used)
    }

    /// Adds requests of today that were counted elsewhere before these windows existed.
    pub(super) fn add_to_day(&mut self, used: u32) {
        self.used = self.used.saturating_add(used);
    }

    /// Raises the count of today to one that includes it.
    pub(super) fn raise_day(&mut self, used: u32) {
        self.used = self.used.max(used);
    }

    /// Advances to the time of the clock.
    pub(super) fn advance(&mut self, clock: Time) -> Day {
        let mut found = Day::Known;
        let step_back = self.now.saturating_sub(clock.unix_ms());
        if step_back > MINUTE {
            found = self.step_back_to(clock);
        }
        let before = self.now;
        self.now = before.max(clock.unix_ms());
        if self.now.saturating_sub(before) >= MINUTE {
            self.minute.clear();
        }
        self.minute.forget(low_bits(self.now));
        let today = Time::from_unix_ms(self.now).utc_day();
        if today > self.day {
            self.before = Some((self.day, self.used));
            self.day = today;
            self.used = 0;
        }
        found
    }

    /// Follows a clock that was set back: recorded requests keep their distance from the present, the day its count.
    fn step_back_to(&mut self, clock: Time) -> Day {
        let shift = low_bits(self.now).wrapping_sub(low_bits(clock.unix_ms()));
        self.minute.shift_back(shift);
        self.now = clock.unix_ms();
        let wrong_day = std::mem::replace(&mut self.day, clock.utc_day());
        if wrong_day == self.day {
            return Day::Known;
        }
        match self.before.take() {
            Some((day, used)) if day == self.day => {
                self.used = self.used.saturating_add(used);
                Day::Known
            }
            _ => Day::Regained,
        }
    }

    fn state(&self, quota: Quota, clock: Time) -> LimitState {
        let counts = Counts {
            minute: self.minute.count(),
            minute_frees_at: if quota.per_minute > 0 { self.minute_frees_at(quota.per_minute) } else { 0 },
            day: self.used,
            midnight: Time::from_unix_ms(self.now).next_utc_midnight().unix_ms(),
        };
        counts.state(quota, clock)
    }

    /// When the minute has room for one more than now: when its oldest request leaves it; if the limit was lowered and
    /// it holds more than allowed now, when enough of the oldest have left. An empty minute frees nothing; a request
    /// made now would leave it in 60 s.
    fn minute_frees_at(&self, limit: u32) -> i64 {
        let leaving = self.minute.nth(self.minute.count().saturating_sub(limit));
        let age = leaving.map_or(0, |admitted| low_bits(self.now).wrapping_sub(admitted));
        self.now.saturating_add(MINUTE).saturating_sub(i64::from(age))
    }
}

impl Counts {
    /// The state that these counts amount to at this time.
    pub(super) fn state(&self, quota: Quota, clock: Time) -> LimitState {
        let window = |limit: u32, used: u32, frees_at: i64| {
            (limit > 0).then(|| WindowState {
                limit,
                remaining: limit.saturating_sub(used),
                ..reset_at(frees_at, clock)
            })
        };
        LimitState {
            minute: window(quota.per_minute, self.minute, self.minute_frees_at),
            day: window(quota.per_day, self.day, self.midnight),
            now: clock.unix_ms().div_euclid(1000),
        }
    }
}

/// The reset fields of a window that frees at `frees_at` (Unix milliseconds), both rounded up.
fn reset_at(frees_at: i64, clock: Time) -> WindowState {
    let reset = Time::from_unix_ms(frees_at).unix_seconds_ceil();
    let wait_ms = u64::try_from(reset.saturating_mul(1000).saturating_sub(clock.unix_ms())).unwrap_or(0);
    WindowState { limit: 0, remaining: 0, reset, reset_in: wait_ms.div_ceil(1000) }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low bits are what is asked for"
)]
const fn low_bits(unix_ms: i64) -> u32 {
    unix_ms as u32
}

#[cfg(test)]
mod tests;
