//! All rules for one claim.

use std::ops::Range;

use jiff::civil;

use super::fault::{Fault, quote_missing};
use super::zone::Zone;
use super::{answers, markers, names, numbers, opposites};
use crate::verify::document::{Document, Finder};
use crate::verify::values::Reading;
use crate::verify::words::Folded;

/// A claim with what it is to be checked against.
#[derive(Clone, Copy, Debug)]
pub struct Anchored<'a> {
    /// The section that it was extracted from, in bytes of the text: its quote stands in it.
    pub section: &'a Range<usize>,
    /// What is claimed.
    pub claim: &'a str,
    /// Where its quote stands, in bytes of the text.
    pub quote: &'a Range<usize>,
    /// What the panel will be asked.
    pub question: &'a str,
    /// The answer that the claim gives.
    pub claimed_answer: &'a str,
    /// The day from which relative times are counted.
    pub as_of: civil::Date,
}

/// A part of a claim, folded and read in the document's language.
pub(super) struct Part {
    pub(super) folded: Folded,
    pub(super) reading: Reading,
}

impl Part {
    pub(super) fn new(text: &str, finder: &Finder) -> Self {
        let folded = Folded::new(text);
        let reading = Reading::within(folded.text(), finder.reading().languages());
        Self { folded, reading }
    }

    pub(super) fn text(&self) -> &str {
        self.folded.text()
    }
}

/// What the rules look at.
pub(super) struct Case<'a> {
    pub(super) finder: &'a Finder,
    pub(super) claim: Part,
    pub(super) answer: Part,
    pub(super) question: Part,
    pub(super) zone: Zone,
    pub(super) as_of: civil::Date,
}

/// What is at fault with a claim, the worst first; nothing if it says what its quote says, as far as code can tell.
pub fn check(document: &Document<'_>, finder: &Finder, anchored: &Anchored<'_>) -> Vec<Fault> {
    let quote = anchored.quote;
    let in_section = anchored.section.start <= quote.start && quote.end <= anchored.section.end;
    if !in_section || document.text().get(quote.clone()).is_none_or(str::is_empty) {
        return vec![quote_missing()];
    }
    let case = Case {
        finder,
        claim: Part::new(anchored.claim, finder),
        answer: Part::new(anchored.claimed_answer, finder),
        question: Part::new(anchored.question, finder),
        zone: Zone::new(document, finder, quote),
        as_of: anchored.as_of,
    };
    let mut faults = Vec::new();
    numbers::check(&case, &mut faults);
    answers::check(&case, &mut faults);
    names::check(&case, &mut faults);
    markers::check(&case, &mut faults);
    opposites::check(&case, &mut faults);
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.severity));
    faults.dedup();
    faults
}
