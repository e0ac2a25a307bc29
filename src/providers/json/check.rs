//! Whether a text is JSON, as RFC 8259 has it: each function reads one thing that begins at a place, and gives the place
//! behind it.

use super::scan::{space, special};

/// What is open around a place, from the outside to the inside.
#[derive(Default)]
struct Open {
    /// Of the innermost ones, whether each is an object; the last is the lowest bit.
    are_objects: u64,
    depth: usize,
    /// Of those farther out, each word full.
    outer: Vec<u64>,
}

impl Open {
    fn enter(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(u64::BITS as usize) {
            self.outer.push(self.are_objects);
        }
        self.are_objects = self.are_objects << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn leave(&mut self) {
        self.are_objects >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(u64::BITS as usize) {
            self.are_objects = self.outer.pop().unwrap_or_default();
        }
    }

    const fn is_in_object(&self) -> bool {
        self.are_objects & 1 == 1
    }
}

/// A value.
pub(super) fn value(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'{' | b'[' => nested(bytes, at),
        _ => simple(bytes, at),
    }
}

/// An object or an array.
fn nested(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut open = Open::default();
    loop {
        at = match bytes.get(at)? {
            begin @ (b'{' | b'[') => {
                at = self::open(bytes, at, *begin)?;
                let is_object = *begin == b'{';
                match (bytes.get(at)?, is_object) {
                    (b'}', true) | (b']', false) => at + 1,
                    _ => {
                        open.enter(is_object);
                        at = if is_object { member(bytes, at)? } else { at };
                        continue;
                    }
                }
            }
            _ => simple(bytes, at)?,
        };
        while open.depth > 0 {
            at = space(bytes, at);
            match (bytes.get(at)?, open.is_in_object()) {
                (b',', is_object) => {
                    at = space(bytes, at + 1);
                    at = if is_object { member(bytes, at)? } else { at };
                    break;
                }
                (b'}', true) | (b']', false) => {
                    open.leave();
                    at += 1;
                }
                _ => return None,
            }
        }
        if open.depth == 0 {
            return Some(at);
        }
    }
}

/// A value that holds no others.
fn simple(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(text(bytes, at)?.0),
        b't' => word(bytes, at, b"true"),
        b'f' => word(bytes, at, b"false"),
        b'n' => word(bytes, at, b"null"),
        _ => number(bytes, at),
    }
}

/// The beginning of an object or an array, up to what stands in it.
pub(super) fn open(bytes: &[u8], at: usize, begin: u8) -> Option<usize> {
    (*bytes.get(at)? == begin).then(|| space(bytes, at + 1))
}

/// A name, and all that stands before its value.
fn member(bytes: &[u8], at: usize) -> Option<usize> {
    colon(bytes, name(bytes, at)?.0)
}

/// A field's name, and whether it holds escapes.
pub(super) fn name(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    if *bytes.get(at)? == b'"' { text(bytes, at) } else { None }
}

/// A colon and the white space around it.
pub(super) fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = space(bytes, at);
    (*bytes.get(at)? == b':').then(|| space(bytes, at + 1))
}

/// What stands behind a value: the comma before the next, or nothing before the end, which is not read.
pub(super) fn comma(bytes: &[u8], at: usize, end: u8) -> Option<usize> {
    let at = space(bytes, at);
    let found = *bytes.get(at)?;
    if found == end {
        return Some(at);
    }
    let next = space(bytes, at + 1);
    (found == b',' && *bytes.get(next)? != end).then_some(next)
}

/// A text, from its quotation mark on, and whether it holds escapes.
fn text(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut at = at + 1;
    let mut has_escapes = false;
    loop {
        at += special(bytes.get(at..)?);
        at = match bytes.get(at)? {
            b'"' => return Some((at + 1, has_escapes)),
            b'\\' => escape(bytes, at + 1)?,
            _ => return None,
        };
        has_escapes = true;
    }
}

/// What stands behind a backslash. Whether four digits are a character, whoever decodes the text will see.
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let digits = bytes.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

fn number(bytes: &[u8], mut at: usize) -> Option<usize> {
    if *bytes.get(at)? == b'-' {
        at += 1;
    }
    at = if *bytes.get(at)? == b'0' { at + 1 } else { digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Some(at)
}

/// At least one digit.
fn digits(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    (end > at).then_some(end)
}
