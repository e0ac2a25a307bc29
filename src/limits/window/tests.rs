//! The windows, by examples and by properties.

use std::time::Duration;

use proptest::prelude::*;

use super::super::Window;
use super::*;

const DAY_MS: i64 = 86_400_000;
/// Noon of some day.
const NOON: i64 = 20_000 * DAY_MS + DAY_MS / 2;
const CONTRACT: Quota = Quota { per_minute: 60, per_day: 1000 };

fn at(ms: i64) -> Time {
    Time::from_unix_ms(NOON + ms)
}

fn fresh() -> Windows {
    Windows::new(at(0))
}

fn admitted(decision: &Decision) -> bool {
    matches!(decision, Decision::Admitted(_))
}

/// The number of `count` simultaneous requests that are admitted.
fn burst(windows: &mut Windows, quota: Quota, ms: i64, count: u32) -> u32 {
    (0..count).map(|_| u32::from(admitted(&windows.take(quota, at(ms))))).sum()
}

#[test]
fn sixty_one_quick_requests_give_exactly_one_refusal() {
    let mut windows = fresh();
    assert_eq!(burst(&mut windows, CONTRACT, 0, 61), 60);
    let refused = windows.take(CONTRACT, at(250));
    let Decision::Refused(state, Window::Minute) = refused else { panic!("{refused:?}") };
    assert_eq!(state.day.unwrap().remaining, 940, "a refused request takes nothing of the day");
    assert_eq!(burst(&mut windows, CONTRACT, 59_999, 1), 0);
    assert_eq!(burst(&mut windows, CONTRACT, 60_000, 61), 60);
}

#[test]
fn resets_and_waits_are_rounded_up() {
    let mut windows = fresh();
    let quota = Quota { per_minute: 1, per_day: 0 };
    windows.take(quota, at(500));
    let refused = windows.take(quota, at(700));
    // Free at 60.5 s, so 61 is the first full second at which it is; from 0.7 s that takes 60.3 s.
    let minute = refused.headline();
    assert_eq!((minute.reset, minute.reset_in), (NOON / 1000 + 61, 61));
    assert_eq!(refused.retry_after(), Some(61));
    assert!(admitted(&windows.take(quota, at(60_500))));
}

#[test]
fn the_day_ends_at_midnight() {
    let mut windows = fresh();
    let quota = Quota { per_minute: 0, per_day: 2 };
    assert_eq!(burst(&mut windows, quota, 0, 3), 2);
    let refused = windows.take(quota, at(1));
    assert!(matches!(refused, Decision::Refused(_, Window::Day)));
    assert_eq!(refused.headline().reset, (NOON + DAY_MS / 2) / 1000);
    assert_eq!(refused.retry_after(), Some(43_200));
    assert_eq!(burst(&mut windows, quota, DAY_MS / 2 - 1, 1), 0);
    assert_eq!(burst(&mut windows, quota, DAY_MS / 2, 3), 2);
    assert_eq!(windows.day_count(), (20_001, 2));
}

#[test]
fn the_minute_continues_across_midnight() {
    let mut windows = fresh();
    assert_eq!(burst(&mut windows, CONTRACT, DAY_MS / 2 - 1, 60), 60);
    assert_eq!(burst(&mut windows, CONTRACT, DAY_MS / 2 + 1, 1), 0);
}

#[test]
fn if_both_windows_are_used_up_the_one_that_frees_last_is_reported() {
    let quota = Quota { per_minute: 1, per_day: 1 };
    let mut windows = fresh();
    windows.take(quota, at(DAY_MS / 2 - 10_000));
    let refused = windows.take(quota, at(DAY_MS / 2 - 9_000));
    assert!(matches!(refused, Decision::Refused(_, Window::Minute)));
    assert_eq!(refused.retry_after(), Some(59));
}

#[test]
fn limits_may_change_between_calls() {
    let mut windows = fresh();
    let of = |per_minute| Quota { per_minute, per_day: 0 };
    for ms in 0..10 {
        assert!(admitted(&windows.take(of(10), at(ms * 1000))));
    }
    // The minute holds ten requests and may hold three: there is room when the eighth oldest leaves, at 67 s.
    let refused = windows.take(of(3), at(10_000));
    assert_eq!(refused.headline().reset, NOON / 1000 + 67);
    assert_eq!(burst(&mut windows, of(3), 66_999, 1), 0);
    assert_eq!(burst(&mut windows, of(3), 67_000, 2), 1);
    assert_eq!(burst(&mut windows, of(12), 67_000, 20), 9);
    assert_eq!(burst(&mut windows, of(0), 67_000, 20), 20);
}

#[test]
fn without_limits_nothing_is_stored_but_the_day() {
    let mut windows = fresh();
    let unlimited = Quota { per_minute: 0, per_day: 0 };
    assert_eq!(burst(&mut windows, unlimited, 0, 5000), 5000);
    assert!(windows.minute.is_empty());
    assert_eq!(windows.day_count().1, 5000);
    assert_eq!(windows.peek(unlimited, at(0)), LimitState { minute: None, day: None, now: NOON / 1000 });
}

#[test]
fn a_short_step_back_is_waited_out() {
    let mut windows = fresh();
    assert_eq!(burst(&mut windows, CONTRACT, 0, 60), 60);
    let refused = windows.take(CONTRACT, at(-30_000));
    assert_eq!(refused.retry_after(), Some(90), "counted from the clock that the caller has");
    assert_eq!(burst(&mut windows, CONTRACT, 59_999, 1), 0);
    assert_eq!(burst(&mut windows, CONTRACT, 60_000, 60), 60);
}

#[test]
fn a_clock_set_right_locks_nobody_out_and_gives_nothing_away() {
    let year = 365 * DAY_MS;
    let mut windows = fresh();
    assert_eq!(burst(&mut windows, CONTRACT, year, 60), 60);
    assert_eq!(burst(&mut windows, CONTRACT, 0, 1), 0);
    assert_eq!(burst(&mut windows, CONTRACT, 59_999, 1), 0);
    assert_eq!(burst(&mut windows, CONTRACT, 60_000, 61), 60);
    assert_eq!(windows.day_count(), (20_000, 120));
}

#[test]
fn after_the_low_bits_wrap_nothing_old_looks_recent() {
    let wrap = 1_i64 << 32;
    let mut windows = fresh();
    assert_eq!(burst(&mut windows, CONTRACT, 0, 60), 60);
    assert_eq!(burst(&mut windows, CONTRACT, wrap + 1, 61), 60);
}

#[test]
fn the_ends_of_time_are_survived() {
    for ms in [i64::MIN, -1, i64::MAX] {
        let clock = Time::from_unix_ms(ms.clamp(i64::MIN + DAY_MS, i64::MAX - DAY_MS));
        let mut windows = fresh();
        windows.take(CONTRACT, clock);
        windows.take(CONTRACT, at(0));
        windows.peek(CONTRACT, clock);
    }
}

proptest! {
    #[test]
    fn no_sixty_seconds_hold_more_than_the_limit(
        steps in prop::collection::vec(0_i64..20_000, 1..300),
        limit in 1_u32..8,
        per_day in 0_u32..40,
    ) {
        let quota = Quota { per_minute: limit, per_day };
        let mut windows = Windows::new(at(DAY_MS / 2 - 600_000));
        let mut clock = DAY_MS / 2 - 600_000;
        let mut passed: Vec<i64> = Vec::new();
        for step in steps {
            clock += step;
            let before = windows.peek(quota, at(clock));
            let decision = windows.take(quota, at(clock));
            let in_minute = passed.iter().filter(|ms| clock - **ms < MINUTE).count();
            let same_day = |ms: &&i64| at(**ms).utc_day() == at(clock).utc_day();
            let in_day = passed.iter().filter(same_day).count();
            let has_room = in_minute < limit as usize && (per_day == 0 || in_day < per_day as usize);
            prop_assert_eq!(admitted(&decision), has_room);

            let minute = decision.state().minute.unwrap();
            let taken = usize::from(has_room);
            prop_assert_eq!(minute.remaining as usize, limit as usize - in_minute - taken);
            if let Some(day) = decision.state().day {
                prop_assert_eq!(day.remaining as usize, per_day as usize - in_day - taken);
            }
            if has_room {
                passed.push(clock);
            } else {
                prop_assert_eq!(*decision.state(), before, "a refusal changes nothing");
                // Whoever waits as long as `retry_after` says is admitted.
                let wait = Duration::from_secs(decision.retry_after().unwrap());
                prop_assert!(admitted(&windows.clone().take(quota, at(clock).plus(wait))));
                prop_assert!(at(clock).plus(wait).unix_ms() >= decision.headline().reset * 1000);
            }
        }
    }

    #[test]
    fn whatever_the_clock_does_no_more_requests_pass_than_real_time_allows(
        // How much time really passes, and how far off the clock is.
        steps in prop::collection::vec((0_i64..15_000, -200_000_i64..200_000, prop::bool::weighted(0.2)), 1..200),
        limit in 1_u32..5,
    ) {
        let quota = Quota { per_minute: limit, per_day: 0 };
        let mut windows = fresh();
        let (mut real, mut error) = (0, 0);
        let mut passed: Vec<i64> = Vec::new();
        for (step, new_error, is_step_back) in steps {
            real += step;
            if is_step_back {
                // A step forward does give requests away; it cannot be told from time that passed.
                error = new_error.min(error);
            }
            if admitted(&windows.take(quota, at(real + error))) {
                passed.push(real);
            }
        }
        for (index, first) in passed.iter().enumerate() {
            let within = passed[index..].iter().filter(|ms| **ms - first < MINUTE).count();
            prop_assert!(within <= limit as usize);
        }
    }
}
