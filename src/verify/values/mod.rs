//! Values in texts: numbers with their units and hedges, dates, times.
//!
//! ```text
//! folded text ─ tokens ─ senses (words of the tables in data/) ─ numbers ─┬─ dates, times
//!                                                                        └─ units, hedges
//! ```
//!
//! Code decides only where a value can be read in one way: what can be read in two ("1.233", "03/04/2020", "billion" in
//! a text of unknown language) keeps both readings. A claim's value *stands* in a text if the sets of readings meet;
//! two options are *the same* only if each has one reading. The tables are data: a language is added in data/, not
//! here. What must hold: no text makes it panic or take more than time of its length, and ranges are those of
//! characters.

mod cursor;
mod dates;
mod index;
mod language;
mod lexicon;
mod numbers;
mod options;
mod reading;
mod value;
mod wording;

pub use index::{Index, markers};
pub use language::Languages;
pub use lexicon::{Hedge, Marker, Meaning, Sense, Sign, Span};
pub use numbers::number::Number;
pub(in crate::verify) use numbers::numerals::roman;
pub use numbers::units::Unit;
pub use options::{Choice, same};
pub use reading::{Found, Reading, read};
pub use value::{Date, Time, Value};
