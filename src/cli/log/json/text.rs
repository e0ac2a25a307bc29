//! Texts and numbers as JSON.

use std::fmt::{self, Write};

use crate::cli::sanitize::is_hazard;

/// Writes a text, in quotes.
pub(super) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Writes a whole number.
pub(super) fn push_number(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Escapes what is written to it, as the inside of a JSON text.
pub(super) struct Escaped<'a>(pub(super) &'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(self.0, text);
        Ok(())
    }
}

fn push_escaped(out: &mut String, text: &str) {
    if is_plain(text) {
        return out.push_str(text);
    }
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            hazard if is_hazard(hazard) => {
                // Writing into memory cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(hazard));
            }
            plain => out.push(plain),
        }
    }
}

/// Whether nothing in a text has to be looked at. Eight bytes at once: most texts of a line are short.
fn is_plain(text: &str) -> bool {
    let (words, rest) = text.as_bytes().as_chunks();
    words.iter().all(|word| is_plain_word(u64::from_le_bytes(*word)))
        && !rest.iter().copied().any(may_be_special)
}

/// The same of eight bytes. Taking a number from each byte borrows into its highest bit where the byte is smaller, and
/// adding one to a byte of 0x7f sets that bit; the bits of bytes behind the first special one may be wrong.
const fn is_plain_word(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let control = word.wrapping_sub(ONES * b' ' as u64);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    let high = word | word.wrapping_add(ONES);
    (control | quote | backslash | high) & (ONES << 7) == 0
}

/// Whether a character that begins with this byte has to be looked at: what JSON does not allow, and what a terminal
/// obeys, of which all but DEL is beyond ASCII or below the blank.
const fn may_be_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' ' || byte >= 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_are_looked_at_as_each_of_them_would_be() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                for filler in [b' ', b'a', b'~', b'!', b'#', b'[', b']'] {
                    let mut word = [filler; 8];
                    word[place] = byte;
                    assert_eq!(is_plain_word(u64::from_le_bytes(word)), !may_be_special(byte), "{word:?}");
                }
            }
        }
    }

    #[test]
    fn no_line_commands_a_terminal() {
        let hazards: String = ('\0'..='\u{2fff}').filter(|c| is_hazard(*c)).collect();
        let plain = "é€ — ‰ ش 日本 😀 \u{a0}";
        let mut written = String::new();
        push_text(&mut written, &format!("{hazards}{plain}"));
        assert!(!written.chars().any(is_hazard), "{written}");
        assert!(written.contains(plain), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), format!("{hazards}{plain}"));
    }
}
