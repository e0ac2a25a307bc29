//! Sections: what one extraction call gets.
//!
//! Cut before headings where that leaves sections of a good size, else between paragraphs, else between sentences; never
//! inside one. A sentence that is longer than a section stands alone, and a heading never ends one.

use std::ops::Range;

use super::text::{Document, Kind};

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its place in the text, in bytes: from its first sentence to its last.
    pub range: Range<usize>,
    /// Its sentences.
    pub sentences: Range<usize>,
    /// The headings above its first sentence, the outermost first, each a sentence before the section.
    pub headings: Vec<usize>,
}

/// Cuts a document into sections of about `target` characters.
pub(super) fn cut(document: &Document<'_>, target: usize) -> Vec<Section> {
    let count = document.sentences().len();
    let mut sections = Vec::new();
    let mut first = 0;
    while first < count {
        let end = end_of(document, first, target.max(1));
        sections.push(section(document, first..end));
        first = end;
    }
    sections
}

fn section(document: &Document<'_>, sentences: Range<usize>) -> Section {
    let all = &document.sentences()[sentences.clone()];
    let start = all.first().map_or(0, |sentence| sentence.range.start);
    let end = all.last().map_or(start, |sentence| sentence.range.end);
    let mut headings: Vec<usize> = document.headings(sentences.start).collect();
    headings.reverse();
    Section { range: start..end, sentences, headings }
}

/// Where the section that begins with a sentence ends: behind as many sentences as fit, at the best place for a cut.
fn end_of(document: &Document<'_>, first: usize, target: usize) -> usize {
    let sentences = document.sentences();
    let start = sentences[first].range.start;
    let chars = |at: usize| {
        let span = document.char_span(&(start..sentences[at].range.end));
        span.end - span.start
    };
    let mut end = first + 1;
    while end < sentences.len() && chars(end) <= target {
        end += 1;
    }
    if end == sentences.len() {
        return end;
    }
    let is_heading = |at: usize| matches!(sentences[at].kind, Kind::Heading(_));
    // A cut before sentence `at` leaves the section at least a share of its size.
    let fills = |at: usize, share: usize| chars(at - 1) * share >= target;
    let places = || (first + 1..=end).rev();
    let begins_block = |at: usize| sentences[at].block != sentences[at - 1].block;
    let after_heading = |at: usize| is_heading(at - 1);
    places()
        .take_while(|at| fills(*at, 3))
        .find(|at| is_heading(*at) && !after_heading(*at))
        .or_else(|| {
            places().take_while(|at| fills(*at, 2)).find(|at| begins_block(*at) && !after_heading(*at))
        })
        .or_else(|| places().find(|at| !after_heading(*at)))
        .unwrap_or(end)
}
