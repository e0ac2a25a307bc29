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
