//! Parses token counts, which providers write in several ways.

use serde_json::Value;

/// No call uses more tokens than this; a larger figure is an error, and would distort every sum that includes it.
const MAX_COUNT: u64 = 1_000_000_000;

/// The token count in a JSON value, if it is plausible.
pub(in crate::providers) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| integer(value.as_f64()?)).filter(|count| is_plausible(*count))
}

/// As [`count`], for the text of a JSON value.
pub(in crate::providers) fn count_from_text(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| integer(text.parse().ok()?)).filter(|count| is_plausible(*count))
}

/// A float without a fractional part, as some providers write counts like `300.0`.
fn integer(number: f64) -> Option<u64> {
    number.to_string().parse().ok()
}

/// Whether a call can have used this many tokens.
const fn is_plausible(count: u64) -> bool {
    count <= MAX_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_their_texts_have_the_same_counts() {
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("300.0", Some(300)),
            ("4e0", Some(4)),
            ("-3", None),
            ("3.5", None),
            ("1000000000", Some(MAX_COUNT)),
            ("1000000001", None),
            ("18446744073709551616", None),
            ("\"7\"", None),
            ("null", None),
            ("[3]", None),
        ] {
            assert_eq!(count_from_text(text), expected, "{text}");
            assert_eq!(count(&serde_json::from_str(text).unwrap()), expected, "{text}");
        }
    }
}
