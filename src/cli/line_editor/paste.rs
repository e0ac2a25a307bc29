//! A pasted text, which terminals put between `ESC [ 200 ~` and `ESC [ 201 ~`: its line ends do not submit it.

use super::keys::Key;
use crate::cli::text::MAX_BYTES;

const END: &[u8] = b"\x1b[201~";

/// What pressing Ctrl-C twice sends. Nobody would submit a text that contains it.
const PRESSED_TWICE: &[u8] = b"\x03\x03";

/// A paste in progress.
#[derive(Debug, Default)]
pub(super) struct Paste {
    bytes: Vec<u8>,
    is_oversized: bool,
}

impl Paste {
    /// Takes the next byte; returns the resulting key once the paste is complete or abandoned.
    pub(super) fn take(&mut self, byte: u8) -> Option<Key> {
        self.bytes.push(byte);
        // If the end marker was lost on the way, no other key would ever get through.
        if self.bytes.ends_with(PRESSED_TWICE) {
            return Some(Key::Interrupt);
        }
        if !self.bytes.ends_with(END) {
            if self.bytes.len() as u64 > MAX_BYTES {
                self.is_oversized = true;
                self.bytes.drain(..self.bytes.len() - END.len());
            }
            return None;
        }
        if self.is_oversized {
            return Some(Key::Oversized);
        }
        self.bytes.truncate(self.bytes.len() - END.len());
        Some(Key::Paste(plain(&String::from_utf8_lossy(&self.bytes))))
    }
}

/// The text with `\n` as its only line end (terminals send CR) and without other control characters.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(bytes: &[u8]) -> Vec<Key> {
        let mut paste = Paste::default();
        bytes.iter().filter_map(|&byte| paste.take(byte)).collect()
    }

    #[test]
    fn a_text_keeps_its_lines_and_no_other_controls() {
        let text = "a\r\nb\rc\nd\te\u{1b}[31m\u{7}\u{3}f\u{85}é";
        let keys = pasted(&[text.as_bytes(), END].concat());
        assert_eq!(keys, [Key::Paste("a\nb\nc\nd\te[31mfé".to_owned())]);
    }

    #[test]
    fn what_is_too_long_is_dropped_and_reported() {
        let long = vec![b'x'; usize::try_from(MAX_BYTES).unwrap() * 2];
        let mut paste = Paste::default();
        assert!(long.iter().all(|&byte| paste.take(byte).is_none()));
        assert!(paste.bytes.len() as u64 <= MAX_BYTES + 1);
        let keys: Vec<Key> = END.iter().filter_map(|&byte| paste.take(byte)).collect();
        assert_eq!(keys, [Key::Oversized]);
    }

    #[test]
    fn pressing_ctrl_c_twice_ends_a_paste_without_end() {
        assert_eq!(pasted(b"abc\x03"), []);
        assert_eq!(pasted(b"abc\x03\x03"), [Key::Interrupt]);
    }
}
