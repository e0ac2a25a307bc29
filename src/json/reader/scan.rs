//! Byte scanners that examine many bytes at a time.

/// This much of a string is scanned in small steps, as names are short: with `memchr` from the beginning, a completion
/// takes 5 % more instructions (28 November 2026).
const SHORT: usize = 32;

const ONES: u64 = u64::MAX / 255;
const HIGH: u64 = ONES << 7;

/// The first position from `at` on that is not white space.
pub(super) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The position of the first byte that cannot be part of a JSON string as it is (a quotation mark, a backslash or a
/// control character), or the length if there is none.
#[inline]
pub(in crate::json) fn find_special(bytes: &[u8]) -> usize {
    let Some((short, rest)) = bytes.split_first_chunk::<SHORT>() else {
        return bytes.iter().position(|byte| is_special(*byte)).unwrap_or(bytes.len());
    };
    let (words, _) = short.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let bits = special_bits(u64::from_le_bytes(*word));
        if bits != 0 {
            return index * word.len() + (bits.trailing_zeros() / 8) as usize;
        }
    }
    SHORT + find_special_in_long(rest)
}

/// As [`find_special`], for long strings. A function of its own, so that the code for names stays small enough to be
/// inlined.
#[inline(never)]
fn find_special_in_long(bytes: &[u8]) -> usize {
    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    // Without an early exit, so that the compiler can vectorize it.
    let lowest = bytes[..end].iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte));
    if lowest < b' ' { bytes.iter().position(|byte| is_special(*byte)).unwrap_or(end) } else { end }
}

const fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Sets the highest bit of each special byte of a word; after the first one, bits may be wrong.
///
/// A byte below `n` borrows when `n` is subtracted from it; a byte to compare with is first turned into zero by XOR.
/// See "Bit Twiddling Hacks", <https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord>.
const fn special_bits(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * b' ' as u64);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (control | quote | backslash) & !word & HIGH
}
