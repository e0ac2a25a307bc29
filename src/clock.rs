//! The time of day, as a value that is passed around.
//!
//! Everything that depends on the wall clock (limits, expiry, timestamps) takes a [`Time`] as a parameter, which comes
//! from a [`Clock`] at one place, so that tests control time by hand. Timeouts of network calls do not belong here:
//! they use the runtime's monotonic timers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

const DAY_MS: i64 = 86_400_000;

/// A point in time, in whole milliseconds since the Unix epoch (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The time `ms` milliseconds after the Unix epoch.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch; the form in which times are stored.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded up: never earlier than the time itself.
    pub const fn unix_seconds_ceil(self) -> i64 {
        self.0.div_euclid(1000) + if self.0.rem_euclid(1000) > 0 { 1 } else { 0 }
    }

    /// Days since the Unix epoch (UTC).
    pub const fn utc_day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// The beginning of a day, as [`Time::utc_day`] counts.
    #[must_use]
    pub const fn of_utc_day(day: i64) -> Self {
        Self(day.saturating_mul(DAY_MS))
    }

    /// The next UTC midnight after this time.
    #[must_use]
    pub const fn next_utc_midnight(self) -> Self {
        Self::of_utc_day(self.utc_day() + 1)
    }

    /// The calendar month in UTC, year first: `202611`. The form in which months are stored.
    pub fn utc_month(self) -> i64 {
        let date = self.civil().date();
        i64::from(date.year()) * 100 + i64::from(date.month())
    }

    /// The first day of the calendar month (UTC), as [`Time::utc_day`] counts.
    pub fn first_day_of_utc_month(self) -> i64 {
        self.utc_day() + 1 - i64::from(self.civil().date().day())
    }

    /// The beginning of the next calendar month (UTC) after this time.
    #[must_use]
    pub fn next_utc_month(self) -> Self {
        let next = self.civil().date().first_of_month().checked_add(jiff::Span::new().months(1));
        let zoned = next.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC));
        zoned.map_or(self, |zoned| Self(zoned.timestamp().as_millisecond()))
    }

    /// Date and time of day in UTC; the epoch's if this time is beyond the calendar.
    fn civil(self) -> jiff::civil::DateTime {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        jiff::tz::TimeZone::UTC.to_datetime(at)
    }

    /// This time plus `span`; saturates at the end of time.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This time minus `span`; saturates at the beginning of time.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long ago `earlier` was; zero if it is not in the past.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds: `2026-11-20T19:26:00.123Z`.
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map_or_else(|_| "9999-12-31T23:59:59.999Z".to_owned(), |at| format!("{at:.3}"))
    }

    /// The calendar date in UTC: `2026-11-20`.
    pub fn utc_date(self) -> String {
        let mut text = self.rfc3339();
        text.truncate(text.find('T').unwrap_or_default());
        text
    }

    /// Parses RFC 3339 (`2026-11-20T19:26:00Z`) or a bare date (`2026-11-20`, midnight UTC).
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Some(Self(at.as_millisecond()));
        }
        // The date parser would also accept a time without a zone, and ignore the time.
        let is_date =
            text.len() == "2026-11-20".len() && text.bytes().filter(|byte| *byte == b'-').count() == 2;
        let date: jiff::civil::Date = text.parse().ok().filter(|_| is_date)?;
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Self(zoned.timestamp().as_millisecond()))
    }

    /// Parses the date of an HTTP header: `Fri, 20 Nov 2026 19:26:00 GMT`.
    pub fn parse_http(text: &str) -> Option<Self> {
        let date = jiff::fmt::rfc2822::parse(text.trim()).ok()?;
        Some(Self(date.timestamp().as_millisecond()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

impl Serialize for Time {
    /// As RFC 3339.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

/// The source of [`Time`]: the system, or set by hand in a test.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(None)
    }

    /// A clock that stays at `start` until [`Clock::advance`] moves it; all clones move together.
    pub fn manual(start: Time) -> Self {
        Self(Some(Arc::new(AtomicI64::new(start.0))))
    }

    /// The current time.
    pub fn now(&self) -> Time {
        if let Some(hand) = &self.0 {
            return Time(hand.load(Ordering::SeqCst));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Sets a manual clock, possibly back; does nothing to the system's clock.
    pub fn set(&self, to: Time) {
        if let Some(hand) = &self.0 {
            hand.store(to.0, Ordering::SeqCst);
        }
    }

    /// Moves a manual clock forward; does nothing to the system's clock.
    pub fn advance(&self, span: Duration) {
        if let Some(hand) = &self.0 {
            hand.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_milliseconds_even_when_they_are_zero() {
        assert_eq!(Time::from_unix_ms(1_795_202_760_000).rfc3339(), "2026-11-20T19:26:00.000Z");
        assert_eq!(Time::from_unix_ms(1_795_202_760_123).rfc3339(), "2026-11-20T19:26:00.123Z");
    }

    #[test]
    fn reads_timestamps_and_bare_dates() {
        assert_eq!(Time::parse("2026-11-20T19:26:00Z"), Some(Time(1_795_202_760_000)));
        assert_eq!(Time::parse("1970-01-02"), Some(Time(DAY_MS)));
        assert_eq!(Time::parse("tomorrow"), None);
        // Without a zone it is unknown when that is; it is certainly not midnight.
        for wrong in [
            "2026-11-20T19:26:00",
            "2026-11-20T19:26",
            "2026-11-20 19:26",
            "20261120",
            "2026-11-20[Europe/Berlin]",
        ] {
            assert_eq!(Time::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Time::parse_http("Fri, 20 Nov 2026 19:26:00 GMT"), Some(Time(1_795_202_760_000)));
        assert_eq!(Time::parse_http("soon"), None);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let at = |text: &str| Time::parse(text).unwrap();
        let last = at("2026-12-31T23:59:59.999Z");
        assert_eq!((last.utc_month(), at("2027-01-01").utc_month()), (202_612, 202_701));
        assert_eq!(last.next_utc_month(), at("2027-01-01"));
        assert_eq!(last.first_day_of_utc_month(), at("2026-12-01").utc_day());
        assert_eq!(at("2027-01-01").first_day_of_utc_month(), at("2027-01-01").utc_day());
        assert_eq!(at("2027-01-01").next_utc_month(), at("2027-02-01"));
        assert_eq!(at("2028-01-31").next_utc_month(), at("2028-02-01"));
    }

    #[test]
    fn midnight_is_always_ahead() {
        let midnight = Time::from_unix_ms(DAY_MS);
        assert_eq!(midnight.next_utc_midnight(), Time(2 * DAY_MS));
        assert_eq!(Time::from_unix_ms(DAY_MS - 1).next_utc_midnight(), midnight);
        assert_eq!(Time::of_utc_day(1), midnight);
        assert_eq!(midnight.minus(Duration::from_millis(1)).utc_day(), 0);
    }
}
