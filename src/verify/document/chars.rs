//! From bytes to characters.

use std::ops::Range;

/// How many bytes lie between two counts that are kept.
const STEP: usize = 64;

/// A range of a text in Unicode code points; `end` is behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharSpan {
    /// The first character.
    pub start: usize,
    /// Behind the last character.
    pub end: usize,
}

/// How many characters begin before each `STEP` of a text, so that a place is counted in a moment.
#[derive(Debug, Default)]
pub struct CharTable(Vec<u32>);

impl CharTable {
    /// Counts the characters of a text.
    pub fn new(text: &str) -> Self {
        let mut before = 0;
        let counts = text.as_bytes().chunks(STEP).map(|chunk| {
            let count = before;
            before += u32::from(beginnings(chunk));
            count
        });
        Self(counts.collect())
    }

    /// A range of bytes of that text in characters.
    pub fn span(&self, text: &str, range: &Range<usize>) -> CharSpan {
        CharSpan { start: self.count(text, range.start), end: self.count(text, range.end) }
    }

    fn count(&self, text: &str, byte: usize) -> usize {
        let byte = byte.min(text.len());
        let Some(last) = self.0.len().checked_sub(1) else { return 0 };
        let step = (byte / STEP).min(last);
        self.0[step] as usize + usize::from(beginnings(&text.as_bytes()[step * STEP..byte]))
    }
}

/// How many characters begin in these bytes, of which there are at most a `STEP`.
fn beginnings(bytes: &[u8]) -> u8 {
    bytes.iter().map(|byte| u8::from(*byte & 0xc0 != 0x80)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_counted_in_characters(text in "[aé東😀]{0,200}", from in 0_usize..200, to in 0_usize..200) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let (from, to) = (from.min(places.len() - 1), to.min(places.len() - 1));
            let span = CharTable::new(&text).span(&text, &(places[from]..places[to]));
            prop_assert_eq!(span, CharSpan { start: from, end: to });
        }
    }
}
