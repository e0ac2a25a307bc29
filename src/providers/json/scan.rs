//! Finding where things end in a text, many bytes at a time.

/// So much of a text is looked at in small steps: names are short.
const SHORT: usize = 32;

const ONES: u64 = u64::MAX / 255;
const HIGH: u64 = ONES << 7;

/// The first place from `at` on without white space.
pub(super) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Whether a text can stand in JSON without an escape.
pub(in crate::providers) fn is_plain(text: &str) -> bool {
    special(text.as_bytes()) == text.len()
}

/// Where the first byte stands that a JSON text cannot hold as it is: a quotation mark, a backslash or a control
/// character; else the end.
#[inline]
pub(super) fn special(bytes: &[u8]) -> usize {
    let Some((short, rest)) = bytes.split_first_chunk::<SHORT>() else {
        return bytes.iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len());
    };
    let (words, _) = short.as_chunks();
    for (place, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return place * word.len() + (marks.trailing_zeros() / 8) as usize;
        }
    }
    SHORT + special_far_off(rest)
}

/// As [`special`], in a text that is long. Apart, so that what is done for every name needs no place for what is done
/// here.
#[inline(never)]
fn special_far_off(bytes: &[u8]) -> usize {
    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    // Without a way out within, so that the compiler looks at many at once.
    let lowest = bytes[..end].iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte));
    if lowest < b' ' { bytes.iter().position(|byte| is_special(*byte)).unwrap_or(end) } else { end }
}

const fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The highest bit of each special byte of a word. Of those behind the first one it may be wrong.
///
/// A byte below `n` borrows when `n` is taken from it; what is compared becomes zero first. See "Bit Twiddling Hacks",
/// <https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord>.
const fn marks(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * b' ' as u64);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & HIGH
}
