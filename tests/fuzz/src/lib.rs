//! What the targets share: how bytes are cut into pieces, and what must hold of every text that leaves.
//!
//! No target takes its first bytes for instructions: whatever has to be decided follows from a hash of the input. So
//! recorded traffic is a seed as it is, and an input that fails can be read.

use std::hash::{DefaultHasher, Hasher};

/// A number that follows from `bytes` and from nothing else, another one for each `purpose`.
#[must_use]
pub fn number(bytes: &[u8], purpose: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.write_u8(purpose);
    hasher.finish()
}

/// One of `choices`, as the hash of `bytes` has it.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn one_of<'c, T>(bytes: &[u8], purpose: u8, choices: &'c [T]) -> &'c T {
    let at = number(bytes, purpose) % choices.len() as u64;
    &choices[usize::try_from(at).unwrap_or_default()]
}

/// `bytes` in pieces, some of them empty or of a single byte, that are the whole when put together.
#[must_use]
pub fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    const CUTS: u8 = 6;
    let places = bytes.len() as u64 + 1;
    let cuts = (0..CUTS).map(|cut| usize::try_from(number(bytes, cut) % places).unwrap_or_default());
    // Two cuts side by side: line ends and characters of several bytes come apart.
    let mut cuts: Vec<usize> = cuts.flat_map(|cut| [cut, (cut + 1).min(bytes.len())]).collect();
    cuts.sort_unstable();
    let mut from = 0;
    let mut pieces: Vec<&[u8]> = cuts
        .into_iter()
        .map(|to| {
            let piece = &bytes[from..to];
            from = to;
            piece
        })
        .collect();
    pieces.push(&bytes[from..]);
    pieces
}

/// Whether `text` has nothing that a terminal or a log would obey: control characters, and those that reorder a line.
#[must_use]
pub fn is_harmless(text: &str) -> bool {
    let reorders =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || reorders(c))
}

/// Whether `bytes` are one JSON object, however deep.
#[must_use]
pub fn is_object(bytes: &[u8]) -> bool {
    let value = serde_json::from_slice::<&serde_json::value::RawValue>(bytes);
    value.is_ok_and(|value| value.get().starts_with('{'))
}
