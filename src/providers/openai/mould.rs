//! Chunks like the one before: nearly all of a streamed answer is one chunk over and over, with another piece of text.
//!
//! A chunk that was read, and passed as it is, leaves its mould: what stood around its text, as it came and as it went
//! out. What comes in the same bytes means the same, so of the next one only the text is read. That is the way of most
//! tokens, and spares an event two fifths of its instructions.
//!
//! What must hold: nothing goes this way that would not go out in the same bytes, and to the same account, without it.
//! So whatever else comes breaks the mould, and only what is read in full makes another one.

use super::delta;
use crate::providers::chunks::{Chunks, Stage};
use crate::providers::json::{Json, Reader};

/// The longest that is kept.
const MOST_BYTES: usize = 4096;
/// After so many chunks in a row that were not like those before, none is made any more: some providers make each one
/// differ, for privacy (`obfuscation`).
const MOST_MISSES: u8 = 8;

/// What stands around a text.
#[derive(Debug, Default)]
struct Frame {
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Frame {
    fn set(&mut self, whole: &[u8], text: std::ops::Range<usize>) {
        self.before.clear();
        self.before.extend_from_slice(&whole[..text.start]);
        self.behind.clear();
        self.behind.extend_from_slice(&whole[text.end..]);
    }
}

/// The mould of the last chunk, if it left one.
#[derive(Debug, Default)]
pub(super) struct Mould {
    is_whole: bool,
    misses: u8,
    /// The choice that the chunk was of.
    index: u32,
    came: Frame,
    went: Frame,
}

impl Mould {
    /// Passes on a chunk that is like the last one; whether it was.
    pub(super) fn pour(&mut self, data: &[u8], chunks: &mut Chunks) -> bool {
        if !self.is_whole {
            return false;
        }
        let Some(text) = self.text(data).filter(|_| chunks.stage(self.index) == Stage::Inside) else {
            self.is_whole = false;
            self.misses = self.misses.saturating_add(1);
            return false;
        };
        self.misses = 0;
        delta::note_content(text, self.index, chunks);
        chunks.write_parts([&self.went.before, text.get().as_bytes(), &self.went.behind]);
        true
    }

    /// The text as it is written, if nothing else stands there: white space around it might be a line end, and what goes
    /// out is one line.
    fn text<'d>(&self, data: &'d [u8]) -> Option<Json<'d>> {
        let written = data.strip_prefix(&*self.came.before)?.strip_suffix(&*self.came.behind)?;
        let written = std::str::from_utf8(written).ok()?;
        let text = Reader::new(written).value()?;
        (text.is_text() && text.get().len() == written.len()).then_some(text)
    }

    /// Makes it of a chunk whose `text` is all that it says, of a choice that is open and stays so. It came as `data`
    /// and went out as `sent`, in which `choices` stand from `at` on.
    pub(super) fn make(
        &mut self,
        index: u32,
        text: Json<'_>,
        data: &str,
        sent: &[u8],
        choices: &str,
        at: usize,
    ) {
        if self.misses >= MOST_MISSES || data.len() > MOST_BYTES || sent.len() > MOST_BYTES {
            return;
        }
        let (Some(came), Some(from)) = (place(text.get(), data), place(text.get(), choices)) else { return };
        let length = text.get().len();
        self.came.set(data.as_bytes(), came..came + length);
        self.went.set(sent, at + from..at + from + length);
        (self.is_whole, self.index) = (true, index);
    }

    #[cfg(test)]
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// One that is never made.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { misses: u8::MAX, ..Self::default() }
    }
}

/// Where a part of a text stands in it; `None` if it is no part of it.
fn place(part: &str, whole: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + part.len() <= whole.len()).then_some(at)
}
