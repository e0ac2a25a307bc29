//! One section: extraction, review, audit, and one round of mending.
//!
//! The extractor is called first, then its fallbacks in order. A refusal is not routed around: a provider that declines
//! to process a statement has answered. If nothing of what a model extracted can be asked about, that may be the
//! model's fault: the fallbacks are called as well, and only if none of them does better is it put down to the
//! statement.
//!
//! All faults go back to the extractor once, together: those of the code, those of the auditor, and what is in no
//! claim. What becomes of its second answer: see [`super::mend`].

use std::ops::Range;
use std::sync::Mutex;

use tracing::{debug, warn};

use super::audit::{self, Audit, Kind, Objection};
use super::draft::{self, Draft};
use super::fault::Fault;
use super::feed::Feed;
use super::mend::Mending;
use super::review::{Faulty, Kept, MAX_PLACES, Part, Review, overlap, review};
use super::statement::{Statement, passage};
use crate::api::verify::{SkipReason, Span as Position};
use crate::inference::{Answer, Failure, Message, Role};
use crate::lock::Lock;
use crate::traces::Span;
use crate::usage::Purpose;
use crate::verify::claim::Claim;
use crate::verify::document::{Account, AccountKind, Gap, Quote, Section, coverage, nearest};
use crate::verify::model_calls::calls::{Calls, IfLimited, Task};
use crate::verify::{PanelSettings, prompts, receipt, text};

/// Room for a claim in an extractor's answer, in bytes: all texts at their caps ([`super::review`]), in 4-byte
/// characters.
const MAX_CLAIM_BYTES: usize = 48 * 1024;
/// The longest answer to a section, in bytes. No honest one comes near.
const MAX_ANSWER_BYTES: usize = 60 * MAX_CLAIM_BYTES;
/// The most faults, remarks and missing passages that are sent back of each; the others are most likely of the same
/// kind.
const MAX_SENT_BACK: usize = 60;
/// The longest claim that is quoted in a fault, in characters.
const MAX_FAULTY_CHARS: usize = 400;
/// The longest answer that is quoted to its extractor, in characters.
const MAX_QUOTED_CHARS: usize = 60_000;

/// What all sections of a statement share.
pub(super) struct Desk<'a> {
    pub(super) calls: &'a Calls<'a>,
    pub(super) settings: &'a PanelSettings,
    pub(super) statement: &'a Statement<'a>,
    pub(super) feed: &'a Feed,
}

/// Tells a span why a call has no outcome.
fn judge<T>(outcome: &Result<T, Failure>, span: &mut Span) {
    if let Err(failure) = outcome {
        span.fail(failure.code());
    }
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
        let read = |answer: &Answer| {
            self.record(receipt::Task::Extraction, section, model, answer);
            let answer = &answer.text;
            let draft = draft::read(answer, MAX_ANSWER_BYTES);
            let draft = draft.inspect_err(|_| {
                let complete = draft::read_cut_off(answer, MAX_ANSWER_BYTES);
                if let Some(complete) = complete {
                    *cut_off.locked() = Some((complete, answer.to_owned()));
                }
            })?;
            Ok((draft, answer.to_owned()))
        };
        let first = calls.structured(model, Purpose::Extraction, if_limited, || true, prompt, read);
        let first = self.span("extract", section).around(first, judge).await;
        let (draft, answer) = match first {
            Ok(first) => first,
            Err(failure) if failure == Failure::Refused => return Err(failure),
            Err(failure) => cut_off.locked().take().ok_or(failure)?,
        };
        let first = review(statement, section, draft, &Kept::default());
        first.sound.iter().for_each(|claim| self.feed.ask(claim));
        let auditor = self.settings.auditor_of(model);
        let audit = self.first_audit(auditor, section, &first).await;
        let auditor = auditor.filter(|_| audit.as_ref().is_some_and(Audit::is_whole));
        let (kept, to_mend) = self.sort(section, first, audit.unwrap_or_default());
        if to_mend.is_nothing() {
            let audited = auditor.is_some();
            return Ok(Extracted { claims: kept.claims, skipped: kept.skipped, audited });
        }
        debug!(verification = %statement.job.id, model, faults = to_mend.faulty.len(), gaps = to_mend.missing.len(), "an extraction goes back");
        let message = to_mend.message(statement);
        let prompt = || {
            let mut chat = prompt();
            let quoted = text::shortened(&text::block(&answer), MAX_QUOTED_CHARS);
            chat.messages.push(Message { role: Role::Assistant, content: quoted.into() });
            chat.messages.push(Message { role: Role::User, content: message.clone().into() });
            chat
        };
        let read = |answer: &Answer| {
            self.record(receipt::Task::Mending, section, model, answer);
            let answer = &answer.text;
            draft::read(answer, MAX_ANSWER_BYTES)
                .or_else(|problem| draft::read_cut_off(answer, MAX_ANSWER_BYTES).ok_or(problem))
        };
        let if_limited = IfLimited::Wait { again: false };
        let second = calls.structured(model, Purpose::Extraction, if_limited, || true, prompt, read);
        let second = self.span("mend", section).around(second, judge).await;
        let second = second.unwrap_or_else(|failure| {
            warn!(verification = %statement.job.id, model, code = failure.code(), "an extraction was not mended");
            Draft::default()
        });
        let second = review(statement, section, second, &kept);
        Ok(Mending { desk: self, section, extractor: model, auditor, kept, to_mend }.finish(second).await)
    }

    /// What becomes of a section that no extractor makes anything of.
    pub(super) fn not_extracted(&self, section: &Section) -> Extracted {
        let sentences = self.gaps(section, std::iter::empty(), &[]).into_iter().map(|gap| self.place(&gap));
        let skipped = sentences.map(|range| Part::placed(range, SkipReason::NotExtracted)).collect();
        Extracted { skipped, ..Extracted::default() }
    }

    /// Keeps what a model wrote, if somebody asked for a receipt.
    fn record(&self, task: receipt::Task, section: &Section, model: &str, answer: &Answer) {
        if let Some(recorder) = self.calls.recorder {
            recorder.output(task, self.statement.span(&section.range), model, answer);
        }
    }

    /// A span for work on a section.
    fn span(&self, name: &'static str, section: &Section) -> Span {
        let mut span = self.calls.meter.span(name);
        if span.is_recorded() {
            let Position { start, end } = self.statement.span(&section.range);
            span.set("mk.section.start", start as u64);
            span.set("mk.section.end", end as u64);
        }
        span
    }

    fn calls(&self, has_fallback: bool) -> Calls<'_> {
        Calls { task: Task::Extraction { has_fallback }, ..*self.calls }
    }

    /// What the auditor says to a first draft; `None` if there is none, or nothing of its answer can be read. It sees
    /// the claims that the code passed, then those that could only be better.
    async fn first_audit(&self, auditor: Option<&str>, section: &Section, first: &Review) -> Option<Audit> {
        let wishes = first.faulty.iter().filter_map(Faulty::could_be_better);
        let claims: Vec<&Claim> = first.sound.iter().chain(wishes).collect();
        let faulty = first.faulty.iter().filter(|faulty| faulty.could_be_better().is_none());
        let faulty = faulty.filter_map(|faulty| Some((prompts::AT_FAULT, faulty.quote.clone()?)));
        let aside: Vec<(&str, Range<usize>)> = faulty.chain(asides(&first.skipped)).collect();
        self.audit(receipt::Task::Audit, auditor?, section, &claims, &aside).await
    }

    /// Puts claims and the parts set `aside` to a model. If not all of its answer can be read it is asked again; what
    /// could be read of the first counts as well.
    pub(super) async fn audit(
        &self,
        task: receipt::Task,
        model: &str,
        section: &Section,
        claims: &[&Claim],
        aside: &[(&str, Range<usize>)],
    ) -> Option<Audit> {
        let statement = self.statement;
        let shown = statement.passage(section);
        let parts: Vec<(&str, &str)> =
            aside.iter().map(|(reason, range)| (*reason, statement.text(range))).collect();
        let prompt = || prompts::audit(statement.job, statement.fences, passage(&shown), claims, &parts);
        let partial: Mutex<Option<Audit>> = Mutex::new(None);
        let read = |answer: &Answer| {
            self.record(task, section, model, answer);
            let audit = audit::read(&answer.text, claims.len())?;
            let mut partial = partial.locked();
            let audit = match partial.take() {
                Some(earlier) => audit.joined(earlier),
                None => audit,
            };
            let Some(problem) = audit.problem.clone() else { return Ok(audit) };
            *partial = Some(audit);
            Err(problem)
        };
        let calls = self.calls(false);
        let audit = calls.structured(model, Purpose::Extraction, IfLimited::Fail, || true, prompt, read);
        let audit = self.span("audit", section).around(audit, judge).await;
        audit
            .inspect_err(|failure| {
                warn!(verification = %statement.job.id, model, code = failure.code(), "an audit gave no whole answer");
            })
            .ok()
            .or_else(|| partial.locked().take())
    }

    /// The sentences of a section that claims and skipped parts do not account for.
    pub(super) fn gaps<'c>(
        &'c self,
        section: &Section,
        claims: impl Iterator<Item = Account<'c>>,
        skipped: &'c [Part],
    ) -> Vec<Gap> {
        let statement = self.statement;
        let (before, _) = statement.passage(section);
        let skipped = skipped.iter().filter_map(|part| {
            let quote = part.range.clone()?;
            let says = if part.shown.is_empty() { statement.text(&quote) } else { &part.shown };
            let kind = match part.reason {
                SkipReason::Duplicate if part.shown.is_empty() => AccountKind::Duplicate,
                SkipReason::Duplicate => AccountKind::Repeated,
                _ => AccountKind::Skipped,
            };
            Some(Account { quote, says, asks: "", kind })
        });
        let accounts: Vec<Account<'_>> = claims.chain(skipped).collect();
        let (document, finder) = (&statement.document, statement.finder());
        coverage(document, finder, section.sentences.clone(), &accounts, &before, statement.as_of)
    }

    /// Where a gap is.
    pub(super) fn place(&self, gap: &Gap) -> Range<usize> {
        self.statement.document.sentences()[gap.sentence].range.clone()
    }

    /// Where passages stand that an auditor misses: where it did not copy them, the sentence that says most of it. Of
    /// several places the first that no claim quotes. What only headings and code have is no statement.
    pub(super) fn missing(&self, section: &Section, audit: &Audit, claims: &[Claim]) -> Vec<Range<usize>> {
        let statement = self.statement;
        let (document, finder) = (&statement.document, statement.finder());
        let is_quoted = |place: &Range<usize>| claims.iter().any(|claim| overlap(&claim.quote, place));
        let places = audit.missing.iter().filter_map(|passage| {
            let quote = Quote::new(passage)?;
            let mut places = finder.places(&quote, &section.range, MAX_PLACES);
            places.retain(|place| !place.is_empty());
            if places.is_empty() {
                let sentence = nearest(document, finder, section.sentences.clone(), passage)?;
                return Some(document.sentences()[sentence].range.clone());
            }
            places.retain(|place| !statement.states_nothing(place));
            places.iter().find(|place| !is_quoted(place)).or(places.first()).cloned()
        });
        places.collect()
    }

    /// Sorts a first draft into what is kept and what goes back.
    fn sort(&self, section: &Section, first: Review, audit: Audit) -> (Kept, ToMend) {
        let mut to_mend = ToMend::default();
        let mut kept = Kept { claims: Vec::new(), skipped: first.skipped };
        let missing = self.missing(section, &audit, &first.sound);
        let shown = first.sound.len() + first.faulty.iter().filter_map(Faulty::could_be_better).count();
        let mut objections: Vec<Vec<Objection>> = vec![Vec::new(); shown];
        for objection in audit.objections {
            objections[objection.claim].push(objection);
        }
        let mut objections = objections.into_iter();
        for (claim, objections) in first.sound.into_iter().zip(objections.by_ref()) {
            match self.after_objections(claim, objections, &mut to_mend) {
                Outcome::Keep(claim) => kept.claims.push(claim),
                Outcome::Mend(faulty) => to_mend.faulty.push(faulty),
            }
        }
        for mut faulty in first.faulty {
            if let Some(claim) = faulty.could_be_better() {
                let objections = objections.next().unwrap_or_default();
                if objections.is_empty() {
                    to_mend.approved.push(claim.clone());
                }
                to_mend.remarks.extend(remarks(claim, &objections));
                faulty.faults.extend(objections.iter().map(Objection::fault));
            }
            to_mend.faulty.push(faulty);
        }
        let claims = kept.claims.iter().map(Claim::account);
        let claims = claims.chain(to_mend.faulty.iter().filter_map(Faulty::account));
        let gaps = self.gaps(section, claims, &kept.skipped);
        for gap in gaps.iter().filter(|gap| gap.touched) {
            let values: Vec<&str> = gap.values.iter().chain(&gap.unasked).map(String::as_str).collect();
            if !values.is_empty() {
                to_mend.unasked.push((self.place(gap), values.join("\", \"")));
            }
        }
        to_mend.missing.extend(gaps.iter().map(|gap| self.place(gap)));
        for range in missing {
            // A gap that the code has seen as well is sent back as a whole.
            let is_seen = to_mend.missing.iter().any(|gap| overlap(gap, &range));
            to_mend.auditor_gaps.push(range.clone());
            if !is_seen {
                to_mend.missing.push(range);
            }
        }
        (kept, to_mend)
    }

    /// What an auditor's objections make of a claim that the code passed.
    fn after_objections(
        &self,
        mut claim: Claim,
        objections: Vec<audit::Objection>,
        to_mend: &mut ToMend,
    ) -> Outcome {
        let (alike, objections) = split_off_alike(&claim, objections);
        to_mend.remarks.extend(remarks(&claim, &objections));
        let faults: Vec<Fault> = objections.iter().map(Objection::fault).collect();
        if faults.is_empty() {
            if !alike.is_empty() {
                self.feed.withdraw(&claim);
                claim = claim.without_rivals(&alike).renumbered(self.statement.next_number());
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
}

/// The options that objections find alike or overlapping, but for one of each: the claimed one, if it is among them.
/// Apart from the objections that this does not answer, as no rival would be left, or nothing is named.
pub(super) fn split_off_alike(claim: &Claim, objections: Vec<Objection>) -> (Vec<usize>, Vec<Objection>) {
    let mut dropped: Vec<usize> = Vec::new();
    let rivals = claim.rivals().len();
    let is_unanswered = |objection: &Objection| {
        if !matches!(objection.kind, Kind::Same | Kind::Overlap) {
            return true;
        }
        let named = objection.options.iter().copied();
        let mut alike: Vec<usize> = named.filter(|at| *at != Claim::CLAIMED && *at <= rivals).collect();
        alike.sort_unstable();
        alike.dedup();
        let kept = usize::from(!objection.options.contains(&Claim::CLAIMED));
        alike.retain(|at| !dropped.contains(at));
        let alike = alike.get(kept..).unwrap_or_default();
        if alike.is_empty() || dropped.len() + alike.len() >= rivals {
            return true;
        }
        dropped.extend(alike);
        false
    };
    let unanswered = objections.into_iter().filter(is_unanswered).collect();
    (dropped, unanswered)
}

/// What an auditor wrote about a claim.
fn remarks<'r>(claim: &'r Claim, objections: &'r [Objection]) -> impl Iterator<Item = String> + 'r {
    let remarks = objections.iter().map(|objection| &objection.remark).filter(|remark| !remark.is_empty());
    remarks.map(move |remark| format!("{}: {remark}", text::shortened(&claim.text, MAX_FAULTY_CHARS)))
}

/// Skipped parts as an auditor sees them, each behind its reason.
pub(super) fn asides(skipped: &[Part]) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    skipped.iter().filter_map(|part| {
        let reason = if part.reason.is_unchecked() { prompts::AT_FAULT } else { part.reason.as_str() };
        Some((reason, part.range.clone()?))
    })
}

/// What becomes of a claim that an auditor objects to.
enum Outcome {
    Keep(Claim),
    Mend(Faulty),
}

/// What goes back to the extractor.
#[derive(Default)]
pub(super) struct ToMend {
    pub(super) faulty: Vec<Faulty>,
    /// What an auditor wrote.
    remarks: Vec<String>,
    /// Passages that are in no claim and no skipped part.
    pub(super) missing: Vec<Range<usize>>,
    /// Those of them of which a claim was made, with the numbers and dates that none asks for.
    unasked: Vec<(Range<usize>, String)>,
    /// Those that the auditor misses, whether the code does or not.
    pub(super) auditor_gaps: Vec<Range<usize>>,
    /// Of the faulty claims, those that the auditor has seen and not objected to.
    pub(super) approved: Vec<Claim>,
}

impl ToMend {
    const fn is_nothing(&self) -> bool {
        self.faulty.is_empty() && self.missing.is_empty() && self.auditor_gaps.is_empty()
    }

    fn message(&self, statement: &Statement<'_>) -> String {
        let faults = self.faulty.iter().take(MAX_SENT_BACK).map(|faulty| {
            let advice: Vec<&str> = faulty.faults.iter().map(|fault| fault.advice.as_str()).collect();
            (text::shortened(&faulty.shown, MAX_FAULTY_CHARS), advice.join("; "))
        });
        let unasked = self.unasked.iter().take(MAX_SENT_BACK).map(|(range, values)| {
            let values = text::shortened(&text::one_line(values), MAX_FAULTY_CHARS);
            let advice = format!(
                "no claim asks for \"{values}\": add a claim whose claimed answer it is, or is the whole statement, beside \
                 rivals that say the same of others"
            );
            (text::shortened(&text::one_line(statement.text(range)), MAX_FAULTY_CHARS), advice)
        });
        let faults = faults.chain(unasked);
        let remarks = self.remarks.get(..MAX_SENT_BACK).unwrap_or(&self.remarks);
        let missing = self.missing.iter().take(MAX_SENT_BACK);
        let missing: Vec<&str> = missing.map(|range| statement.text(range).trim()).collect();
        prompts::faults(statement.fences, faults, remarks, &missing)
    }
}
