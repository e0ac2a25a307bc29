//! What the targets share: how input is split into chunks, and what must hold for every text that is shown.
//!
//! No target uses the first bytes of its input as parameters: all choices follow from a hash of the input. So recorded
//! traffic can be used as seeds without changes, and a failing input is readable.

use std::hash::{DefaultHasher, Hasher};

/// A number that depends only on `bytes` and `purpose`.
#[must_use]
pub(crate) fn number(bytes: &[u8], purpose: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.write_u8(purpose);
    hasher.finish()
}

/// One of `choices`, selected by the hash of `bytes`.
///
/// # Panics
/// If there are none.
#[must_use]
pub(crate) fn one_of<'c, T>(bytes: &[u8], purpose: u8, choices: &'c [T]) -> &'c T {
    let at = number(bytes, purpose) % choices.len() as u64;
    &choices[usize::try_from(at).unwrap_or_default()]
}

/// Splits `bytes` into pieces, some of them empty or of a single byte.
#[must_use]
pub(crate) fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    const CUTS: u8 = 6;
    let places = bytes.len() as u64 + 1;
    let cuts = (0..CUTS).map(|cut| usize::try_from(number(bytes, cut) % places).unwrap_or_default());
    // Two adjacent cuts, which split line ends and multi-byte characters.
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

/// Whether `text` is free of control characters and of those that reorder a line, on which a terminal would act.
#[must_use]
pub(crate) fn is_harmless(text: &str) -> bool {
    let reorders =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || reorders(c))
}

/// Whether `bytes` are one JSON object, of any depth.
#[must_use]
pub(crate) fn is_object(bytes: &[u8]) -> bool {
    let value = serde_json::from_slice::<&serde_json::value::RawValue>(bytes);
    value.is_ok_and(|value| value.get().starts_with('{'))
}
