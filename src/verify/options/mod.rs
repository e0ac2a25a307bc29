//! The options of a question: which are shown, and what must not give the claimed one away (CONTRACT 4.9–4.12).

mod evasive;
mod leak;
mod place;
mod yes_no;

pub use evasive::{Evasion, evasion};
pub use leak::{asks_whether_true, names, names_claimed, says_only};
pub use place::{choose, sides};
pub use yes_no::{asks_yes_or_no, is_yes_or_no};
