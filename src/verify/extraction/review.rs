//! Reviews a draft by code: finds each quote, holds each claim against the statement, and builds what the panel is
//! asked.
//!
//! What must hold for a claim without faults: its quote stands in the section, and it says no more than that
//! ([`anchors`]); text, question and options are not empty and within their caps; its options are distinct by value,
//! overlap in nothing, and none reads like one of the two fixed ones; its question does not tell the answer; no earlier
//! claim says the same, and none that says something else has its question and answer.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::draft::{ClaimDraft, Draft};
use super::fault::{Fault, Weight, heaviest};
use super::options;
use super::statement::Statement;
use crate::api::verify::SkipReason;
use crate::verify::anchors::{self, Anchored};
use crate::verify::claim::Claim;
use crate::verify::document::{Account, AccountKind, Fit, Kind, Likeness, Quote, Section, likeness};
use crate::verify::{normal_form, text};

/// The longest claim, question or skipped part, in characters.
pub(super) const MAX_CLAIM_CHARS: usize = 2_000;
/// One drafted claim is reviewed for so many characters of a section: dense text has a claim for every 12 in Chinese, for
/// every 48 in English. More are no honest answer, and would make long prompts of a short text.
const CHARS_PER_DRAFT: usize = 10;
/// So many drafted claims are reviewed of any section, and at most so many of the longest.
const DRAFTS: std::ops::RangeInclusive<usize> = 16..=400;
/// How many places of a repeated quote are compared.
pub(super) const MAX_PLACES: usize = 12;
/// The most sentences that a quote needs.
const MAX_QUOTED_SENTENCES: usize = 2;

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

impl Faulty {
    /// The claim, if nothing stands against it but that it could be better.
    pub(super) fn could_be_better(&self) -> Option<&Claim> {
        self.claim.as_ref().filter(|_| heaviest(&self.faults) == Some(Weight::Wish))
    }

    /// What of the statement it will account for when it is mended. Of one that is no claim yet nobody knows what it will
    /// ask for.
    pub(super) fn account(&self) -> Option<Account<'_>> {
        let says = self.shown.as_str();
        let unknown =
            || Some(Account { quote: self.quote.clone()?, says, asks: says, kind: AccountKind::Claim });
        self.claim.as_ref().map(Claim::account).or_else(unknown)
    }
}

/// A part of the statement that will not be verified.
#[derive(Clone, Debug, Eq)]
pub(in crate::verify) struct Part {
    /// Where it stands; `None` where it does not stand in the statement.
    pub(in crate::verify) range: Option<Range<usize>>,
    /// Its words where it has no place. Of a duplicate of which a claim was made, what that says.
    pub(in crate::verify) shown: String,
    pub(in crate::verify) reason: SkipReason,
}

/// The same place is the same part, whatever was made of it.
impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        let is_same_place = self.range == other.range && (self.range.is_some() || self.shown == other.shown);
        is_same_place && self.reason == other.reason
    }
}

impl Part {
    pub(super) const fn placed(range: Range<usize>, reason: SkipReason) -> Self {
        Self { range: Some(range), shown: String::new(), reason }
    }
}

/// What of a section is settled when a draft is reviewed.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) claims: Vec<Claim>,
    pub(super) skipped: Vec<Part>,
}

impl Kept {
    /// Skips a part, unless nothing is known of it.
    pub(super) fn skip(&mut self, range: Option<Range<usize>>, shown: String, reason: SkipReason) {
        if range.is_some() || !shown.is_empty() {
            self.skipped.push(Part { range, shown, reason });
        }
    }
}

/// Reviews the claims of a section; those that say what one of the `kept` says are left out.
pub(super) fn review(statement: &Statement<'_>, section: &Section, draft: Draft, kept: &Kept) -> Review {
    let mut reviewer = Reviewer::new(statement, section, kept);
    let chars = statement.text(&section.range).chars().count();
    let most = (chars / CHARS_PER_DRAFT).clamp(*DRAFTS.start(), *DRAFTS.end());
    for item in draft.unreadable.into_iter().take(most) {
        let faults = vec![Fault::new(Weight::Form, format!("claims[{}]{}", item.at, item.problem))];
        let quote = reviewer.place(&item.quote, "");
        let shown = shown(&item.quote);
        reviewer.review.faulty.push(Faulty { shown, quote, claim: None, faults });
    }
    for claim in draft.claims.iter().take(most) {
        reviewer.add(claim);
    }
    // Skipped parts stand anywhere between the claims.
    reviewer.from = section.range.start;
    for claim in draft.claims.iter().skip(most) {
        let range = statement.finder().find(&claim.quote, section.range.clone(), 0);
        let part = range.map(|range| Part::placed(range, SkipReason::OverLimit));
        let is_new = |part: &Part| !reviewer.review.skipped.contains(part);
        if let Some(part) = part.filter(is_new) {
            reviewer.review.skipped.push(part);
        }
    }
    for part in draft.skipped.into_iter().take(most) {
        if let Some(range) = reviewer.place(&part.quote, "").filter(|range| !statement.states_nothing(range))
        {
            reviewer.review.skipped.push(Part::placed(range, part.reason));
        }
    }
    reviewer.review
}

struct Reviewer<'s> {
    statement: &'s Statement<'s>,
    section: &'s Section,
    kept: &'s Kept,
    /// Where the next quote is looked for first: claims come in the order of the text.
    from: usize,
    /// Kept claims by what they say, and by their question and answer.
    kept_said: HashMap<String, &'s Claim>,
    kept_asked: HashMap<String, &'s Claim>,
    /// What claims of this draft say that can be asked about, and the first of each question and answer.
    said: HashSet<String>,
    asked: HashMap<String, Claim>,
    review: Review,
}

impl<'s> Reviewer<'s> {
    fn new(statement: &'s Statement<'s>, section: &'s Section, kept: &'s Kept) -> Self {
        let from = section.range.start;
        Self {
            statement,
            section,
            kept,
            from,
            kept_said: kept
                .claims
                .iter()
                .map(|claim| (saying(&claim.text, claim.claimed()), claim))
                .collect(),
            kept_asked: kept.claims.iter().map(|claim| (asking(claim), claim)).collect(),
            said: HashSet::new(),
            asked: HashMap::new(),
            review: Review::default(),
        }
    }

    /// Where a quote stands. Of several places one that is a statement, no heading that says the same; then the one whose
    /// sentence has most of what the claim says; of equal ones one that nothing else quotes; then the first from where the
    /// quote before it stands.
    fn place(&mut self, quote: &str, claim: &str) -> Option<Range<usize>> {
        let (statement, section) = (self.statement, &self.section.range);
        let quote = Quote::new(quote)?;
        let all = |range: Range<usize>| {
            let places = statement.finder().places(&quote, &range, MAX_PLACES).into_iter();
            places.filter(|place| !place.is_empty())
        };
        let mut places: Vec<Range<usize>> = all(self.from..section.end).collect();
        if self.from > section.start {
            places.extend(all(section.clone()).take_while(|place| place.start < self.from));
        }
        if places.len() > 1 {
            let from = self.from;
            let mut fit =
                (!claim.is_empty()).then(|| Fit::new(&statement.document, statement.finder(), claim));
            let rank = |place: &Range<usize>| {
                let fit = fit.as_mut().map_or(0, |fit| fit.of(place));
                let states = !statement.states_nothing(place);
                (states, fit, !self.is_quoted(place), place.start >= from, Reverse(place.start))
            };
            let best = places.iter().cloned().max_by_key(rank);
            places.clear();
            places.extend(best);
        }
        let place = places.pop()?;
        self.from = place.start;
        Some(place)
    }

    /// Whether a sentence at a place is quoted already.
    fn is_quoted(&self, place: &Range<usize>) -> bool {
        let sentences = &self.statement.document.sentences()[self.statement.document.sentences_of(place)];
        let parts = self.review.skipped.iter().chain(&self.kept.skipped);
        let claims = self.review.sound.iter().chain(&self.kept.claims).map(|claim| &claim.quote);
        let faulty = self.review.faulty.iter().filter_map(|faulty| faulty.quote.as_ref());
        let mut quotes = claims.chain(faulty).chain(parts.filter_map(|part| part.range.as_ref()));
        quotes.any(|quote| sentences.iter().any(|sentence| overlap(quote, &sentence.range)))
    }

    fn add(&mut self, draft: &ClaimDraft) {
        let shown = shown(if text::is_blank(&draft.claim) { &draft.question } else { &draft.claim });
        let place = self.place(&draft.quote, &draft.claim);
        if let Some(place) = place.as_ref().filter(|place| self.statement.states_nothing(place)) {
            let part = Part::placed(place.clone(), SkipReason::NoClaim);
            let is_known = self.kept.skipped.contains(&part) || self.review.skipped.contains(&part);
            self.review.skipped.extend((!is_known).then_some(part));
            return;
        }
        let repeated = self.kept_said.get(&saying(&draft.claim, &draft.claimed_answer));
        let repeated = repeated.map(|kept| kept.quote.clone());
        if let Some(kept) = &repeated
            && place.as_ref().is_none_or(|place| overlap(place, kept))
        {
            return;
        }
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
        // What it quotes may say something else than the claim that it repeats.
        let differs = faults.iter().any(|fault| matches!(fault.weight, Weight::Soft | Weight::Hard));
        if let Some(kept) = repeated.filter(|_| !differs) {
            return self.repeat(quote, shown, &kept);
        }
        if let Some(claim) = &claim {
            match self.compared(claim) {
                Compared::Repeats(_) if differs => {}
                Compared::Repeats(kept) => return self.repeat(quote, shown, &kept),
                Compared::Clashes => faults.push(asked_of_another()),
                Compared::IsNew => {}
            }
        }
        match claim {
            Some(claim) if faults.is_empty() => self.review.sound.push(claim),
            claim => self.review.faulty.push(Faulty { shown, quote: place, claim, faults }),
        }
    }

    /// Leaves a claim out that says what a kept one says, whose quote stands at `kept`. What the text says twice is a part
    /// of its own.
    fn repeat(&mut self, place: Range<usize>, says: String, kept: &Range<usize>) {
        if !overlap(&place, kept) {
            let part = Part { range: Some(place), shown: says, reason: SkipReason::Duplicate };
            self.review.skipped.push(part);
        }
    }

    /// How a claim compares with those that are there. Of two that clash the earlier is at fault as well, unless it is kept.
    fn compared(&mut self, claim: &Claim) -> Compared {
        let key = asking(claim);
        if let Some(kept) = self.kept_asked.get(&key) {
            match likeness(self.statement.finder(), &claim.text, &kept.text) {
                Likeness::Same => return Compared::Repeats(kept.quote.clone()),
                Likeness::Different => return Compared::Clashes,
                Likeness::Near => {}
            }
        }
        if !self.said.insert(saying(&claim.text, claim.claimed())) {
            return Compared::Repeats(0..0);
        }
        let Some(earlier) = self.asked.get(&key) else {
            self.asked.insert(key, claim.clone());
            return Compared::IsNew;
        };
        match likeness(self.statement.finder(), &claim.text, &earlier.text) {
            Likeness::Same => Compared::Repeats(0..0),
            Likeness::Near => Compared::IsNew,
            Likeness::Different => {
                let earlier = earlier.id.clone();
                self.blame(&earlier);
                Compared::Clashes
            }
        }
    }

    /// Finds fault with a claim of this draft.
    fn blame(&mut self, id: &str) {
        if let Some(at) = self.review.sound.iter().position(|claim| claim.id == id) {
            let claim = self.review.sound.remove(at);
            self.review.faulty.push(Faulty {
                shown: claim.text.clone(),
                quote: Some(claim.quote.clone()),
                claim: Some(claim),
                faults: vec![asked_of_another()],
            });
        } else if let Some(faulty) =
            self.review.faulty.iter_mut().find(|faulty| faulty.claim.as_ref().is_some_and(|one| one.id == id))
            && !faulty.faults.contains(&asked_of_another())
        {
            faulty.faults.push(asked_of_another());
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
        let found = anchors::check(&self.statement.document, self.statement.finder(), &anchored);
        faults.extend(found.iter().map(Fault::from));
        faults.extend(self.is_wide(&quote).then(|| Fault::new(Weight::Wish, WIDE_QUOTE)));
        let number = self.statement.next_number();
        let seed = self.statement.seed(number, [&text, &question, &claimed]);
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

    /// Whether a quote holds more sentences than a claim can need. Rows of a table are none.
    fn is_wide(&self, quote: &Range<usize>) -> bool {
        let sentences = &self.statement.document.sentences()[self.statement.document.sentences_of(quote)];
        let prose = sentences.iter().filter(|sentence| sentence.kind == Kind::Prose);
        prose.count() > MAX_QUOTED_SENTENCES
    }
}

/// How a claim compares with those that are there.
enum Compared {
    IsNew,
    /// One says it; the place of its quote, if that need not be told apart from the claim's own.
    Repeats(Range<usize>),
    /// One says something else and has its question and answer.
    Clashes,
}

const WIDE_QUOTE: &str =
    "the quote is longer than it need be: quote the one sentence, or the part of it, that says this";

fn asked_of_another() -> Fault {
    Fault::new(
        Weight::Form,
        "another claim that says something else has the same question and answer: name in claim and question what they \
         are about",
    )
}

/// A claim's text, and what of it is asked for, in the form in which texts are compared: one that holds two numbers is
/// asked about twice.
pub(super) fn saying(text: &str, claimed: &str) -> String {
    format!("{}\n{}", normal_form::small(text), normal_form::small(claimed))
}

/// A claim's question and answer in the form in which texts are compared.
pub(super) fn asking(claim: &Claim) -> String {
    format!("{}\n{}", normal_form::small(&claim.question), normal_form::small(claim.claimed()))
}

/// Whether two places have something in common.
pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// A part in the words of a model, for people.
fn shown(text: &str) -> String {
    text::shortened(&text::one_line(text), MAX_CLAIM_CHARS)
}
