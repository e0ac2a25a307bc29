//! Spans of time as people write them: whole numbers with their units, the larger units first, as in `1m30s`.

use std::time::Duration;

/// The length of such a text with these `units`, of which the larger come first and each is used at most once. `None`
/// if it is no such text; one that is beyond all bounds is as long as can be, for whoever compares it with a limit.
pub fn parse(text: &str, units: &[(&str, Duration)]) -> Option<Duration> {
    let (mut rest, mut units) = (text, units);
    let mut total = Duration::ZERO;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let name = behind.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, behind) = behind.split_at(name);
        let at = units.iter().position(|(known, _)| *known == unit).filter(|_| digits > 0)?;
        total = total.saturating_add(times(units[at].1, number));
        if behind.is_empty() {
            return Some(total);
        }
        (rest, units) = (behind, &units[at + 1..]);
    }
}

fn times(unit: Duration, digits: &str) -> Duration {
    digits.parse().map_or(Duration::MAX, |number| unit.saturating_mul(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [(&str, Duration); 3] =
        [("m", Duration::from_mins(1)), ("s", Duration::from_secs(1)), ("ms", Duration::from_millis(1))];

    #[test]
    fn parts_are_added_up() {
        for (text, ms) in
            [("90s", 90_000), ("1m30s", 90_000), ("1m500ms", 60_500), ("0m", 0), ("2m0s", 120_000)]
        {
            assert_eq!(parse(text, &UNITS), Some(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_span() {
        let wrong = [
            "", "5", "s", "5 s", "-5s", "1.5s", "1m30", "30s1m", "1s1s", "1m 30s", "1h", "5sec", "５s", "1S",
        ];
        for wrong in wrong {
            assert_eq!(parse(wrong, &UNITS), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_beyond_all_bounds_is_too_long_and_not_wrong() {
        for text in ["99999999999999999999s", "5000000000m", "5000000000m1s"] {
            assert_eq!(parse(text, &UNITS), Some(Duration::MAX), "{text}");
        }
    }
}
