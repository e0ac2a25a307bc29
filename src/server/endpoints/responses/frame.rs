//! Frames of an answer's events: `event: TYPE`, and data that repeat the type, with a number of their own.

use super::output::Item;
use crate::json::fields::{write_field, write_string_field};

/// Numbers the events of one answer, from 0.
#[derive(Debug, Default)]
pub(super) struct Frames(u64);

impl From<u64> for Frames {
    /// Goes on with this number.
    fn from(next: u64) -> Self {
        Self(next)
    }
}

impl Frames {
    /// Writes an event; `rest` writes its fields.
    pub(super) fn event(&mut self, kind: &str, out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>)) {
        for part in ["event: ", kind, "\ndata: {\"type\":\"", kind, "\""] {
            out.extend_from_slice(part.as_bytes());
        }
        write_field(out, "sequence_number", &self.0.to_string());
        self.0 = self.0.saturating_add(1);
        rest(out);
        out.extend_from_slice(b"}\n\n");
    }

    /// Writes an event about the only part of an item, or about a call: `index` is the name of the part's number.
    pub(super) fn of_item(
        &mut self,
        kind: &str,
        (at, item): (usize, &Item),
        index: Option<&'static str>,
        out: &mut Vec<u8>,
        rest: impl FnOnce(&mut Vec<u8>),
    ) {
        self.event(kind, out, |out| {
            write_string_field(out, "item_id", &item.id);
            write_field(out, "output_index", &at.to_string());
            if let Some(index) = index {
                write_field(out, index, "0");
            }
            rest(out);
        });
    }
}
