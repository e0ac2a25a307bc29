//! Where a quote stands in its text.

use std::ops::Range;

use memchr::memmem;

use super::text::Document;
use crate::verify::values::{Index, Meaning, Reading, Unit};
use crate::verify::words::{Folded, Stems};

/// A document prepared for looking things up: folded, and read for values and words, once for all of its claims.
#[derive(Debug)]
pub struct Finder {
    /// All of the text; line feeds are spaces.
    whole: Haystack,
    /// The text without marks of Markdown, where it has any.
    shown: Option<Haystack>,
    /// What stands in it.
    reading: Reading,
    index: Index,
    stems: Stems,
    /// Units that the text names, with a number or without.
    units: Vec<Unit>,
}

/// A quote, folded and prepared to be looked for in several places.
#[derive(Debug)]
pub struct Quote(memmem::Finder<'static>);

impl Quote {
    /// A quote; `None` if there is nothing in it to look for.
    pub fn new(quote: &str) -> Option<Self> {
        let quote = Folded::new(quote).text().replace('\n', " ");
        let quote = quote.trim();
        (!quote.is_empty()).then(|| Self(memmem::Finder::new(quote).into_owned()))
    }
}

#[derive(Debug)]
struct Haystack {
    folded: Folded,
    spaced: String,
}

impl Haystack {
    fn new(folded: Folded) -> Self {
        let spaced = folded.text().replace('\n', " ");
        Self { folded, spaced }
    }

    /// The places of a quote, in order.
    fn places(&self, quote: &Quote, within: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let range = self.folded.folded(within);
        let part = self.spaced.as_bytes().get(range.clone()).unwrap_or_default();
        let length = quote.0.needle().len();
        quote.0.find_iter(part).map(move |at| {
            let at = range.start + at;
            self.folded.source(at..at + length)
        })
    }
}

impl Finder {
    /// Prepares a document.
    pub fn new(document: &Document<'_>) -> Self {
        let whole = Haystack::new(Folded::new(document.text()));
        let shown = (!document.hidden().is_empty())
            .then(|| Haystack::new(Folded::without(document.text(), document.hidden())));
        let folded = shown.as_ref().map_or(&whole.folded, |shown| &shown.folded);
        let reading = Reading::of_folded(folded.text(), None);
        let mut stems = Stems::default();
        stems.add(folded.text(), reading.tokens().all());
        let index = Index::new(folded.text(), &reading);
        let mut units: Vec<Unit> = Vec::new();
        for sense in reading.senses() {
            if let Meaning::Unit(unit) = sense.meaning
                && !units.contains(&unit)
            {
                units.push(unit);
            }
        }
        Self { whole, shown, reading, index, stems, units }
    }

    /// Where a quote stands for the n-th time (from 0) within a range of the text: compared under NFKC, with white space,
    /// quotation marks and dashes evened out, and without marks of Markdown if it does not stand there with them.
    pub fn find(&self, quote: &str, within: Range<usize>, occurrence: usize) -> Option<Range<usize>> {
        self.places(&Quote::new(quote)?, &within, occurrence + 1).into_iter().nth(occurrence)
    }

    /// The first `most` of all places of which [`Finder::find`] gives one.
    pub fn places(&self, quote: &Quote, within: &Range<usize>, most: usize) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = self.whole.places(quote, within).take(most).collect();
        let further = self.shown.iter().flat_map(|shown| shown.places(quote, within));
        let further = further.skip(places.len()).take(most - places.len());
        places.extend(further.collect::<Vec<_>>());
        places
    }

    /// The text as it was folded for reading.
    pub(in crate::verify) fn folded(&self) -> &Folded {
        self.shown.as_ref().map_or(&self.whole.folded, |shown| &shown.folded)
    }

    /// What stands in the folded text.
    pub(in crate::verify) const fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Where each value stands.
    pub(in crate::verify) const fn index(&self) -> &Index {
        &self.index
    }

    /// Whether the text names a unit, if only in the heading of a column, or writes its symbol in brackets.
    pub(in crate::verify) fn names_unit(&self, unit: Unit) -> bool {
        self.units.iter().any(|named| named.may_be(unit))
            || unit.symbols().any(|symbol| {
                let written = ["(", symbol, ")"].concat();
                memmem::find(self.folded().text().as_bytes(), written.as_bytes()).is_some()
            })
    }

    /// The words of the text.
    pub(in crate::verify) const fn stems(&self) -> &Stems {
        &self.stems
    }
}
