//! Texts and numbers as JSON.

use std::fmt::{self, Write};

use crate::unsafe_chars::is_hazard;

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
    if !text.bytes().fold(false, |found, byte| found | may_be_special(byte)) {
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

/// Whether a character that begins with this byte has to be looked at: what JSON does not allow, and what a terminal
/// obeys, of which all but DEL is beyond ASCII or below the blank.
const fn may_be_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < b' ' || byte >= 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

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
