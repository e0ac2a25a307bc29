//! Extraction: one structured call that splits a statement into claims, each with its question and options.
//!
//! The extractor is asked first, then its fallbacks in order. A refusal is not routed around: a provider that
//! declines to read a statement has answered. What comes back goes through [`super::lint`] before anybody sees it. Claims
//! of which none can be asked about may be the model's fault: the fallbacks are asked as well, and only if none of them
//! does better it is the statement's.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::warn;

use super::calls::Calls;
use super::error::Error;
use super::prompts::{self, Fences};
use super::{Job, PanelSettings, json, lint};
use crate::api::verify::{Options, SkipReason, Skipped};
use crate::inference::{self, Failure};
use crate::usage::Purpose;

/// The option for "another answer is right".
pub(super) const NONE_OF_THESE: &str = "None of these";
/// The option for "I cannot tell".
pub(super) const CANNOT_BE_DETERMINED: &str = "Cannot be determined";

/// A claim that can be put to the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Unique within the request.
    pub id: String,
    /// What is claimed.
    pub text: String,
    /// What the panel is asked.
    pub question: String,
    /// The claimed answer, then its rivals, then the two that are always there.
    options: Vec<String>,
}

impl Claim {
    /// Where the claimed answer stands among the options.
    pub(super) const CLAIMED: usize = 0;

    /// The claim at a zero-based position in its request.
    pub(super) fn new(
        position: usize,
        text: String,
        question: String,
        claimed: String,
        rivals: Vec<String>,
    ) -> Self {
        let mut options = vec![claimed];
        options.extend(rivals);
        options.extend([NONE_OF_THESE.to_owned(), CANNOT_BE_DETERMINED.to_owned()]);
        Self { id: format!("claim_{}", position + 1), text, question, options }
    }

    /// The options in their original order.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// Where "Cannot be determined" stands: last.
    pub(super) fn undetermined(&self) -> usize {
        self.options.len() - 1
    }

    /// The options by key.
    pub(super) fn keyed_options(&self) -> Options {
        let keyed = |(at, text): (usize, &String)| (key(at), Value::String(text.clone()));
        self.options.iter().enumerate().map(keyed).collect::<Map<_, _>>()
    }
}

/// The key of the option at a position: `A`, `B`, …; there are never more than eight (see [`lint`]).
pub(super) fn key(position: usize) -> String {
    letter(position).to_string()
}

/// As [`key`], as a character.
pub(super) fn letter(position: usize) -> char {
    ('A'..='Z').nth(position).unwrap_or('Z')
}

/// What became of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// In the order of the statement.
    pub claims: Vec<Claim>,
    /// What will not be verified.
    pub skipped: Vec<Skipped>,
    /// Whether the model has written claims, of which none can be asked about.
    pub is_unsound: bool,
}

/// An extractor's answer: its fields, unchecked.
#[derive(Debug, Deserialize)]
pub(super) struct Draft {
    pub(super) claims: Vec<DraftClaim>,
    /// A model that skipped nothing may leave it out.
    #[serde(default)]
    pub(super) skipped: Vec<DraftSkipped>,
}

/// One of its claims.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DraftClaim {
    pub(super) claim: String,
    pub(super) question: String,
    pub(super) claimed_answer: String,
    pub(super) rivals: Vec<String>,
}

/// One of the parts it skipped.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DraftSkipped {
    pub(super) text: String,
    pub(super) reason: SkipReason,
}

/// What an extractor's answer says, cleaned and within its caps; `None` if it is not in the shape it was asked for.
pub fn read(answer: &str, max_claims: usize) -> Option<Extraction> {
    json::object::<Draft>(answer).map(|draft| lint::check(draft, max_claims))
}

/// Extracts the claims of a job's statement.
pub(super) async fn extract(
    calls: &Calls<'_>,
    settings: &PanelSettings,
    job: &Job,
    fences: &Fences,
) -> Result<Extraction, Error> {
    let (mut failures, mut unsound) = (Vec::new(), None);
    let mut models = settings.extractors().peekable();
    while let Some(model) = models.next() {
        let prompt = || prompts::extraction(job, fences);
        let read = |answer: &str| read(answer, settings.max_claims);
        let failure = match calls.structured(model, Purpose::Extraction, prompt, read).await {
            Ok(extraction) if !extraction.is_unsound => return Ok(extraction),
            Ok(extraction) => {
                warn!(verification = %job.id, model, "no claim of an extraction can be asked about");
                unsound.get_or_insert(extraction);
                if let Some(fallback) = models.peek() {
                    calls.meter.count_fallback(model, fallback);
                }
                continue;
            }
            Err(failure) => failure,
        };
        warn!(verification = %job.id, model, code = failure.code(), "extraction failed");
        if failure == Failure::Refused {
            return unsound.ok_or_else(|| Error::Extraction { model: model.to_owned(), failure });
        }
        match (failures.is_empty() && unsound.is_none(), failure.is_unpaid()) {
            (true, true) => return Err(Error::Unpaid { model: model.to_owned(), failure }),
            // A fallback that the budget does not allow: what is told is why it was needed.
            (false, true) => {}
            (_, false) => failures.push((model, failure)),
        }
        if let Some(fallback) = models.peek() {
            calls.meter.count_fallback(model, fallback);
        }
    }
    if let Some(unsound) = unsound {
        return Ok(unsound);
    }
    // Whichever may answer first when all is sent again, else the one that was to be asked.
    let (model, failure) = failures
        .into_iter()
        .min_by_key(|(_, failure)| inference::wait_for(failure).unwrap_or(Duration::MAX))
        .ok_or(Error::Unconfigured)?;
    Err(Error::Extraction { model: model.to_owned(), failure })
}
