//! Verification: from a statement to an assessment of each of its claims. Independent of HTTP.
//!
//! ```text
//! request ─ sections ─ extraction ─ review ─┬─ claim ─ blind panel ─ vote ─┬─ completed
//!                      (one model)    │      └─ claim ─ blind panel ─ vote ─┤
//!                                     └─ audit (a second model), mending ───┘
//! ```
//!
//! [`Verifier::run`] sends a stream of [`EventResult`]s: the server encodes them, the JSON reply folds them into one
//! response, tests check them, the command line displays them. What must hold: the panel never sees the claim or which
//! option it asserts; every run ends with exactly one [`Event::Completed`] or [`Error`]; what a model wrote is data,
//! parsed by exact rules and never trusted; dropping the future of a run cancels all its calls to providers. Agreement
//! between models is evidence, not proof.

pub mod anchors;
mod cache;
mod claim;
pub mod document;
mod error;
mod extraction;
mod job;
mod model_calls;
mod normal_form;
pub mod options;
mod pipeline;
pub mod prompts;
pub mod receipt;
mod settings;
mod text;
pub mod values;
mod voting;
pub mod words;

#[cfg(test)]
mod tests;

pub use crate::api::verify::Event;
pub use cache::{CacheEntry, VerdictStore};
pub use claim::Claim;
pub use error::Error;
pub use extraction::review_answer;
pub use job::{Job, Work};
pub use pipeline::Verifier;
pub use settings::{PanelSettings, Settings};
pub use text::is_blank;
pub use voting::answer::read_answer;
pub use voting::ballot::PanelAnswer;
pub use voting::vote::{SpecialOptions, Verdict, decide};

/// An item of a run's stream: an event, or the error that ends the run without a result.
pub type EventResult = Result<Event, Error>;
