//! JSON strings as they stand in a text, escapes included: joined and passed on without being decoded, since texts are
//! nearly all of a request and of an answer.
//!
//! What must hold: the inside of one JSON string followed by that of another is the inside of a JSON string.

use std::borrow::Cow;

use super::fields::write_field;
use super::reader::{Json, Reader};
use super::write::write_string;

/// An empty line, inside of a string.
pub(crate) const EMPTY_LINE: &str = "\\n\\n";

/// What stands between the quotation marks of a string; empty for anything else.
pub(crate) fn inside(value: Json<'_>) -> &str {
    let text = value.get();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}

/// What stands between the quotation marks of a string that is not empty.
pub(crate) fn said(value: Option<Json<'_>>) -> Option<&str> {
    value.map(inside).filter(|text| !text.is_empty())
}

/// Insides of strings as one, with another between.
pub(crate) fn joined<'a>(insides: &[&'a str], between: &str) -> Cow<'a, str> {
    match insides {
        [one] => Cow::Borrowed(one),
        several => Cow::Owned(several.join(between)),
    }
}

/// The string of which this is the inside.
pub(crate) fn quoted(inside: &str) -> String {
    format!("\"{inside}\"")
}

/// Appends a field with the string of which this is the inside.
pub(crate) fn write_quoted(out: &mut Vec<u8>, name: &'static str, inside: &str) {
    write_field(out, name, "\"");
    out.extend_from_slice(inside.as_bytes());
    out.push(b'"');
}

/// Appends a field with a list of these elements, which have commas between.
pub(crate) fn write_list(out: &mut Vec<u8>, name: &'static str, elements: &[u8]) {
    write_field(out, name, "[");
    out.extend_from_slice(elements);
    out.push(b']');
}

/// A text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// The value that a text is, if it is valid.
pub(crate) fn value(text: &str) -> Option<Json<'_>> {
    let mut reader = Reader::new(text);
    reader.value().filter(|_| reader.is_at_end())
}
