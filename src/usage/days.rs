//! UTC days and months, as reports are requested for and labelled with.

use std::fmt;

use crate::clock::Time;

/// A range of UTC days since the epoch, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

impl Days {
    /// The last `count` days (at least one), including today.
    pub fn until_today(count: u32, now: Time) -> Self {
        let last = now.utc_day();
        Self { first: last - i64::from(count.max(1) - 1), last }
    }
}

/// The UTC day, since the epoch, of a date such as `2026-11-20`.
pub fn parse_date(text: &str) -> Option<i64> {
    let is_date = text.len() == "2026-11-20".len();
    Time::parse(text).filter(|_| is_date).map(Time::utc_day)
}

/// The date of a UTC day: `2026-11-20`.
pub(super) fn date(day: i64) -> String {
    Time::of_utc_day(day).utc_date()
}

/// A UTC calendar month, by its first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    first_day: i64,
}

impl Month {
    /// The month that this time is in.
    pub fn of(now: Time) -> Self {
        let date = now.utc_date();
        let beginning = date.get(.."2026-11".len()).and_then(Self::parse);
        beginning.unwrap_or(Self { first_day: now.utc_day() })
    }

    /// Parses `2026-11`.
    pub fn parse(text: &str) -> Option<Self> {
        parse_date(&format!("{text}-01")).map(|first_day| Self { first_day })
    }

    /// The month before it.
    #[must_use]
    pub fn previous(self) -> Self {
        Self::of(Time::of_utc_day(self.first_day - 1))
    }

    /// Its days.
    pub fn days(self) -> Days {
        Days { first: self.first_day, last: self.end().utc_day() - 1 }
    }

    /// When the next month begins.
    pub fn end(self) -> Time {
        Time::of_utc_day(self.first_day).next_utc_month()
    }
}

/// `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = date(self.first_day);
        f.write_str(date.get(.."2026-11".len()).unwrap_or(&date))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_follows_its_previous_one() {
        for (month, previous) in [("2026-11", "2026-10"), ("2026-01", "2025-12"), ("2024-03", "2024-02")] {
            assert_eq!(Month::parse(month).unwrap().previous().to_string(), previous);
        }
    }

    #[test]
    fn months_end_where_the_calendar_says() {
        for (month, first, last) in [
            ("2026-11", "2026-11-01", "2026-11-30"),
            ("2026-12", "2026-12-01", "2026-12-31"),
            ("2028-02", "2028-02-01", "2028-02-29"),
        ] {
            let parsed = Month::parse(month).unwrap();
            let Days { first: begins, last: ends } = parsed.days();
            assert_eq!(
                (date(begins), date(ends), parsed.to_string()),
                (first.into(), last.into(), month.into())
            );
        }
        let last_moment = Time::parse("2026-12-31T23:59:59.999Z").unwrap();
        assert_eq!(Month::of(last_moment), Month::parse("2026-12").unwrap());
        assert_eq!(Month::of(last_moment).end(), Time::parse("2027-01-01").unwrap());
    }

    #[test]
    fn invalid_dates_are_none() {
        assert_eq!(parse_date("1970-01-02"), Some(1));
        for wrong in
            ["", "2026-11-31", "2026-1-1", "20261120", "2026-11-20T00:00:00Z", "2026/11/20", "1970-01-0２"]
        {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
        for wrong in ["", "2026", "2026-13", "2026-11-01", "2026-1", "11-2026", "2026-W01"] {
            assert_eq!(Month::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn today_is_one_of_the_last_days() {
        let now = Time::parse("2026-11-20T10:00:00Z").unwrap();
        let Days { first, last } = Days::until_today(30, now);
        assert_eq!((date(first), date(last)), ("2026-10-22".into(), "2026-11-20".into()));
        assert_eq!(Days::until_today(0, now), Days { first: last, last });
    }
}
