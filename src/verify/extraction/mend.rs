//! What becomes of a section's faults after the extractor's second answer.
//!
//! What must hold: nothing of the second answer passes that only its author has seen. A new or changed claim and a part
//! that is now skipped are put to another model, together with what is doubted and what may be missing; without its word
//! a doubted claim is `contested`, a passage that may be missing is `not_extracted`, and the section is not audited. A
//! claim with a hard fault is answered by a claim alone, never by skipping its passage. The contract has a gap go back once
//! and then asks for no more than a touch; here a sentence of which a number is still in nothing is `not_extracted`, since
//! half of it was not checked, and so is one of which a name is, unless the other model finds nothing missing in it. A
//! claim that takes a number for granted which none asks for is doubted: which number of a sentence is a condition or
//! part of a name (the 1996 Olympics) no code can tell.

use std::collections::HashSet;
use std::ops::Range;

use super::audit::{Audit, Objection};
use super::fault::{Weight, heaviest};
use super::review::{Faulty, Kept, Part, Review, overlap};
use super::section::{Desk, Extracted, ToMend, asides, split_off_alike};
use crate::api::verify::SkipReason;
use crate::verify::claim::Claim;
use crate::verify::document::{Gap, Section, holds_most};
use crate::verify::receipt;

/// The mending of a section.
pub(super) struct Mending<'d, 'a> {
    pub(super) desk: &'d Desk<'a>,
    pub(super) section: &'d Section,
    pub(super) extractor: &'d str,
    /// The model that has audited the first answer.
    pub(super) auditor: Option<&'d str>,
    pub(super) kept: Kept,
    pub(super) to_mend: ToMend,
}

/// A claim that is kept, if nothing more is found against it.
struct MendedClaim {
    claim: Claim,
    standing: Standing,
    /// Whether the panel is asked about it already.
    is_asked: bool,
}

/// What is known of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The auditor has seen it as it is, and found no fault.
    Approved,
    /// No second model has seen it.
    New,
    /// The code or the auditor doubts it, or doubted what it was made from.
    Doubted {
        /// Whether the extractor changed what it says.
        mended: bool,
    },
}

/// What the second answer leaves to be found out.
struct Open {
    candidates: Vec<MendedClaim>,
    /// How many of them, the first, are put to another model.
    examined: usize,
    /// Sentences of which nothing, or not each number, is in anything.
    lost: Vec<Range<usize>>,
    /// Passages that may be missing.
    doubtful: Vec<Range<usize>>,
    /// What went back, and what is skipped since.
    changed: Vec<Range<usize>>,
    /// Whether the second answer has something that only its author has seen.
    has_unseen: bool,
}

/// What another model says.
struct Heard {
    audit: Audit,
    /// Whether it is neither extractor nor auditor, so that its word decides between them.
    is_judge: bool,
}

impl Mending<'_, '_> {
    /// Adds what the second answer makes of the faults of the first, and accounts for all the rest.
    pub(super) async fn finish(mut self, second: Review) -> Extracted {
        let open = self.open(second);
        let heard = self.examine(&open).await;
        let is_whole = heard.as_ref().is_some_and(|heard| heard.audit.is_whole());
        let audited = self.auditor.is_some() && (is_whole || !open.has_unseen);
        self.decide(open, heard);
        let Kept { claims, skipped } = self.kept;
        Extracted { claims, skipped: without_covered(skipped), audited }
    }

    fn open(&mut self, mut second: Review) -> Open {
        second.skipped.retain(|part| !self.kept.skipped.contains(part));
        let faulty = std::mem::take(&mut self.to_mend.faulty);
        let mut changed = self.to_mend.missing.clone();
        changed.extend(faulty.iter().filter_map(|faulty| faulty.quote.clone()));
        changed.extend(second.skipped.iter().filter_map(|part| part.range.clone()));
        let mut answers: Vec<(Option<Range<usize>>, String)> = Vec::new();
        let mut candidates = Vec::new();
        for claim in second.sound {
            answers.push((Some(claim.quote.clone()), claim.text.clone()));
            candidates.push(self.candidate(&faulty, claim));
        }
        for again in second.faulty {
            answers.push((again.quote.clone(), again.shown.clone()));
            match (heaviest(&again.faults), again.claim) {
                (Some(Weight::Wish), Some(claim)) => candidates.push(self.candidate(&faulty, claim)),
                (Some(Weight::Soft), Some(claim)) => candidates.push(upheld(claim)),
                (weight, _) => self.kept.skip(again.quote, again.shown, unchecked(weight)),
            }
        }
        for faulty in faulty {
            let weight = heaviest(&faulty.faults);
            let is_skipped = weight != Some(Weight::Hard)
                && faulty.quote.as_ref().is_some_and(|quote| self.is_set_aside(&second.skipped, quote));
            if is_skipped || answers.iter().any(|answer| is_answer(answer, &faulty)) {
                continue;
            }
            match (weight, faulty.claim) {
                (Some(Weight::Wish), Some(claim)) => candidates.push(self.candidate(&[], claim)),
                (Some(Weight::Soft), Some(claim)) => candidates.push(upheld(claim)),
                (weight, _) => self.kept.skip(faulty.quote, faulty.shown, unchecked(weight)),
            }
        }
        let has_unseen = self.auditor.is_some()
            && (!second.skipped.is_empty()
                || candidates.iter().any(|candidate| candidate.standing == Standing::New));
        self.kept.skipped.extend(second.skipped);
        let (lost, mut doubtful) = self.gaps(&mut candidates);
        // What is put to another model stands first in its list.
        let is_examined = |candidate: &MendedClaim| match candidate.standing {
            Standing::Approved => false,
            Standing::New => self.auditor.is_some(),
            Standing::Doubted { .. } => true,
        };
        candidates.sort_by_key(|candidate| !is_examined(candidate));
        let examined = candidates.iter().filter(|candidate| is_examined(candidate)).count();
        let quotes: Vec<&Range<usize>> = answers.iter().filter_map(|(quote, _)| quote.as_ref()).collect();
        let is_open = |gap: &Range<usize>| !quotes.iter().any(|quote| overlap(quote, gap));
        let gaps = self.to_mend.auditor_gaps.iter().filter(|gap| is_open(gap));
        doubtful.extend(gaps.filter(|gap| !lost.iter().any(|lost| overlap(lost, gap))).cloned());
        Open { candidates, examined, lost, doubtful, changed, has_unseen }
    }

    /// What is known of a claim of the second answer, given what went back.
    fn candidate(&self, faulty: &[Faulty], claim: Claim) -> MendedClaim {
        let is_same = |seen: &Claim| {
            seen.text == claim.text && seen.question == claim.question && seen.options() == claim.options()
        };
        let doubted = faulty.iter().find(|faulty| {
            heaviest(&faulty.faults) == Some(Weight::Soft)
                && faulty.quote.as_ref().is_some_and(|quote| overlap(quote, &claim.quote))
        });
        let standing = if let Some(before) = doubted {
            let is_reworded = |before: &Claim| {
                words(&before.text) != words(&claim.text) || words(before.claimed()) != words(claim.claimed())
            };
            Standing::Doubted { mended: before.claim.as_ref().is_none_or(is_reworded) }
        } else if self.to_mend.approved.iter().any(is_same) {
            Standing::Approved
        } else {
            Standing::New
        };
        MendedClaim { claim, standing, is_asked: false }
    }

    /// Whether a part was set aside that holds most of what a quote says.
    fn is_set_aside(&self, skipped: &[Part], quote: &Range<usize>) -> bool {
        let finder = self.desk.statement.finder();
        let mut parts = skipped.iter().filter(|part| !part.reason.is_unchecked());
        parts.any(|part| {
            part.range.as_ref().is_some_and(|range| overlap(range, quote) && holds_most(finder, range, quote))
        })
    }

    /// The sentences that are lost, and those of which only names are in nothing. Claims that take a number for granted
    /// are doubted from here on.
    fn gaps(&mut self, candidates: &mut Vec<MendedClaim>) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let claims = self.kept.claims.iter().chain(candidates.iter().map(|candidate| &candidate.claim));
        let gaps = self.desk.gaps(self.section, claims.map(Claim::account), &self.kept.skipped);
        let presuming: HashSet<usize> = gaps.iter().flat_map(|gap| &gap.presuming).copied().collect();
        let is_lost = |gap: &&Gap| !gap.touched || !gap.values.is_empty();
        let is_open = |gap: &&Gap| !gap.names.is_empty() || gap.presuming.is_empty();
        let (lost, others): (Vec<_>, Vec<_>) = gaps.iter().partition(is_lost);
        let place = |gap: &Gap| self.desk.place(gap);
        let lost = lost.into_iter().map(place).collect();
        let named = others.into_iter().filter(is_open).map(place).collect();

        let kept = std::mem::take(&mut self.kept.claims);
        let first = kept.len();
        for (at, candidate) in candidates.iter_mut().enumerate() {
            if presuming.contains(&(first + at)) {
                candidate.standing = Standing::Doubted { mended: false };
            }
        }
        for (at, claim) in kept.into_iter().enumerate() {
            if presuming.contains(&at) {
                candidates.push(MendedClaim { is_asked: true, ..upheld(claim) });
            } else {
                self.kept.claims.push(claim);
            }
        }
        (lost, named)
    }

    /// Puts what is open to another model: one of the panel, or to the auditor what is new.
    async fn examine(&self, open: &Open) -> Option<Heard> {
        if open.examined == 0 && open.doubtful.is_empty() && !open.has_unseen {
            return None;
        }
        let claims = open.candidates.iter().map(|candidate| &candidate.claim);
        let claims: Vec<&Claim> = claims.chain(&self.kept.claims).collect();
        let aside: Vec<(&str, Range<usize>)> = asides(&self.kept.skipped).collect();
        for judge in self.desk.settings.judges(self.extractor) {
            if let Some(audit) =
                self.desk.audit(receipt::Task::Judging, judge, self.section, &claims, &aside).await
            {
                return Some(Heard { audit, is_judge: true });
            }
        }
        let auditor = self.auditor.filter(|_| open.has_unseen)?;
        let audit = self.desk.audit(receipt::Task::Judging, auditor, self.section, &claims, &aside).await?;
        Some(Heard { audit, is_judge: false })
    }

    fn decide(&mut self, open: Open, heard: Option<Heard>) {
        let is_judged = heard.as_ref().is_some_and(|heard| heard.is_judge);
        // What a judge does not name is not at fault only if all that it says can be read.
        let is_cleared = heard.as_ref().is_some_and(|heard| heard.is_judge && heard.audit.is_whole());
        let audit = heard.map(|heard| heard.audit).unwrap_or_default();
        for (at, MendedClaim { mut claim, standing, is_asked }) in open.candidates.into_iter().enumerate() {
            let objections = audit.objections.iter().filter(|objection| objection.claim == at);
            let objections: Vec<Objection> = objections.filter(|_| at < open.examined).cloned().collect();
            let is_unfaithful = objections.iter().any(|objection| !objection.kind.is_of_options());
            match standing {
                Standing::Doubted { mended } => {
                    if is_judged && is_unfaithful {
                        if is_asked {
                            self.desk.feed.withdraw(&claim);
                        }
                        self.kept.skip(Some(claim.quote), claim.text, SkipReason::Unfaithful);
                        continue;
                    }
                    claim.contested = !(is_cleared && mended);
                }
                _ if is_unfaithful => {
                    self.kept.skip(Some(claim.quote), claim.text, SkipReason::Unfaithful);
                    continue;
                }
                _ => {
                    let (alike, others) = split_off_alike(&claim, objections);
                    if !others.is_empty() {
                        self.kept.skip(Some(claim.quote), claim.text, SkipReason::NotExtracted);
                        continue;
                    }
                    claim = claim.without_rivals(&alike);
                }
            }
            if !is_asked {
                self.desk.feed.ask(&claim);
            }
            self.kept.claims.push(claim);
        }
        let missing = self.desk.missing(self.section, &audit, &self.kept.claims);
        let is_missing = |gap: &Range<usize>| !is_cleared || missing.iter().any(|range| overlap(range, gap));
        let mut gaps = open.lost;
        gaps.extend(open.doubtful.into_iter().filter(is_missing));
        for range in &missing {
            let has_changed = open.changed.iter().any(|changed| overlap(changed, range));
            if has_changed && !gaps.iter().any(|gap| overlap(gap, range)) {
                gaps.push(range.clone());
            }
        }
        self.kept.skipped.extend(gaps.into_iter().map(|gap| Part::placed(gap, SkipReason::NotExtracted)));
    }
}

/// A doubted claim that the extractor did not change.
const fn upheld(claim: Claim) -> MendedClaim {
    MendedClaim { claim, standing: Standing::Doubted { mended: false }, is_asked: false }
}

/// Whether a claim of the second answer stands for a faulty one of the first: it quotes the same passage, or says much the
/// same where that one's quote was not to be found.
fn is_answer((quote, says): &(Option<Range<usize>>, String), faulty: &Faulty) -> bool {
    match (quote, &faulty.quote) {
        (Some(quote), Some(faulty)) => overlap(quote, faulty),
        (None, Some(_)) => false,
        (_, None) => {
            let (one, other) = (words(says), words(&faulty.shown));
            let (one, other): (HashSet<_>, HashSet<_>) =
                (one.into_iter().collect(), other.into_iter().collect());
            !one.is_empty() && one.intersection(&other).count() * 2 >= one.len().max(other.len())
        }
    }
}

/// The words of a text in small letters, without what stands between them.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The parts without those that lie in one that was not checked.
fn without_covered(parts: Vec<Part>) -> Vec<Part> {
    let unchecked = parts.iter().filter(|part| part.reason.is_unchecked());
    let unchecked: Vec<Range<usize>> = unchecked.filter_map(|part| part.range.clone()).collect();
    let is_covered = |part: &Part| {
        !part.reason.is_unchecked()
            && part.range.as_ref().is_some_and(|range| {
                unchecked.iter().any(|whole| whole.start <= range.start && range.end <= whole.end)
            })
    };
    parts.into_iter().filter(|part| !is_covered(part)).collect()
}

/// The reason for which a part is skipped whose claim has a fault of this weight.
const fn unchecked(weight: Option<Weight>) -> SkipReason {
    match weight {
        Some(Weight::Form | Weight::Wish) | None => SkipReason::NotExtracted,
        Some(Weight::Hard | Weight::Soft) => SkipReason::Unfaithful,
    }
}
