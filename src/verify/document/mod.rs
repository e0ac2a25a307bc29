//! A statement as code reads it: sentences with their places, sections for extraction, quotes that are found again.
//!
//! ```text
//! text ─ blocks ─ sentences ─┬─ sections      what one extraction call gets
//!        (Markdown: by its   ├─ finder        quotes of claims and skipped parts, back to their places
//!         structure)         └─ coverage      what no claim and no skipped part accounts for
//! ```
//!
//! What must hold: every range is in bytes of the text and begins and ends at a character; sentences are in order, apart,
//! and hold every visible character of the text but for marks of structure; all passes take time in the length of the
//! text, whatever it holds. No model counts characters: places are found by code alone.

mod blocks;
mod chars;
mod coverage;
mod finder;
mod markdown;
mod sections;
mod sentences;
mod text;

pub use chars::{CharSpan, CharTable};
pub use coverage::{Account, AccountKind, Fit, Gap, Likeness, coverage, holds_most, likeness, nearest};
pub use finder::{Finder, Quote};
pub use sections::Section;
pub use text::{Document, Format, Kind, Sentence};
