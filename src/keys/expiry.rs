//! Parses times in the future as people write them: `90d`, or a date.

use std::time::Duration;

use crate::clock::Time;
use crate::duration_text;

const SPANS: &str = "a number and a unit, such as 45s, 30m, 24h, 90d or 2w";
/// A hundred years: anything longer is a typo.
const MAX_SPAN: Duration = Duration::from_hours(36_525 * 24);

/// Parses a span such as `90d` (from `now`), a date (midnight UTC) or an RFC 3339 time; it must lie in the future.
///
/// # Errors
/// A sentence that says what would be valid.
pub fn parse(text: &str, now: Time) -> Result<Time, String> {
    let text = text.trim();
    if let Some(at) = Time::parse(text) {
        return if at > now { Ok(at) } else { Err(format!("{text} is in the past")) };
    }
    let looks_like_a_date = text.contains(['-', ':']);
    if looks_like_a_date {
        return Err(format!("{text:?} is not a valid time; write 2027-01-31 or 2027-01-31T12:00:00Z"));
    }
    let span = parse_span(text)
        .map_err(|_| format!("{text:?} is not a valid time; write {SPANS}, or a date such as 2027-01-31"))?;
    if span.is_zero() { Err(format!("{text} is now; it must be in the future")) } else { Ok(now.plus(span)) }
}

/// The units of a span.
const UNITS: [(&str, Duration); 5] = [
    ("w", Duration::from_hours(7 * 24)),
    ("d", Duration::from_hours(24)),
    ("h", Duration::from_hours(1)),
    ("m", Duration::from_mins(1)),
    ("s", Duration::from_secs(1)),
];

/// Parses a span in weeks to seconds, such as `90d` or `1h30m`. A bare `0` needs no unit.
///
/// # Errors
/// A sentence that says what would be valid.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    match duration_text::parse(text, &UNITS) {
        Some(span) if span <= MAX_SPAN => Ok(span),
        Some(_) => Err(format!("{text} is more than a hundred years")),
        None => Err(format!("{text:?} is not a valid time span; write {SPANS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    #[test]
    fn spans() {
        let seconds = |text| parse_span(text).unwrap().as_secs();
        let read = ["45s", "30m", "24h", "90d", "2w", "0", "0s", " 1d ", "1d2h"].map(seconds);
        assert_eq!(read, [45, 1_800, 86_400, 7_776_000, 1_209_600, 0, 0, 86_400, 93_600]);
        let wrong = [
            "",
            "d",
            "90",
            "90 d",
            "-1d",
            "1.5h",
            "1y",
            "1D",
            "2h1d",
            "５m",
            "99999999999999999999s",
            "101000d",
        ];
        for wrong in wrong {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_must_lie_in_the_future() {
        assert_eq!(parse("90d", NOW), Ok(NOW.plus(Duration::from_hours(90 * 24))));
        assert_eq!(parse("2026-11-21", NOW).map(Time::rfc3339).as_deref(), Ok("2026-11-21T00:00:00.000Z"));
        assert_eq!(
            parse("2026-11-20T20:26:00+01:00", NOW),
            Err("2026-11-20T20:26:00+01:00 is in the past".into())
        );
        for wrong in ["0", "0d", "2026-11-20", "2026-13-01", "tomorrow", ""] {
            assert!(parse(wrong, NOW).is_err(), "{wrong}");
        }
    }
}
