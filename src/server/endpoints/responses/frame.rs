//! Frames of an answer's events: `event: TYPE`, and data that repeat the type, with a number of their own.

use super::output::Item;
use crate::json::fields::{write_field, write_number_field, write_string_field};
use crate::server::endpoints::chat::stream::write_event;

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
        write_event(kind, out, |out| {
            write_number_field(out, "sequence_number", self.0);
            rest(out);
        });
        self.0 = self.0.saturating_add(1);
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
            write_number_field(out, "output_index", at as u64);
            if let Some(index) = index {
                write_field(out, index, "0");
            }
            rest(out);
        });
    }
}
