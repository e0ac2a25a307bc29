//! The forecast of a month's cost, if it continues like the last days. Pure.
//!
//! The rule: the run rate is what was spent today and on the seven days before, divided by the time from the beginning
//! of the first of these days until now; the forecast is the cost of the month so far, plus that rate for the rest of
//! it. If an installation is younger than that, its first day with usage is where the window begins. Less than a whole
//! day counts as one, as an hour says little about a day: on its first day an installation's rate is what it has spent
//! so far. The window may reach into the previous month.

use std::time::Duration;

use crate::api::console::Forecast;
use crate::clock::Time;
use crate::money::NanoUsd;

/// The number of days before today that the rate is based on.
const DAYS_BEFORE: i64 = 7;
const DAY: Duration = Duration::from_hours(24);

/// The first UTC day that the rate is based on, if `first_usage_day` was the first day with usage.
pub(super) fn first_day(first_usage_day: i64, now: Time) -> i64 {
    let today = now.utc_day();
    first_usage_day.clamp(today - DAYS_BEFORE, today)
}

/// The forecast for the month of `now`, of which `month_to_date` is spent. `recent` was spent from `first_day` (see
/// [`first_day`]) until now.
pub(super) fn forecast(month_to_date: NanoUsd, recent: NanoUsd, first_day: i64, now: Time) -> Forecast {
    let based_on = now.since(Time::of_utc_day(first_day)).max(DAY);
    let rest = now.next_utc_month().since(now);
    let to_come = u128::from(recent.0) * rest.as_millis() / based_on.as_millis();
    let per_day = u128::from(recent.0) * DAY.as_millis() / based_on.as_millis();
    let amount = |nano: u128| NanoUsd(u64::try_from(nano).unwrap_or(u64::MAX));
    Forecast {
        cost_usd: month_to_date.plus(amount(to_come)).usd(),
        per_day_usd: amount(per_day).usd(),
        based_on_days: based_on.as_secs_f64() / DAY.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Time {
        Time::parse(text).unwrap()
    }

    fn dollars(amount: u64) -> NanoUsd {
        NanoUsd(amount * 1_000_000_000)
    }

    #[test]
    fn the_rate_covers_today_and_the_seven_days_before() {
        let now = at("2026-11-20T12:00:00Z");
        let first = first_day(at("2026-01-01").utc_day(), now);
        assert_eq!(first, at("2026-11-13").utc_day());
        // 15 dollars in 7.5 days are 2 a day; 10.5 days are left.
        let expected = Forecast { cost_usd: 100.0 + 21.0, per_day_usd: 2.0, based_on_days: 7.5 };
        assert_eq!(forecast(dollars(100), dollars(15), first, now), expected);
    }

    #[test]
    fn a_new_installation_is_judged_from_its_first_day() {
        let now = at("2026-11-20T12:00:00Z");
        let first = first_day(at("2026-11-18").utc_day(), now);
        let expected = Forecast { cost_usd: 5.0 + 21.0, per_day_usd: 2.0, based_on_days: 2.5 };
        assert_eq!(forecast(dollars(5), dollars(5), first, now), expected);
    }

    #[test]
    fn an_hour_is_not_taken_for_a_day() {
        let now = at("2026-11-30T01:00:00Z");
        let first = first_day(now.utc_day(), now);
        let expected = Forecast { cost_usd: 24.0 + 23.0, per_day_usd: 24.0, based_on_days: 1.0 };
        assert_eq!(forecast(dollars(24), dollars(24), first, now), expected);
    }

    #[test]
    fn at_the_beginning_of_a_month_the_rate_is_that_of_the_previous_one() {
        let now = at("2026-12-01T00:00:00Z");
        let first = first_day(at("2026-01-01").utc_day(), now);
        let expected = Forecast { cost_usd: 31.0, per_day_usd: 1.0, based_on_days: 7.0 };
        assert_eq!(forecast(dollars(0), dollars(7), first, now), expected);
    }

    #[test]
    fn a_clock_that_was_set_back_does_no_harm() {
        let now = at("2026-11-20T12:00:00Z");
        assert_eq!(first_day(now.utc_day() + 3, now), now.utc_day());
    }

    proptest! {
        #[test]
        fn a_forecast_is_never_less_than_what_is_spent(month in any::<u64>(), recent in any::<u64>(), ms in 0_i64..4_000_000_000_000) {
            let now = Time::from_unix_ms(ms);
            let forecast = forecast(NanoUsd(month), NanoUsd(recent), first_day(0, now), now);
            prop_assert!(forecast.cost_usd >= NanoUsd(month).usd());
            prop_assert!((1.0..=8.0).contains(&forecast.based_on_days));
        }
    }
}
