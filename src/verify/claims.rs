//! Extraction: one structured call that splits a statement into claims, each with its question and options.
//!
//! The extractor is called first, then its fallbacks in order. A refusal is not routed around: a provider that declines
//! to process a statement has answered. Every answer is checked by [`super::lint`] before it is used. If none of its
//! claims can be asked about, that may be the model's fault: the fallbacks are called as well, and only if none of them
//! does better is it put down to the statement.
//!
//! The same holds for an extractor that finds nothing at all, not even a part to skip, in a statement with words: a
//! statement that talks it into that must not pass a gate as one with nothing to verify.
//!
//! An answer that cannot be used as it is goes back to its extractor once, with what is wrong. What can be used of it
//! is kept for the case that the second answer is no better: of a list that was cut off, the complete claims; of one
//! with a question that names the claimed answer, the other claims.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tracing::warn;

use super::calls::{Calls, IfLimited, Task};
use super::error::Error;
use super::prompts::{self, Fences};
use super::{Job, PanelSettings, draft, lint, pacing};
use crate::api::verify::{Options, Skipped};
use crate::inference::{self, Failure};
use crate::usage::Purpose;

/// Room for a claim in an extractor's answer, in bytes: all texts at their caps ([`super::lint`]), in 4-byte characters.
const MAX_CLAIM_BYTES: usize = 32 * 1024;
/// Room for everything else: skipped parts, and claims over the limit.
const MAX_OTHER_BYTES: usize = 256 * 1024;

/// The option that means: another answer is right.
pub(super) const NONE_OF_THESE: &str = "None of these";
/// The option that means: I do not know.
pub(super) const CANNOT_BE_DETERMINED: &str = "Cannot be determined";

/// A claim that can be put to the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Unique within the request.
    pub id: String,
    /// The claim itself.
    pub text: String,
    /// The question for the panel.
    pub question: String,
    /// The claimed answer, then its rivals, then the two fixed options.
    options: Vec<String>,
}

impl Claim {
    /// The position of the claimed answer among the options.
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

    /// The position of "Cannot be determined": the last.
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

/// Like [`key`], as a character.
pub(super) fn letter(position: usize) -> char {
    ('A'..='Z').nth(position).unwrap_or('Z')
}

/// The result of an extraction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// The claims, in the order of the statement.
    pub claims: Vec<Claim>,
    /// The parts of the statement that will not be verified.
    pub skipped: Vec<Skipped>,
    /// Whether another model might do better: this one has extracted claims of which none can be asked about, or
    /// nothing from a statement with words.
    pub is_unsound: bool,
    /// The position, in the extractor's list, of the first claim that was skipped because its question names the claimed
    /// answer.
    pub leak: Option<usize>,
}

/// Parses an extractor's answer, cleaned and within its caps.
///
/// # Errors
/// What is wrong with an answer that has no readable list of claims.
pub fn read_claims(answer: &str, max_claims: usize) -> Result<Extraction, String> {
    draft::read(answer, max_bytes(max_claims)).map(|draft| lint::check(draft, max_claims))
}

const fn max_bytes(max_claims: usize) -> usize {
    max_claims.saturating_mul(MAX_CLAIM_BYTES).saturating_add(MAX_OTHER_BYTES)
}

/// What is wrong with an extraction of nothing.
const NOTHING: &str = "claims and skipped are both empty, but the statement has words: each of its parts is either a \
                       claim or skipped with a reason";

/// The best of what an extractor has given that was not good enough.
#[derive(Default)]
struct LastResort(Mutex<Option<Extraction>>);

impl LastResort {
    /// Keeps an extraction unless an earlier one has more claims.
    fn keep(&self, extraction: Extraction) {
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if best.as_ref().is_none_or(|best| best.claims.len() <= extraction.claims.len()) {
            *best = Some(extraction);
        }
    }

    fn into_best(self) -> Option<Extraction> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses an answer about a statement; keeps what can be used of one that is not good enough.
    fn read(&self, answer: &str, max_claims: usize, statement: &str) -> Result<Extraction, String> {
        let extraction = read_claims(answer, max_claims).inspect_err(|_| {
            let complete = draft::read_cut_off(answer, max_bytes(max_claims));
            let complete = complete.map(|draft| lint::check(draft, max_claims));
            if let Some(complete) = complete.filter(|complete| !complete.claims.is_empty()) {
                self.keep(complete);
            }
        })?;
        let is_nothing = extraction.claims.is_empty() && extraction.skipped.is_empty();
        if is_nothing && statement.contains(char::is_alphabetic) {
            self.keep(Extraction { is_unsound: true, ..extraction });
            return Err(NOTHING.to_owned());
        }
        if let Some(at) = extraction.leak {
            self.keep(extraction);
            return Err(format!("claims[{at}].question: it names the claimed answer, and not the rivals"));
        }
        Ok(extraction)
    }
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
        let has_fallback = models.peek().is_some();
        let calls = Calls { task: Task::Extraction { has_fallback }, ..*calls };
        let if_limited = if has_fallback { IfLimited::Fail } else { IfLimited::Wait { again: false } };
        let prompt = || Some(prompts::extraction(job, settings.max_claims, fences));
        let last_resort = LastResort::default();
        let read = |answer: &str| last_resort.read(answer, settings.max_claims, &job.fact);
        let outcome = calls.structured(model, Purpose::Extraction, if_limited, prompt, read).await;
        let outcome = outcome.or_else(|failure| match last_resort.into_best() {
            Some(extraction) if failure != Failure::Refused => Ok(extraction),
            _ => Err(failure),
        });
        let failure = match outcome {
            Ok(extraction) if !extraction.is_unsound => return Ok(extraction),
            Ok(extraction) => {
                warn!(verification = %job.id, model, "an extraction has no claim that can be asked about");
                unsound.get_or_insert(extraction);
                if let Some(fallback) = models.peek() {
                    calls.meter.count_fallback(model, "unsound", fallback);
                }
                continue;
            }
            Err(failure) => pacing::reported(failure),
        };
        let outcome = failure.code();
        warn!(verification = %job.id, model, code = outcome, "no extraction");
        if failure == Failure::Refused {
            return unsound.ok_or_else(|| Error::Extraction { model: model.to_owned(), failure });
        }
        match (failures.is_empty() && unsound.is_none(), failure.is_unpaid()) {
            (true, true) => return Err(Error::Unpaid { model: model.to_owned(), failure }),
            // The budget does not cover this fallback: what is reported is the failure that made it necessary.
            (false, true) => {}
            (_, false) => failures.push((model, failure)),
        }
        if let Some(fallback) = models.peek() {
            calls.meter.count_fallback(model, outcome, fallback);
        }
    }
    if let Some(unsound) = unsound {
        return Ok(unsound);
    }
    // The model that may answer a retry soonest, otherwise the first.
    let (model, failure) = failures
        .into_iter()
        .min_by_key(|(_, failure)| inference::wait_before_retry(failure).unwrap_or(Duration::MAX))
        .ok_or(Error::Unconfigured)?;
    Err(Error::Extraction { model: model.to_owned(), failure })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn as_many_claims_are_read_as_are_wanted_with_all_at_their_caps() {
        let wide = |number: usize, characters: usize| {
            let mut text = number.to_string();
            text.extend(std::iter::repeat_n('😀', characters - text.len()));
            text
        };
        let claim = |number: usize| {
            let rivals: Vec<String> = (1..=5).map(|rival| wide(10 * number + rival, 500)).collect();
            json!({
                "claim": wide(number, 2_000),
                "question": wide(number + 1_000, 2_000),
                "claimed_answer": wide(10 * number, 500),
                "rivals": rivals,
            })
        };
        let claims: Vec<Value> = (0..40).map(claim).collect();
        let answer = json!({"claims": claims, "skipped": []}).to_string();
        assert!(answer.len() > 30 * 20_000);
        let extraction = read_claims(&answer, 30).unwrap();
        assert_eq!((extraction.claims.len(), extraction.skipped.len()), (30, 10));
    }
}
