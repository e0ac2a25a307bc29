//! What keys ask for, decoded from the bytes that a terminal sends for them.
//!
//! One decoder for the whole conversation: a sequence may come in pieces, and one that begins while an answer runs may
//! end at the prompt. Ctrl-C is heard within any sequence, so that none that never ends can lock a person up.

use super::paste::Paste;

const ESC: u8 = 0x1b;

/// Longer sequences are none.
const LONGEST: usize = 32;

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character to insert.
    Char(char),
    /// A text to insert that came as one: nothing in it is a key.
    Paste(String),
    /// A text that is too long to be taken.
    Oversized,
    /// The text is whole.
    Enter,
    /// A further line in it.
    NewLine,
    /// One place to the left.
    Left,
    /// One place to the right.
    Right,
    /// To the start of the word.
    WordLeft,
    /// To the end of the word.
    WordRight,
    /// To the start of the line.
    Home,
    /// To the end of the line.
    End,
    /// The line above, or the text before this one.
    Up,
    /// The line below, or the text after this one.
    Down,
    /// The text before this one.
    Earlier,
    /// The text after this one.
    Later,
    /// Delete to the left.
    Backspace,
    /// Delete to the right.
    Delete,
    /// Delete to the left up to a blank.
    DeleteBlankLeft,
    /// Delete to the start of the word.
    DeleteWordLeft,
    /// Delete to the end of the word.
    DeleteWordRight,
    /// Delete to the start of the line.
    DeleteToStart,
    /// Delete to the end of the line.
    DeleteToEnd,
    /// Insert what was deleted last, other than by single characters.
    Yank,
    /// Begin at the top of an empty screen.
    Clear,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D: the end where there is no text, else delete to the right.
    EndOrDelete,
}

/// What the next byte belongs to.
#[derive(Debug, Default)]
enum State {
    /// A character; what has come of it.
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// Behind `ESC O`.
    Single,
    /// Behind `ESC [`; what has come since.
    Control(Vec<u8>),
    /// Behind `ESC [ [`, which Linux' console begins function keys with.
    Console,
    /// Within a pasted text.
    Paste(Paste),
}

/// Turns bytes into keys.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
    /// The beginning of a character, at most three bytes.
    partial: Vec<u8>,
}

impl Decoder {
    /// Takes the next byte; hands what it makes whole to `found`.
    pub(crate) fn take(&mut self, byte: u8, mut found: impl FnMut(Key)) {
        match std::mem::take(&mut self.state) {
            State::Paste(mut paste) => match paste.take(byte) {
                Some(key) => found(key),
                None => self.state = State::Paste(paste),
            },
            State::Text => self.text(byte, &mut found),
            State::Escape => match byte {
                b'[' => self.state = State::Control(Vec::new()),
                b'O' => self.state = State::Single,
                // What some terminals send for Alt with a key that has a sequence of its own.
                ESC => self.state = State::Escape,
                b'\r' | b'\n' | 0x08 | 0x20..=0x7f => with_alt(byte).into_iter().for_each(found),
                _ => self.text(byte, &mut found),
            },
            // Controls are heard wherever they come: they break a sequence off.
            _ if byte < 0x20 => self.text(byte, &mut found),
            State::Single => single(byte).into_iter().for_each(found),
            State::Console => {}
            State::Control(mut bytes) => match byte {
                b'[' if bytes.is_empty() => self.state = State::Console,
                0x40..=0x7e if bytes == b"200" => self.state = State::Paste(Paste::default()),
                0x40..=0x7e => sequence(&bytes, byte).into_iter().for_each(found),
                _ if bytes.len() < LONGEST => {
                    bytes.push(byte);
                    self.state = State::Control(bytes);
                }
                _ => {}
            },
        }
    }

    /// A byte of a character; those that are none become the replacement character, as the model would see them.
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

/// A control character. Enter is CR; LF is what it was turned into before the terminal's modes were ours.
fn control(byte: u8, mut found: impl FnMut(Key)) {
    found(match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOrDelete,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x08 | 0x7f => Key::Backspace,
        b'\t' => Key::Char('\t'),
        b'\n' | b'\r' => Key::Enter,
        0x0b => Key::DeleteToEnd,
        0x0c => Key::Clear,
        0x0e => Key::Later,
        0x10 => Key::Earlier,
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

fn single(byte: u8) -> Option<Key> {
    match byte {
        b'M' => Some(Key::Enter),
        // rxvt's Ctrl with an arrow.
        b'c' => Some(Key::WordRight),
        b'd' => Some(Key::WordLeft),
        _ => sequence(&[], byte),
    }
}

/// `ESC [`, these parameters, this final byte.
fn sequence(parameters: &[u8], last: u8) -> Option<Key> {
    let mut numbers = parameters.split(|&byte| byte == b';');
    let number = numbers.next().unwrap_or_default();
    // One more than a sum of 1 Shift, 2 Alt, 4 Ctrl.
    let with_more = matches!(numbers.next(), Some(b"3" | b"4" | b"5" | b"6" | b"7" | b"8"));
    Some(match (last, number) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if with_more => Key::WordRight,
        (b'D', _) if with_more => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") if with_more => Key::DeleteWordRight,
        (b'~', b"3") => Key::Delete,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
