//! Verification: from a statement to an assessment of each of its claims. Knows no HTTP.
//!
//! ```text
//! request ─ extraction ─ lint ─┬─ claim ─ blind panel ─ vote ─┬─ completed
//!           (one model)        └─ claim ─ blind panel ─ vote ─┘
//! ```
//!
//! [`Verifier::run`] emits [`Step`]s; the server encodes them, the JSON reply folds them, tests read them, the
//! command line draws them. What must hold: the panel never sees the claim or which option it asserts; every run
//! ends with exactly one [`Event::Completed`] or [`Error`]; what a model wrote is data, parsed strictly and never trusted; dropping the
//! future of a run stops every provider call made for it. Agreement of models is evidence, not proof.

mod ballot;
mod calls;
mod claims;
mod error;
mod job;
mod json;
mod lint;
mod outbox;
mod panel;
mod pipeline;
pub mod prompts;
mod settings;
mod tally;
mod text;
mod turns;
mod vote;

#[cfg(test)]
mod tests;

pub use crate::api::verify::Event;
pub use ballot::Given;
pub use claims::{Claim, Extraction, read as read_claims};
pub use error::Error;
pub use job::Job;
pub use panel::read as read_answer;
pub use pipeline::Verifier;
pub use settings::{PanelSettings, Settings};
pub use text::is_blank;

/// What a run tells next: an event, or why there is nothing to report, which ends it.
pub type Step = Result<Event, Error>;
