//! Whether a claim says what its quote says: the part of it that code can tell (CONTRACT 4.3).
//!
//! The rules and their figures are those of a prototype that was tried on human-written claims: hard faults never hit a
//! good claim there, soft ones hit 0.9 % and need a second model's word before a part is skipped. What must hold: a check
//! takes time in the length of the claim, not of the text; no advice holds more of a claim than a model needs to mend it,
//! on one line and without control characters.

mod answers;
#[cfg(test)]
pub(in crate::verify) mod cases;
mod check;
mod fault;
mod markers;
mod names;
mod numbers;
mod opposites;
mod zone;

#[cfg(test)]
mod tests;

pub use check::{Anchored, check};
pub use fault::{Fault, FaultKind, Severity, quote_missing};
pub(in crate::verify) use names::{is_shortened, is_word_of_names, name_tokens};
