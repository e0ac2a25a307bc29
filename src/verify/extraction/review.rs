//! Reviews a draft by code: finds each quote, holds each claim against the statement, and builds what the panel is
//! asked.
//!
//! What must hold for a claim without faults: its quote stands in the section, and it says no more than that
//! ([`anchors`]); text, question and options are not empty and within their caps; its options are distinct by value,
//! overlap in nothing, and none reads like one of the two fixed ones; its question does not tell the answer; no earlier
//! claim says the same.

use std::collections::HashSet;
use std::ops::Range;

use super::draft::{ClaimDraft, Draft};
use super::fault::{Fault, Weight};
use super::options;
use super::statement::Statement;
use crate::api::verify::SkipReason;
use crate::verify::anchors::{self, Anchored};
use crate::verify::claim::Claim;
use crate::verify::document::Section;
use crate::verify::{normal_form, text};

/// The longest claim, question or skipped part, in characters.
pub(super) const MAX_CLAIM_CHARS: usize = 2_000;

/// A draft that has been reviewed.
#[derive(Debug, Default)]
pub(super) struct Review {
    pub(super) sound: Vec<Claim>,
    pub(super) faulty: Vec<Faulty>,
    pub(super) skipped: Vec<Part>,
}

/// A drafted claim with faults.
#[derive(Clone, Debug)]
pub(super) struct Faulty {
    /// What it says, for people.
    pub(super) shown: String,
    pub(super) quote: Option<Range<usize>>,
    /// What could be asked, if anything.
    pub(super) claim: Option<Claim>,
    pub(super) faults: Vec<Fault>,
}

/// A part of the statement that will not be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Part {
    /// Where it stands; `None` where it does not stand in the statement.
    pub(in crate::verify) range: Option<Range<usize>>,
    /// Its words where it has no place.
    pub(in crate::verify) shown: String,
    pub(in crate::verify) reason: SkipReason,
}

impl Part {
    pub(super) const fn placed(range: Range<usize>, reason: SkipReason) -> Self {
        Self { range: Some(range), shown: String::new(), reason }
    }
}

/// Reviews the claims of a section; those that say what one of the `kept` says are left out.
pub(super) fn review(statement: &Statement<'_>, section: &Section, draft: Draft, kept: &[Claim]) -> Review {
    let mut reviewer = Reviewer::new(statement, section, kept);
    for item in draft.unreadable {
        let faults = vec![Fault::new(Weight::Form, format!("claims[{}]{}", item.at, item.problem))];
        let quote = reviewer.place(&item.quote);
        let shown = shown(&item.quote);
        reviewer.review.faulty.push(Faulty { shown, quote, claim: None, faults });
    }
    for claim in &draft.claims {
        reviewer.add(claim);
    }
    // Skipped parts stand anywhere between the claims.
    reviewer.from = section.range.start;
    for part in draft.skipped {
        if let Some(range) = reviewer.place(&part.quote) {
            reviewer.review.skipped.push(Part::placed(range, part.reason));
        }
    }
    reviewer.review
}

struct Reviewer<'s> {
    statement: &'s Statement<'s>,
    section: &'s Section,
    /// Where the next quote is looked for first: claims come in the order of the text.
    from: usize,
    /// What claims say that are kept in any case: what is repeated of them is ignored.
    kept: HashSet<String>,
    /// What claims of this draft say, in the form in which texts are compared.
    said: HashSet<String>,
    review: Review,
}

impl<'s> Reviewer<'s> {
    fn new(statement: &'s Statement<'s>, section: &'s Section, kept: &[Claim]) -> Self {
        let kept = kept.iter().flat_map(sayings).collect();
        let from = section.range.start;
        Self { statement, section, from, kept, said: HashSet::new(), review: Review::default() }
    }

    /// Where a quote stands: from where the one before it does, else anywhere in the section.
    fn place(&mut self, quote: &str) -> Option<Range<usize>> {
        let end = self.section.range.end;
        let finder = &self.statement.finder;
        let found = finder
            .find(quote, self.from..end, 0)
            .or_else(|| finder.find(quote, self.section.range.clone(), 0))
            .filter(|found| !found.is_empty())?;
        self.from = found.start;
        Some(found)
    }

    fn add(&mut self, draft: &ClaimDraft) {
        let shown = shown(if text::is_blank(&draft.claim) { &draft.question } else { &draft.claim });
        let place = self.place(&draft.quote);
        let mut faults = Vec::new();
        let Some(quote) = place.clone() else {
            faults.push(Fault::from(&anchors::quote_missing()));
            self.review.faulty.push(Faulty { shown, quote: None, claim: None, faults });
            return;
        };
        let texts = [&draft.claim, &draft.question, &draft.claimed_answer];
        // As they will be shown: what is invisible may hide a marker here and be left out there.
        let shows_marker = |text: &String| self.statement.fences.occurs_in(&text::one_line(text));
        let marked = texts.into_iter().chain(&draft.rivals).any(shows_marker);
        let claim = if marked {
            faults.push(Fault::new(Weight::Form, "it contains the marker of the blocks; leave that out"));
            None
        } else {
            self.build(draft, quote.clone(), &mut faults)
        };
        if let Some(claim) = &claim {
            let sayings = sayings(claim);
            if sayings.iter().any(|saying| self.kept.contains(saying)) {
                return;
            }
            let new = sayings.map(|saying| self.said.insert(saying));
            if new.contains(&false) {
                self.review.skipped.push(Part::placed(quote, SkipReason::Duplicate));
                return;
            }
        }
        match claim {
            Some(claim) if faults.is_empty() => self.review.sound.push(claim),
            claim => self.review.faulty.push(Faulty { shown, quote: place, claim, faults }),
        }
    }

    /// The claim that can be asked about, if it can be; adds what is wrong with it.
    fn build(&self, draft: &ClaimDraft, quote: Range<usize>, faults: &mut Vec<Fault>) -> Option<Claim> {
        let cleaned = |text: &str, name: &str, max_chars: usize, faults: &mut Vec<Fault>| {
            let line = text::one_line(text);
            let problem = if line.is_empty() { "is empty" } else { "is too long" };
            let is_right = !line.is_empty() && !text::is_longer(&line, max_chars);
            if !is_right {
                faults.push(Fault::new(Weight::Form, format!("{name} {problem}")));
            }
            is_right.then_some(line)
        };
        let text = cleaned(&draft.claim, "claim", MAX_CLAIM_CHARS, faults);
        let question = cleaned(&draft.question, "question", MAX_CLAIM_CHARS, faults);
        let claimed = cleaned(&draft.claimed_answer, "claimed_answer", options::MAX_CHARS, faults);
        let (text, question, claimed) = (text?, question?, claimed?);
        let anchored = Anchored {
            section: &self.section.range,
            quote: &quote,
            claim: &text,
            question: &question,
            claimed_answer: &claimed,
            as_of: self.statement.as_of,
        };
        let found = anchors::check(&self.statement.document, &self.statement.finder, &anchored);
        faults.extend(found.iter().map(Fault::from));
        let number = self.statement.next_number();
        let seed = format!("{}\n{number}", self.statement.job.id);
        let drafted = options::AnswerDraft {
            claim: &text,
            question: &question,
            claimed: &claimed,
            rivals: &draft.rivals,
            best: draft.best.as_deref(),
            seed: &seed,
        };
        let rivals = drafted.shown_rivals(faults)?;
        let span = self.statement.span(&quote);
        Some(Claim::new(number, text, question, claimed, rivals, (quote, span)))
    }
}

/// What a claim says, in two forms: claims that agree in either say the same.
pub(super) fn sayings(claim: &Claim) -> [String; 2] {
    let normal = |text: &str| normal_form::of(text).to_lowercase();
    [normal(&claim.text), format!("{}\n{}", normal(&claim.question), normal(claim.claimed()))]
}

/// A part in the words of a model, for people.
fn shown(text: &str) -> String {
    text::shortened(&text::one_line(text), MAX_CLAIM_CHARS)
}
