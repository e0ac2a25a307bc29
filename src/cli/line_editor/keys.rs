//! Decodes the bytes that a terminal sends into keys.
//!
//! There is a single decoder for the whole conversation: a sequence may arrive in pieces, and one that begins while an
//! answer is running may end at the prompt. Ctrl-C is recognised within any sequence, so that a sequence that never
//! ends cannot lock a person out.

use super::paste::Paste;

const ESC: u8 = 0x1b;

/// Longer sequences are discarded.
const MAX_SEQUENCE_BYTES: usize = 32;

/// A key, named by its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character to insert.
    Char(char),
    /// A text to insert as a whole; nothing in it is a key.
    Paste(String),
    /// A pasted text that is too long.
    Oversized,
    /// Submits the text.
    Enter,
    /// Inserts a line end.
    NewLine,
    /// One character to the left.
    Left,
    /// One character to the right.
    Right,
    /// To the start of the word.
    WordLeft,
    /// To the end of the word.
    WordRight,
    /// To the start of the line.
    Home,
    /// To the end of the line.
    End,
    /// The line above, or the earlier history entry.
    Up,
    /// The line below, or the later history entry.
    Down,
    /// The earlier history entry.
    HistoryBack,
    /// The later history entry.
    HistoryForward,
    /// Deletes to the left.
    Backspace,
    /// Deletes to the right.
    Delete,
    /// Deletes to the left up to whitespace.
    DeleteBlankLeft,
    /// Deletes to the start of the word.
    DeleteWordLeft,
    /// Deletes to the end of the word.
    DeleteWordRight,
    /// Deletes to the start of the line.
    DeleteToStart,
    /// Deletes to the end of the line.
    DeleteToEnd,
    /// Inserts the text last deleted, other than by single characters.
    Yank,
    /// Clears the screen.
    Clear,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D: quits if there is no text, otherwise deletes to the right.
    QuitOrDelete,
}

/// The state of the decoder: what the next byte belongs to.
#[derive(Debug, Default)]
enum State {
    /// A character.
    #[default]
    Text,
    /// A sequence after ESC.
    Escape,
    /// A sequence after `ESC O`.
    SingleShift,
    /// A sequence after `ESC [`, with its bytes so far.
    Control(Vec<u8>),
    /// A sequence after `ESC [ [`, with which the Linux console begins function keys.
    Console,
    /// A pasted text.
    Paste(Paste),
}

/// Decodes bytes into keys.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    /// The bytes of an incomplete character, at most three.
    partial: Vec<u8>,
}

impl Decoder {
    /// Takes the next byte, and passes any key it completes to `found`.
    pub(crate) fn take(&mut self, byte: u8, mut found: impl FnMut(Key)) {
        match std::mem::take(&mut self.state) {
            State::Paste(mut paste) => match paste.take(byte) {
                Some(key) => found(key),
                None => self.state = State::Paste(paste),
            },
            State::Text => self.text(byte, &mut found),
            State::Escape => match byte {
                b'[' => self.state = State::Control(Vec::new()),
                b'O' => self.state = State::SingleShift,
                // Some terminals send this for Alt with a key that has a sequence of its own.
                ESC => self.state = State::Escape,
                b'\r' | b'\n' | 0x08 | 0x20..=0x7f => with_alt(byte).into_iter().for_each(found),
                _ => self.text(byte, &mut found),
            },
            // Control characters are recognised anywhere, and abort a sequence.
            _ if byte < 0x20 => self.text(byte, &mut found),
            State::SingleShift => single_shift(byte).into_iter().for_each(found),
            State::Console => {}
            State::Control(mut bytes) => match byte {
                b'[' if bytes.is_empty() => self.state = State::Console,
                0x40..=0x7e if bytes == b"200" => self.state = State::Paste(Paste::default()),
                0x40..=0x7e => sequence(&bytes, byte).into_iter().for_each(found),
                _ if bytes.len() < MAX_SEQUENCE_BYTES => {
                    bytes.push(byte);
                    self.state = State::Control(bytes);
                }
                _ => {}
            },
        }
    }

    /// Takes a byte of a character; invalid bytes become the replacement character, which is what the model would see.
    fn text(&mut self, byte: u8, found: &mut impl FnMut(Key)) {
        self.partial.push(byte);
        while let Some(&first) = self.partial.first() {
            let (key, length) = match std::str::from_utf8(&self.partial) {
                Ok(text) => (text.chars().next(), text.len()),
                Err(fault) => match fault.error_len() {
                    Some(length) => (Some(char::REPLACEMENT_CHARACTER), length),
                    None => return,
                },
            };
            self.partial.drain(..length);
            match (first, key) {
                (ESC, _) => self.state = State::Escape,
                (0..0x20 | 0x7f, _) => control(first, &mut *found),
                (_, Some(c)) if !c.is_control() => found(Key::Char(c)),
                _ => {}
            }
        }
    }
}

/// Decodes a control character. Enter sends CR; LF is what the terminal turned it into before its modes were ours.
fn control(byte: u8, mut found: impl FnMut(Key)) {
    found(match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::QuitOrDelete,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x08 | 0x7f => Key::Backspace,
        b'\t' => Key::Char('\t'),
        b'\n' | b'\r' => Key::Enter,
        0x0b => Key::DeleteToEnd,
        0x0c => Key::Clear,
        0x0e => Key::HistoryForward,
        0x10 => Key::HistoryBack,
        0x15 => Key::DeleteToStart,
        0x17 => Key::DeleteBlankLeft,
        0x19 => Key::Yank,
        _ => return,
    });
}

fn with_alt(byte: u8) -> Option<Key> {
    Some(match byte {
        b'b' | b'B' => Key::WordLeft,
        b'f' | b'F' => Key::WordRight,
        b'd' | b'D' => Key::DeleteWordRight,
        0x08 | 0x7f => Key::DeleteWordLeft,
        b'\r' | b'\n' => Key::NewLine,
        _ => return None,
    })
}

fn single_shift(byte: u8) -> Option<Key> {
    match byte {
        b'M' => Some(Key::Enter),
        // Ctrl with an arrow key in rxvt.
        b'c' => Some(Key::WordRight),
        b'd' => Some(Key::WordLeft),
        _ => sequence(&[], byte),
    }
}

/// Decodes `ESC [` with these parameters and this final byte.
fn sequence(parameters: &[u8], last: u8) -> Option<Key> {
    let mut numbers = parameters.split(|&byte| byte == b';');
    let number = numbers.next().unwrap_or_default();
    // The modifier is one more than the sum of 1 Shift, 2 Alt, 4 Ctrl.
    let has_modifier = matches!(numbers.next(), Some(b"3" | b"4" | b"5" | b"6" | b"7" | b"8"));
    Some(match (last, number) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if has_modifier => Key::WordRight,
        (b'D', _) if has_modifier => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") if has_modifier => Key::DeleteWordRight,
        (b'~', b"3") => Key::Delete,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
