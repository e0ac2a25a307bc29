//! Validates JSON (RFC 8259). Each function reads one element that begins at a position, and returns the position after
//! it.

use super::scan::{find_special, skip_whitespace};

/// How deep a value may be nested. With the few levels around it that are read one by one, it stays below 128, the
/// limit of `serde_json`, which reads some of the values later.
pub(crate) const MAX_DEPTH: u32 = 120;
const _: () = assert!(MAX_DEPTH <= u128::BITS);

/// The stack of open objects and arrays.
#[derive(Default)]
struct Open {
    /// Whether each container is an object; the lowest bit is the innermost one.
    are_objects: u128,
    depth: u32,
}

impl Open {
    /// `None` if that is too deep.
    fn enter(&mut self, is_object: bool) -> Option<()> {
        self.are_objects = self.are_objects << 1 | u128::from(is_object);
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    const fn leave(&mut self) {
        self.are_objects >>= 1;
        self.depth -= 1;
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
                        open.enter(is_object)?;
                        at = if is_object { member(bytes, at)? } else { at };
                        continue;
                    }
                }
            }
            _ => simple(bytes, at)?,
        };
        while open.depth > 0 {
            at = skip_whitespace(bytes, at);
            match (bytes.get(at)?, open.is_in_object()) {
                (b',', is_object) => {
                    at = skip_whitespace(bytes, at + 1);
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

/// A value that contains no other values.
fn simple(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(string(bytes, at)?.0),
        b't' => literal(bytes, at, b"true"),
        b'f' => literal(bytes, at, b"false"),
        b'n' => literal(bytes, at, b"null"),
        _ => number(bytes, at),
    }
}

/// The beginning of an object or an array, up to its content.
pub(super) fn open(bytes: &[u8], at: usize, begin: u8) -> Option<usize> {
    (*bytes.get(at)? == begin).then(|| skip_whitespace(bytes, at + 1))
}

/// A field's name and colon, up to its value.
fn member(bytes: &[u8], at: usize) -> Option<usize> {
    colon(bytes, name(bytes, at)?.0)
}

/// A field's name; also returns whether it contains escapes.
pub(super) fn name(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    if *bytes.get(at)? == b'"' { string(bytes, at) } else { None }
}

/// A colon and the white space around it.
pub(super) fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = skip_whitespace(bytes, at);
    (*bytes.get(at)? == b':').then(|| skip_whitespace(bytes, at + 1))
}

/// What follows a value: the comma before the next one, or nothing before `end`, which is not consumed.
pub(super) fn comma(bytes: &[u8], at: usize, end: u8) -> Option<usize> {
    let at = skip_whitespace(bytes, at);
    let found = *bytes.get(at)?;
    if found == end {
        return Some(at);
    }
    let next = skip_whitespace(bytes, at + 1);
    (found == b',' && *bytes.get(next)? != end).then_some(next)
}

/// A string from its opening quotation mark on; also returns whether it contains escapes.
fn string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let mut at = at + 1;
    let mut has_escapes = false;
    loop {
        at += find_special(bytes.get(at..)?);
        at = match bytes.get(at)? {
            b'"' => return Some((at + 1, has_escapes)),
            b'\\' => escape(bytes, at + 1)?,
            _ => return None,
        };
        has_escapes = true;
    }
}

/// What follows a backslash. Whether four digits are a valid character is checked when the string is decoded.
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

fn literal(bytes: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(literal).then_some(at + literal.len())
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

/// One or more digits.
fn digits(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    (end > at).then_some(end)
}
