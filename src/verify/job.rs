//! The parameters of a verification.

use std::sync::Arc;

use super::receipt::SigningKey;
use crate::api::verify::{Domain, Format};
use crate::clock::Time;

/// What is done with a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Its claims are extracted and put to the panel.
    #[default]
    Verify,
    /// Its claims are extracted, as they would be put to the panel.
    Extract,
}

/// A verification to be run, with validated parameters.
#[derive(Clone, Debug)]
pub struct Job {
    /// The id of the request, `ver_…`.
    pub id: String,
    /// The statement as it was submitted.
    pub fact: String,
    /// How it is written.
    pub format: Format,
    /// Determines prompts and panel.
    pub domain: Domain,
    /// How many models must agree: 2 or 3.
    pub min_required: u32,
    /// How many models are asked: from `min_required` to the size of the panel.
    pub total_models: u32,
    /// The date as of which the facts are judged.
    pub as_of: Time,
    /// Whether answers include a reason.
    pub explain: bool,
    /// A text that the models answer from, instead of from their own knowledge.
    pub context: Option<String>,
    /// How far it goes.
    pub work: Work,
    /// Whether to emit `model_answered`.
    pub model_progress: bool,
    /// Whether everything is found anew, whatever the verdict cache holds; it holds the new results then.
    pub fresh: bool,
    /// Signs the receipt, if one is asked for.
    pub receipt: Option<Arc<SigningKey>>,
}

impl Job {
    /// A job of an empty statement with the usual parameters, as a sample.
    pub(super) fn blank() -> Self {
        Self {
            id: String::new(),
            fact: String::new(),
            format: Format::Text,
            domain: Domain::General,
            min_required: 2,
            total_models: 3,
            as_of: Time::from_unix_ms(0),
            explain: false,
            context: None,
            work: Work::Verify,
            model_progress: false,
            fresh: false,
            receipt: None,
        }
    }
}
