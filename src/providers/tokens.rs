//! Counts of tokens, as providers write them.

use serde_json::Value;

/// No call takes more tokens than this; a larger figure is a fault, and would spoil every sum it enters.
const MOST: u64 = 1_000_000_000;

/// A count, if it is one that can be believed.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| whole(value.as_f64()?)).filter(|count| is_believable(*count))
}

/// The same, of a count as it is written in JSON.
pub(super) fn written_count(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| whole(text.parse().ok()?)).filter(|count| is_believable(*count))
}

/// Some write a count as `300.0`.
fn whole(number: f64) -> Option<u64> {
    number.to_string().parse().ok()
}

/// Whether a call can have taken that many.
const fn is_believable(count: u64) -> bool {
    count <= MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_same_as_a_value_and_as_it_is_written() {
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("300.0", Some(300)),
            ("4e0", Some(4)),
            ("-3", None),
            ("3.5", None),
            ("1000000000", Some(MOST)),
            ("1000000001", None),
            ("18446744073709551616", None),
            ("\"7\"", None),
            ("null", None),
            ("[3]", None),
        ] {
            assert_eq!(written_count(text), expected, "{text}");
            assert_eq!(count(&serde_json::from_str(text).unwrap()), expected, "{text}");
        }
    }
}
