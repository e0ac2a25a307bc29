//! Texts and numbers as JSON.

use std::fmt::{self, Write};

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
    // Looking at every byte without a way out lets the compiler look at many at once.
    if !text.bytes().fold(false, |found, byte| found | is_special(byte)) {
        return out.push_str(text);
    }
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control @ '\0'..='\x1f' => {
                // Writing into memory cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
}

const fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' '
}
