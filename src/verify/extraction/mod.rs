//! Extraction: from a statement to the claims that the panel is asked about, with the whole statement accounted for.
//!
//! ```text
//! statement ─ sections ─┬─ draft ─ review ─┬─ claims without fault ──────────────┬─ merge ─ claims, skipped parts
//!                       │  (extractor)     ├─ audit (a second model) ─┐          │
//!                       └─ …               └─ faults, gaps ───────────┴─ mend ───┘
//!                                                                     (extractor, once)
//! ```
//!
//! What must hold: a claim that reaches the panel for good has a quote in the statement and no hard fault; a claim or a
//! skipped part is about every sentence, and has each number of it; what could not be made sure of is skipped as
//! `unfaithful` or `not_extracted`, so that nothing that was not checked looks checked. Claims that the review passes are asked about at
//! once, beside the audit; those that change are withdrawn ([`Feed`]).

mod audit;
mod draft;
mod fault;
mod feed;
mod mend;
mod merge;
mod options;
mod review;
mod section;
mod statement;

pub(super) use feed::{Change, Changes, Feed, Step};
pub(super) use merge::{Found, extract};
pub(super) use statement::Statement;

use crate::api::verify::Skipped;
use crate::verify::Job;
use crate::verify::claim::Claim;
use crate::verify::prompts::Fences;

/// What the review of one section leaves of an extractor's answer, without any model: the claims without a fault, and
/// the parts that were skipped, as they are reported. `None` for an answer that cannot be read.
pub fn review_answer(job: &Job, answer: &str) -> Option<(Vec<Claim>, Vec<Skipped>)> {
    let fences = Fences::new(&[&job.fact]).ok()?;
    let statement = Statement::read(job, &fences);
    let whole = draft::read(answer, MAX_FUZZED_BYTES).ok();
    let draft = whole.or_else(|| draft::read_cut_off(answer, MAX_FUZZED_BYTES))?;
    let reviewed = review::review(&statement, statement.sections.first()?, draft, &review::Kept::default());
    let skipped = reviewed.skipped.into_iter().filter_map(|part| statement.reported(part)).collect();
    Some((reviewed.sound, skipped))
}

/// Longer answers are not reviewed alone.
const MAX_FUZZED_BYTES: usize = 1 << 20;
