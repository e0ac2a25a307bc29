//! What a verification is asked to do.

use crate::api::verify::Domain;
use crate::clock::Time;

/// A verification to be run, its parameters checked.
#[derive(Clone, Debug)]
pub struct Job {
    /// `ver_…`.
    pub id: String,
    /// The statement as it was submitted.
    pub fact: String,
    /// Decides prompts and panel.
    pub domain: Domain,
    /// 2 or 3.
    pub min_required: u32,
    /// From `min_required` to the panel's size.
    pub total_models: u32,
    /// The date the facts are judged at.
    pub as_of: Time,
    /// Whether each answer gives a reason.
    pub explain: bool,
    /// A text to answer from instead of from own knowledge.
    pub context: Option<String>,
    /// Whether to emit `model_answered`.
    pub model_progress: bool,
}
