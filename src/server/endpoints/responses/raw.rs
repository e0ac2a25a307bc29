//! JSON strings as they stand in a text, escapes included: joined and passed on without being decoded, since texts are
//! nearly all of a request and of an answer.
//!
//! What must hold: the inside of one JSON string followed by that of another is the inside of a JSON string.

use crate::inference::{Json, Reader};
use crate::json::fields::write_field;

/// An empty line, inside of a string.
pub(super) const EMPTY_LINE: &str = "\\n\\n";

/// What stands between the quotation marks of a string; empty for anything else.
pub(super) fn inside(value: Json<'_>) -> &str {
    let text = value.get();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}

/// What stands between the quotation marks of a string that is not empty.
pub(super) fn said(value: Option<Json<'_>>) -> Option<&str> {
    value.map(inside).filter(|text| !text.is_empty())
}

/// The string of which this is the inside.
pub(super) fn quoted(inside: &str) -> String {
    format!("\"{inside}\"")
}

/// Appends a field with the string of which this is the inside.
pub(super) fn write_quoted(out: &mut Vec<u8>, name: &'static str, inside: &str) {
    write_field(out, name, "\"");
    out.extend_from_slice(inside.as_bytes());
    out.push(b'"');
}

/// Appends a field with a list of these elements, which have commas between.
pub(super) fn write_list(out: &mut Vec<u8>, name: &'static str, elements: &str) {
    write_field(out, name, "[");
    out.extend_from_slice(elements.as_bytes());
    out.push(b']');
}

/// A text as a JSON string.
pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The value that a text holds, if it is valid.
pub(super) fn value(text: &str) -> Option<Json<'_>> {
    Reader::new(text).value()
}
