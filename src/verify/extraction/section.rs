//! One section: extraction, review, audit, and one round of mending.
//!
//! The extractor is called first, then its fallbacks in order. A refusal is not routed around: a provider that declines
//! to process a statement has answered. If nothing of what a model extracted can be asked about, that may be the model's
//! fault: the fallbacks are called as well, and only if none of them does better is it put down to the statement.
//!
//! All faults go back to the extractor once, together: those of the code, those of the auditor, and what is in no claim.
//! What it upholds against doubts, or mends after one, is put to another model of the panel. That model's word decides
//! whether a part is `unfaithful`; without it the claim stays, `contested` if the extractor changed nothing.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tracing::{debug, warn};

use super::audit::{self, Audit, Kind};
use super::draft::{self, Draft};
use super::fault::{Fault, Weight, heaviest};
use super::feed::Feed;
use super::review::{Faulty, Part, Review, review};
use super::statement::{Statement, passage};
use crate::api::verify::SkipReason;
use crate::inference::{Failure, Message, Role};
use crate::usage::Purpose;
use crate::verify::calls::{Calls, IfLimited, Task};
use crate::verify::claim::Claim;
use crate::verify::document::{Section, coverage};
use crate::verify::prompts;
use crate::verify::{PanelSettings, text};

/// Room for a claim in an extractor's answer, in bytes: all texts at their caps ([`super::review`]), in 4-byte
/// characters.
const MAX_CLAIM_BYTES: usize = 48 * 1024;
/// The longest answer to a section, in bytes. No honest one comes near.
const MAX_ANSWER_BYTES: usize = 60 * MAX_CLAIM_BYTES;
/// The most missing passages that are sent back; the others are most likely of the same kind.
const MAX_MISSING: usize = 60;
/// The longest answer that is quoted to its extractor, in characters.
const MAX_QUOTED_CHARS: usize = 60_000;

/// What all sections of a statement share.
pub(super) struct Desk<'a> {
    pub(super) calls: &'a Calls<'a>,
    pub(super) settings: &'a PanelSettings,
    pub(super) statement: &'a Statement<'a>,
    pub(super) feed: &'a Feed,
}

/// What was made of a section.
#[derive(Debug, Default)]
pub(super) struct Extracted {
    pub(super) claims: Vec<Claim>,
    pub(super) skipped: Vec<Part>,
    /// Whether an auditor has seen it.
    pub(super) audited: bool,
}

impl Extracted {
    /// Whether another model might do better: nothing can be asked about, though something should have been.
    pub(super) fn is_unsound(&self) -> bool {
        self.claims.is_empty() && self.skipped.iter().any(|part| part.reason.is_unchecked())
    }
}

/// A claim that somebody doubts.
struct Doubt {
    claim: Claim,
    /// Whether the extractor mended it.
    mended: bool,
}

impl Desk<'_> {
    /// What a model makes of a section.
    ///
    /// # Errors
    /// The failure of its first call; after that, the section is done as far as it goes.
    pub(super) async fn attempt(
        &self,
        model: &str,
        has_fallback: bool,
        section: &Section,
    ) -> Result<Extracted, Failure> {
        let statement = self.statement;
        let shown = statement.passage(section);
        let calls = self.calls(has_fallback);
        let if_limited = if has_fallback { IfLimited::Fail } else { IfLimited::Wait { again: false } };
        let prompt = || prompts::extraction(statement.job, statement.fences, passage(&shown));
        let cut_off = Mutex::new(None);
        let read = |answer: &str| {
            let draft = draft::read(answer, MAX_ANSWER_BYTES);
            let draft = draft.inspect_err(|_| {
                let complete = draft::read_cut_off(answer, MAX_ANSWER_BYTES);
                if let Some(complete) = complete {
                    *cut_off.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some((complete, answer.to_owned()));
                }
            })?;
            Ok((draft, answer.to_owned()))
        };
        let first = calls.structured(model, Purpose::Extraction, if_limited, || Some(prompt()), read).await;
        let (draft, answer) = match first {
            Ok(first) => first,
            Err(failure) if failure == Failure::Refused => return Err(failure),
            Err(failure) => cut_off.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or(failure)?,
        };
        let first = review(statement, section, draft, &[]);
        first.sound.iter().for_each(|claim| self.feed.ask(claim));
        let audit = self.first_audit(section, &first).await;
        let audited = audit.is_some();
        let (mut kept, to_mend) = self.sort(section, first, audit.unwrap_or_default());
        if to_mend.is_nothing() {
            return Ok(Extracted { claims: kept.claims, skipped: kept.skipped, audited });
        }
        debug!(verification = %statement.job.id, model, faults = to_mend.faulty.len(), gaps = to_mend.missing.len(), "an extraction goes back");
        let message = to_mend.message(statement);
        let prompt = || {
            let mut chat = prompt();
            let quoted = text::shortened(&text::block(&answer), MAX_QUOTED_CHARS);
            chat.messages.push(Message { role: Role::Assistant, content: quoted.into() });
            chat.messages.push(Message { role: Role::User, content: message.clone().into() });
            Some(chat)
        };
        let read = |answer: &str| {
            draft::read(answer, MAX_ANSWER_BYTES)
                .or_else(|problem| draft::read_cut_off(answer, MAX_ANSWER_BYTES).ok_or(problem))
        };
        let if_limited = IfLimited::Wait { again: false };
        let second = calls.structured(model, Purpose::Extraction, if_limited, prompt, read).await;
        let second = second.unwrap_or_else(|failure| {
            warn!(verification = %statement.job.id, model, code = failure.code(), "an extraction was not mended");
            Draft::default()
        });
        let second = review(statement, section, second, &kept.claims);
        self.mend(model, section, &mut kept, to_mend, second).await;
        Ok(Extracted { claims: kept.claims, skipped: kept.skipped, audited })
    }

    fn calls(&self, has_fallback: bool) -> Calls<'_> {
        Calls { task: Task::Extraction { has_fallback }, ..*self.calls }
    }

    /// What the auditor says to a first draft; `None` if there is none, or it gave no answer.
    async fn first_audit(&self, section: &Section, first: &Review) -> Option<Audit> {
        let auditor = self.settings.auditor.as_deref()?;
        let claims: Vec<&Claim> = first.sound.iter().collect();
        let aside = first.faulty.iter().filter_map(|faulty| faulty.quote.as_ref());
        let aside = aside.chain(first.skipped.iter().filter_map(|part| part.range.as_ref()));
        self.audit(auditor, section, &claims, aside).await
    }

    /// Puts claims and the parts set `aside` to a model.
    async fn audit<'r>(
        &self,
        model: &str,
        section: &Section,
        claims: &[&Claim],
        aside: impl Iterator<Item = &'r Range<usize>>,
    ) -> Option<Audit> {
        let statement = self.statement;
        let shown = statement.passage(section);
        let parts: Vec<&str> = aside.map(|range| statement.text(range)).collect();
        let prompt =
            || Some(prompts::audit(statement.job, statement.fences, passage(&shown), claims, &parts));
        let read = |answer: &str| audit::read(answer, claims.len());
        let calls = self.calls(false);
        let audit = calls.structured(model, Purpose::Extraction, IfLimited::Fail, prompt, read).await;
        audit
            .inspect_err(|failure| {
                warn!(verification = %statement.job.id, model, code = failure.code(), "an audit gave no answer");
            })
            .ok()
    }

    /// Sorts a first draft into what is kept and what goes back.
    fn sort(&self, section: &Section, first: Review, audit: Audit) -> (Kept, ToMend) {
        let mut to_mend = ToMend::default();
        let mut kept = Kept { claims: Vec::new(), skipped: first.skipped };
        let mut objections: Vec<Vec<audit::Objection>> = vec![Vec::new(); first.sound.len()];
        for objection in audit.objections {
            objections[objection.claim].push(objection);
        }
        for (claim, objections) in first.sound.into_iter().zip(objections) {
            match self.after_objections(claim, objections, &mut to_mend) {
                Outcome::Keep(claim) => kept.claims.push(claim),
                Outcome::Mend(faulty) => to_mend.faulty.push(faulty),
            }
        }
        to_mend.faulty.extend(first.faulty);
        let touched = kept.touched().chain(to_mend.faulty.iter().filter_map(|faulty| faulty.quote.clone()));
        let touched: Vec<Range<usize>> = touched.collect();
        let texts: Vec<&str> = kept
            .claims
            .iter()
            .map(|claim| claim.text.as_str())
            .chain(to_mend.faulty.iter().map(|faulty| faulty.shown.as_str()))
            .collect();
        let statement = self.statement;
        let aside: Vec<&str> = kept
            .skipped
            .iter()
            .filter_map(|part| part.range.as_ref())
            .map(|range| statement.text(range))
            .collect();
        let gaps = coverage(
            &statement.document,
            &statement.finder,
            section.sentences.clone(),
            &touched,
            &texts,
            &aside,
        );
        to_mend
            .missing
            .extend(gaps.iter().map(|gap| statement.document.sentences()[gap.sentence].range.clone()));
        for quote in audit.missing {
            let found = statement.finder.find(&quote, section.range.clone(), 0);
            if let Some(range) = found.filter(|found| !to_mend.missing.iter().any(|gap| overlap(gap, found)))
            {
                to_mend.doubted_gaps.push(range.clone());
                to_mend.missing.push(range);
            }
        }
        to_mend.missing.truncate(MAX_MISSING);
        (kept, to_mend)
    }

    /// What an auditor's objections make of a claim that the code passed.
    fn after_objections(
        &self,
        mut claim: Claim,
        objections: Vec<audit::Objection>,
        to_mend: &mut ToMend,
    ) -> Outcome {
        let mut faults = Vec::new();
        let mut is_changed = false;
        for objection in objections {
            if matches!(objection.kind, Kind::Same | Kind::Overlap) {
                // Of options that say the same, one is enough: the claimed one, if it is among them.
                let rivals: Vec<usize> =
                    objection.options.iter().copied().filter(|&at| at != Claim::CLAIMED).collect();
                let kept = usize::from(rivals.len() == objection.options.len());
                let dropped = rivals.get(kept..).unwrap_or_default();
                if dropped.len() < claim.rivals().len() {
                    is_changed |= !dropped.is_empty();
                    claim = claim.without_rivals(dropped);
                    continue;
                }
            }
            let weight = match objection.kind {
                Kind::Same | Kind::Overlap | Kind::Leak => Weight::Form,
                _ => Weight::Soft,
            };
            faults.push(Fault::new(weight, objection.kind.advice()));
            if !objection.remark.is_empty() {
                to_mend.remarks.push(format!("{}: {}", claim.text, objection.remark));
            }
        }
        if faults.is_empty() {
            if is_changed {
                self.feed.withdraw(&claim);
                claim = claim.renumbered(self.statement.next_number());
                self.feed.ask(&claim);
            }
            return Outcome::Keep(claim);
        }
        self.feed.withdraw(&claim);
        Outcome::Mend(Faulty {
            shown: claim.text.clone(),
            quote: Some(claim.quote.clone()),
            claim: Some(claim),
            faults,
        })
    }

    /// Adds what a second answer makes of the faults of the first, and accounts for all the rest.
    async fn mend(&self, model: &str, section: &Section, kept: &mut Kept, to_mend: ToMend, second: Review) {
        kept.skipped.extend(second.skipped);
        let doubted = |claim: &Claim| {
            to_mend.faulty.iter().find(|faulty| {
                heaviest(&faulty.faults) == Some(Weight::Soft)
                    && faulty.quote.as_ref().is_some_and(|quote| overlap(quote, &claim.quote))
            })
        };
        let mut doubts = Vec::new();
        let mut answered: Vec<Range<usize>> = Vec::new();
        for claim in second.sound {
            answered.push(claim.quote.clone());
            match doubted(&claim) {
                None => self.keep(kept, claim),
                Some(before) => {
                    let mended = before.claim.as_ref().is_none_or(|before| before.text != claim.text);
                    doubts.push(Doubt { claim, mended });
                }
            }
        }
        for faulty in second.faulty {
            answered.extend(faulty.quote.clone());
            match (heaviest(&faulty.faults), faulty.claim) {
                (Some(Weight::Wish), Some(claim)) => self.keep(kept, claim),
                (Some(Weight::Soft), Some(claim)) => doubts.push(Doubt { claim, mended: false }),
                (weight, _) => kept.skip(faulty.quote, faulty.shown, unchecked(weight)),
            }
        }
        // What the extractor neither mended nor set aside.
        let aside: Vec<Range<usize>> = kept.skipped.iter().filter_map(|part| part.range.clone()).collect();
        for faulty in to_mend.faulty {
            let is_answered =
                |quote: &Range<usize>| answered.iter().chain(&aside).any(|range| overlap(range, quote));
            if faulty.quote.as_ref().is_some_and(is_answered) {
                continue;
            }
            match (heaviest(&faulty.faults), faulty.claim) {
                (Some(Weight::Wish), Some(claim)) => self.keep(kept, claim),
                (Some(Weight::Soft), Some(claim)) => doubts.push(Doubt { claim, mended: false }),
                (weight, _) => kept.skip(faulty.quote, faulty.shown, unchecked(weight)),
            }
        }
        let open_gaps: Vec<Range<usize>> = to_mend
            .doubted_gaps
            .into_iter()
            .filter(|gap| !answered.iter().chain(&aside).any(|range| overlap(range, gap)))
            .collect();
        self.confirm(model, section, kept, doubts, open_gaps).await;
        for sentence in self.untouched(section, kept) {
            kept.skipped.push(Part::placed(sentence, SkipReason::NotExtracted));
        }
    }

    /// Keeps a claim that is asked about from now on.
    fn keep(&self, kept: &mut Kept, claim: Claim) {
        self.feed.ask(&claim);
        kept.claims.push(claim);
    }

    /// Asks another model about claims that are doubted, and about gaps that only the auditor sees.
    async fn confirm(
        &self,
        extractor: &str,
        section: &Section,
        kept: &mut Kept,
        doubts: Vec<Doubt>,
        gaps: Vec<Range<usize>>,
    ) {
        if doubts.is_empty() && gaps.is_empty() {
            return;
        }
        let judge = self.settings.judge(extractor);
        let claims: Vec<&Claim> = doubts.iter().map(|doubt| &doubt.claim).chain(&kept.claims).collect();
        let aside = kept.skipped.iter().filter_map(|part| part.range.as_ref());
        let audit = match judge {
            Some(judge) => self.audit(judge, section, &claims, aside).await,
            None => None,
        };
        let audit = audit.unwrap_or_default();
        let is_confirmed = |at: usize| {
            let meaning = |kind: Kind| !matches!(kind, Kind::Same | Kind::Overlap | Kind::Leak);
            audit.objections.iter().any(|objection| objection.claim == at && meaning(objection.kind))
        };
        let confirmed: Vec<bool> = (0..doubts.len()).map(is_confirmed).collect();
        for (mut doubt, confirmed) in doubts.into_iter().zip(confirmed) {
            if confirmed {
                kept.skipped.push(Part::placed(doubt.claim.quote, SkipReason::Unfaithful));
                continue;
            }
            doubt.claim.contested = !doubt.mended;
            self.keep(kept, doubt.claim);
        }
        let finder = &self.statement.finder;
        let missing: Vec<Range<usize>> =
            audit.missing.iter().filter_map(|quote| finder.find(quote, section.range.clone(), 0)).collect();
        for gap in gaps.into_iter().filter(|gap| missing.iter().any(|range| overlap(range, gap))) {
            kept.skipped.push(Part::placed(gap, SkipReason::NotExtracted));
        }
    }

    /// The sentences that no quote touches.
    fn untouched(&self, section: &Section, kept: &Kept) -> Vec<Range<usize>> {
        let touched: Vec<Range<usize>> = kept.touched().collect();
        let gaps = coverage(
            &self.statement.document,
            &self.statement.finder,
            section.sentences.clone(),
            &touched,
            &[],
            &[],
        );
        let untouched = gaps.into_iter().filter(|gap| !gap.touched);
        untouched.map(|gap| self.statement.document.sentences()[gap.sentence].range.clone()).collect()
    }
}

/// What becomes of a claim that an auditor objects to.
enum Outcome {
    Keep(Claim),
    Mend(Faulty),
}

/// What is settled of a section.
struct Kept {
    claims: Vec<Claim>,
    skipped: Vec<Part>,
}

impl Kept {
    fn touched(&self) -> impl Iterator<Item = Range<usize>> {
        let claims = self.claims.iter().map(|claim| claim.quote.clone());
        claims.chain(self.skipped.iter().filter_map(|part| part.range.clone()))
    }

    fn skip(&mut self, range: Option<Range<usize>>, shown: String, reason: SkipReason) {
        if range.is_some() || !shown.is_empty() {
            self.skipped.push(Part { range, shown, reason });
        }
    }
}

/// What goes back to the extractor.
#[derive(Default)]
struct ToMend {
    faulty: Vec<Faulty>,
    /// What an auditor wrote.
    remarks: Vec<String>,
    /// Passages that are in no claim and no skipped part.
    missing: Vec<Range<usize>>,
    /// Of them, those that only the auditor misses.
    doubted_gaps: Vec<Range<usize>>,
}

impl ToMend {
    const fn is_nothing(&self) -> bool {
        self.faulty.is_empty() && self.missing.is_empty()
    }

    fn message(&self, statement: &Statement<'_>) -> String {
        let faults = self.faulty.iter().map(|faulty| {
            let advice: Vec<&str> = faulty.faults.iter().map(|fault| fault.advice.as_str()).collect();
            (faulty.shown.as_str(), advice.join("; "))
        });
        let missing: Vec<&str> = self.missing.iter().map(|range| statement.text(range).trim()).collect();
        prompts::faults(statement.fences, faults, &self.remarks, &missing)
    }
}

/// The reason for which a part is skipped whose claim has a fault of this weight.
const fn unchecked(weight: Option<Weight>) -> SkipReason {
    match weight {
        Some(Weight::Form | Weight::Wish) | None => SkipReason::NotExtracted,
        Some(Weight::Hard | Weight::Soft) => SkipReason::Unfaithful,
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}
