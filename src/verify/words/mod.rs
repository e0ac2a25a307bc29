//! Texts as code compares them: folded to one form, cut into words, with a way back to the bytes that they came from.
//!
//! What must hold: a range of a folded text maps to a range of its source that begins and ends at characters; both passes
//! take time in the length of the text, whatever it holds; a word's hash is that of its small letters. Scripts without
//! spaces (Han, kana, Hangul, Thai) are cut into characters, so that a phrase of theirs is found like one of words.

mod folded;
mod stems;
mod tokens;

pub use folded::{Folded, ends_line, find_char};
pub use stems::{Stems, is_same_stem};
pub use tokens::{Script, Token, Tokens};
