//! Where near its quote a claim's answer has to stand.

use std::ops::Range;

use crate::verify::document::{Document, Finder, Kind};

/// How many sentences before the quote's still belong to it.
const SENTENCES_BEFORE: usize = 3;
/// How many rows of a table around a row belong to it.
const ROWS: usize = 40;
/// The most headings.
const HEADINGS: usize = 6;

/// Places of the folded text near a quote.
pub(super) struct Zone {
    /// The quote itself.
    pub(super) quote: Range<usize>,
    /// The sentences that it touches.
    pub(super) sentences: Range<usize>,
    /// Those with the one before.
    pub(super) context: Range<usize>,
    /// All places where its answer may stand.
    pub(super) all: Vec<Range<usize>>,
}

impl Zone {
    pub(super) fn new(document: &Document<'_>, finder: &Finder, quote: &Range<usize>) -> Self {
        let sentences = document.sentences();
        let touched = document.sentences_of(quote);
        let folded = finder.folded();
        let place = |from: usize, end: usize| {
            let first =
                sentences.get(from).map_or(quote.start, |sentence| sentence.range.start.min(quote.start));
            let last = end.checked_sub(1).and_then(|last| sentences.get(last));
            folded.folded(&(first..last.map_or(quote.end, |sentence| sentence.range.end.max(quote.end))))
        };
        let one = |at: usize| folded.folded(&sentences[at].range);
        let mut all = vec![place(touched.start.saturating_sub(SENTENCES_BEFORE), touched.end)];
        all.extend(document.headings(touched.start).take(HEADINGS).map(one));
        let is_row = |at: usize| {
            sentences
                .get(at)
                .is_some_and(|sentence| matches!(sentence.kind, Kind::TableRow | Kind::TableHeader))
        };
        if is_row(touched.start) {
            all.extend(
                (touched.start.saturating_sub(ROWS)..touched.start)
                    .rev()
                    .take_while(|at| is_row(*at))
                    .map(one),
            );
            all.extend((touched.end..touched.end + ROWS).take_while(|at| is_row(*at)).map(one));
        }
        Self {
            quote: folded.folded(quote),
            sentences: place(touched.start, touched.end),
            context: place(touched.start.saturating_sub(1), touched.end),
            all,
        }
    }
}
