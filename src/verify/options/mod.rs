//! The options of a question: which are shown, and what must not give the claimed one away (CONTRACT 4.9–4.12).

mod evasive;
mod leak;
mod place;

pub use evasive::{is_abstention, is_evasive, is_reserved};
pub use leak::{asks_whether_true, names_claimed};
pub use place::{choose, sides};
