//! All sections of a statement: extracted side by side, then put together.
//!
//! What is said in two sections is asked about once. The limit on claims holds for the whole statement, in the order of
//! the text. A section that no extractor makes anything of is not extracted, and no reason to lose the others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;
use tracing::warn;

use super::feed::Feed;
use super::review::{Part, asking, saying};
use super::section::{Desk, Extracted};
use super::statement::Statement;
use crate::api::verify::{ClaimsExtracted, Coverage, SkipReason, Skipped};
use crate::inference::{self, Failure};
use crate::verify::claim::Claim;
use crate::verify::document::{Likeness, Section, likeness};
use crate::verify::error::Error;
use crate::verify::model_calls::calls::Calls;
use crate::verify::model_calls::pacing;
use crate::verify::{Job, PanelSettings};

/// What was made of a whole statement.
#[derive(Debug, Default)]
pub(in crate::verify) struct Found {
    /// In the order of the text.
    pub(in crate::verify) claims: Vec<Claim>,
    /// In the order of the text; those without a place come last.
    pub(in crate::verify) skipped: Vec<Skipped>,
    /// Whether an auditor has seen all of it.
    pub(in crate::verify) audited: bool,
    pub(in crate::verify) coverage: Coverage,
    /// Whether all this is what an earlier verification found.
    pub(in crate::verify) cached: bool,
}

impl Found {
    /// What is said of it as soon as it is known.
    pub(in crate::verify) fn listed(&self, job: &Job) -> ClaimsExtracted {
        ClaimsExtracted {
            claims: self.claims.iter().map(|claim| claim.text.clone()).collect(),
            count: self.claims.len(),
            skipped: self.skipped.clone(),
            details: self.claims.iter().map(|claim| claim.details(&job.fact)).collect(),
        }
    }

    /// Whether everything that should have been checked is in a claim.
    pub(in crate::verify) fn is_complete(&self) -> bool {
        !self.skipped.iter().any(|part| part.reason.is_unchecked())
    }
}

/// Extracts the claims of a statement. Those that may be asked about are told to `feed` as soon as they are found.
///
/// # Errors
/// If no extractor gives an answer about any section: what was reported of the first.
pub(in crate::verify) async fn extract(
    calls: &Calls<'_>,
    settings: &PanelSettings,
    statement: &Statement<'_>,
    feed: &Feed,
) -> Result<Found, Error> {
    let desk = Desk { calls, settings, statement, feed };
    let sections = join_all(statement.sections.iter().map(|section| Box::pin(desk.section(section))));
    let outcomes = if statement.section_count() > 1 {
        tokio::select! {
            biased;
            outcomes = sections => outcomes,
            never = Box::pin(read_ahead(statement)) => match never {},
        }
    } else {
        sections.await
    };
    let (mut extracted, mut failures) = (Vec::with_capacity(outcomes.len()), Vec::new());
    for (section, outcome) in statement.sections.iter().zip(outcomes) {
        extracted.push(outcome.unwrap_or_else(|failure| {
            failures.push(failure);
            desk.not_extracted(section)
        }));
    }
    if failures.len() == extracted.len()
        && let Some(failure) = failures.into_iter().next()
    {
        return Err(failure);
    }
    Ok(desk.merge(extracted))
}

/// How long after the extraction began a long statement is prepared for what comes back: all sections have been sent by
/// then, and no model has answered.
const READ_AHEAD: Duration = Duration::from_millis(20);

/// Prepares a statement while models read it; never ends.
async fn read_ahead(statement: &Statement<'_>) -> Infallible {
    sleep(READ_AHEAD).await;
    statement.finder();
    pending().await
}

impl Desk<'_> {
    /// What the extractor, or the first of its fallbacks that does better, makes of a section.
    async fn section(&self, section: &Section) -> Result<Extracted, Error> {
        let id = &self.statement.job.id;
        let (mut failures, mut unsound) = (Vec::new(), None);
        let mut models = self.settings.extractors().peekable();
        while let Some(model) = models.next() {
            let outcome = self.attempt(model, models.peek().is_some(), section).await;
            let failure = match outcome {
                Ok(extracted) if !extracted.is_unsound() => return Ok(extracted),
                Ok(extracted) => {
                    warn!(verification = %id, model, "an extraction has no claim that can be asked about");
                    unsound.get_or_insert(extracted);
                    if let Some(fallback) = models.peek() {
                        self.calls.meter.count_fallback(model, "unsound", fallback);
                    }
                    continue;
                }
                Err(failure) => pacing::reported(failure),
            };
            let outcome = failure.code();
            warn!(verification = %id, model, code = outcome, "no extraction");
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
                self.calls.meter.count_fallback(model, outcome, fallback);
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

    fn merge(&self, sections: Vec<Extracted>) -> Found {
        let audited = sections.iter().all(|section| section.audited);
        let (mut claims, mut skipped) = (Vec::new(), Vec::new());
        for section in sections {
            claims.extend(section.claims);
            skipped.extend(section.skipped);
        }
        claims.sort_by_key(|claim| claim.quote.start);
        let max_claims = self.statement.max_claims(self.settings);
        let mut said = HashSet::new();
        let mut asked: HashMap<String, String> = HashMap::new();
        let mut kept: Vec<Claim> = Vec::new();
        for claim in claims {
            let reason = if said.insert(saying(&claim.text, claim.claimed())) {
                match asked.entry(asking(&claim)) {
                    Entry::Vacant(entry) => {
                        entry.insert(claim.text.clone());
                        None
                    }
                    Entry::Occupied(earlier) => {
                        match likeness(self.statement.finder(), &claim.text, earlier.get()) {
                            Likeness::Same => Some(SkipReason::Duplicate),
                            Likeness::Near => None,
                            // The question is the other claim's: what the panel says to it is not about this one.
                            Likeness::Different => Some(SkipReason::NotExtracted),
                        }
                    }
                }
            } else {
                Some(SkipReason::Duplicate)
            };
            let Some(reason) = reason.or((kept.len() >= max_claims).then_some(SkipReason::OverLimit)) else {
                kept.push(claim);
                continue;
            };
            self.feed.withdraw(&claim);
            skipped.push(Part::placed(claim.quote, reason));
        }
        skipped.sort_by_key(|part| part.range.as_ref().map_or(usize::MAX, |range| range.start));
        skipped.dedup();
        // They stay for as long as the panel is asked.
        kept.shrink_to_fit();
        let coverage = self.coverage(&kept, &skipped);
        let skipped = skipped.into_iter().filter_map(|part| self.statement.reported(part)).collect();
        Found { claims: kept, skipped, audited, coverage, cached: false }
    }

    /// How many sentences were checked: each counts once, as the worst that can be said of any of its parts.
    fn coverage(&self, claims: &[Claim], skipped: &[Part]) -> Coverage {
        let mut coverage = Coverage::default();
        let sentences = self.statement.document.sentences();
        let (mut states, unchecked) = (vec![None; sentences.len()], Some(State::Unchecked));
        let mut mark = |range: &std::ops::Range<usize>, state: State| {
            let first = sentences.partition_point(|sentence| sentence.range.end <= range.start);
            let touched = sentences.iter().zip(&mut states).skip(first);
            for (_, seen) in touched.take_while(|(sentence, _)| sentence.range.start < range.end) {
                *seen = (*seen).max(Some(state));
            }
        };
        for part in skipped {
            let state = if part.reason.is_unchecked() { State::Unchecked } else { State::Skipped };
            if let Some(range) = &part.range {
                mark(range, state);
            }
        }
        for claim in claims {
            mark(&claim.quote, State::Checked);
        }
        for (_, state) in sentences.iter().zip(states).filter(|(sentence, _)| !sentence.exempt) {
            coverage.sentences += 1;
            match state.or(unchecked) {
                Some(State::Unchecked) | None => coverage.unchecked += 1,
                Some(State::Skipped) => coverage.skipped += 1,
                Some(State::Checked) => coverage.checked += 1,
            }
        }
        coverage
    }
}

/// What became of a sentence, the later the more it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Skipped,
    Checked,
    Unchecked,
}
