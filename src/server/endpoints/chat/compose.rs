//! Writes the parts of a request for a chat completion, for the doors whose requests are translated into one.
//!
//! Values are JSON, and texts the insides of JSON strings ([`raw`]): nothing is decoded.

use crate::inference::Json;
use crate::json::fields::{begin_element, write_field, write_string_field};
use crate::json::raw;

/// Where a part or a function is marked: what comes before it is to be kept in a cache.
pub(in crate::server) const CACHE_MARK: &str = "cache_control";
/// Where Gemini's signatures of calls stand. Clients that keep what they do not know send it back.
pub(in crate::server) const EXTRA_CONTENT: &str = "extra_content";

/// Writes messages one by one; `O` tells of each what it was made of.
#[derive(Debug)]
pub(in crate::server) struct Messages<'o, O> {
    out: &'o mut Vec<u8>,
    origins: Vec<O>,
}

impl<'o, O> Messages<'o, O> {
    /// Begins the field of a request with its messages.
    pub(in crate::server) fn begin(out: &'o mut Vec<u8>) -> Self {
        write_field(out, "messages", "[");
        Self { out, origins: Vec::new() }
    }

    /// Writes a message; `rest` writes its fields beside the role.
    pub(in crate::server) fn message(
        &mut self,
        role: &'static str,
        origin: O,
        rest: impl FnOnce(&mut Vec<u8>),
    ) {
        begin_element(self.out);
        self.out.push(b'{');
        write_string_field(self.out, "role", role);
        rest(self.out);
        self.out.push(b'}');
        self.origins.push(origin);
    }

    /// Ends the list. Returns what each message was made of.
    pub(in crate::server) fn end(self) -> Vec<O> {
        self.out.push(b']');
        self.origins
    }
}

/// Writes a part of text, which may be marked for caches.
pub(in crate::server) fn text_part(out: &mut Vec<u8>, text: &str, mark: Option<Json<'_>>) {
    begin_element(out);
    out.extend_from_slice(b"{\"type\":\"text\"");
    raw::write_quoted(out, "text", text);
    write_given(out, CACHE_MARK, mark);
    out.push(b'}');
}

/// What is said before what the result of a call shows besides text. Both are insides of strings.
pub(in crate::server) fn shown_by(call_id: &str) -> String {
    format!("What the tool returned for the call {call_id} besides text:")
}

/// Writes a call of a function: its id, its name, and its arguments, which are a string.
pub(in crate::server) fn call(
    out: &mut Vec<u8>,
    (id, name, arguments): (Json<'_>, &str, &str),
    extra: Option<Json<'_>>,
) {
    begin_element(out);
    out.push(b'{');
    write_field(out, "id", id.get());
    out.extend_from_slice(b",\"type\":\"function\",\"function\":{");
    write_field(out, "name", name);
    write_field(out, "arguments", arguments);
    out.push(b'}');
    write_given(out, EXTRA_CONTENT, extra);
    out.push(b'}');
}

/// Writes a function that can be called: its name, and which of its other fields are given. It may be marked for caches.
pub(in crate::server) fn function(
    out: &mut Vec<u8>,
    name: &str,
    others: [(&'static str, Option<Json<'_>>); 3],
    mark: Option<Json<'_>>,
) {
    begin_element(out);
    out.extend_from_slice(b"{\"type\":\"function\",\"function\":{");
    write_field(out, "name", name);
    for (name, value) in others {
        write_given(out, name, value);
    }
    out.push(b'}');
    write_given(out, CACHE_MARK, mark);
    out.push(b'}');
}

/// Writes a field, if there is a value for it.
pub(in crate::server) fn write_given(out: &mut Vec<u8>, name: &'static str, value: Option<Json<'_>>) {
    if let Some(value) = value {
        write_field(out, name, value.get());
    }
}
