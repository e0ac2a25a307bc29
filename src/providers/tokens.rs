//! Counts of tokens, as providers write them.

use serde_json::Value;

/// No call takes more tokens than this; a larger figure is a fault, and would spoil every sum it enters.
const MOST: u64 = 1_000_000_000;

/// A count, if it is one that can be believed.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| is_believable(*count))
}

/// Whether a call can have taken that many.
pub(super) const fn is_believable(count: u64) -> bool {
    count <= MOST
}
