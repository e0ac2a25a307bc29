//! Where a quote stands in its text.

use std::ops::Range;

use memchr::memmem;

use super::text::Document;
use crate::verify::values::{Index, Meaning, Reading, Unit};
use crate::verify::words::{Folded, Stems};

/// A document prepared for looking things up: folded, and read for values and words, once for all of its claims.
#[derive(Debug)]
pub struct Finder {
    /// All of the text.
    whole: Folded,
    /// The text without marks of Markdown, where it has any.
    shown: Option<Folded>,
    /// What stands in it.
    reading: Reading,
    index: Index,
    stems: Stems,
    /// Units that the text names, with a number or without.
    units: Vec<Unit>,
}

/// A quote, folded and prepared to be looked for in several places.
#[derive(Debug)]
pub struct Quote(String);

/// A quote is looked for by so many of its first bytes: to prepare a longer search takes more time than it saves.
const BEGINNING: usize = 32;
/// How many places may begin like a quote and go on otherwise until it is looked for as a whole, so that the time stays
/// that of the lengths.
const FALSE_BEGINNINGS: usize = 32;

impl Quote {
    /// A quote; `None` if there is nothing in it to look for.
    pub fn new(quote: &str) -> Option<Self> {
        let quote = Folded::new(quote).text().replace('\n', " ");
        let quote = quote.trim();
        (!quote.is_empty()).then(|| Self(quote.to_owned()))
    }

    /// The first `most` of its places in a range of a text, in order. Line feeds are as good as spaces.
    fn places(&self, folded: &Folded, within: &Range<usize>, most: usize) -> Vec<Range<usize>> {
        let range = folded.folded(within);
        let part = folded.text().get(range.clone()).unwrap_or_default().replace('\n', " ");
        let (part, quote) = (part.as_bytes(), self.0.as_bytes());
        let mut finder = memmem::Finder::new(&quote[..quote.len().min(BEGINNING)]);
        let (mut places, mut at, mut misses) = (Vec::new(), 0, 0);
        while places.len() < most
            && let Some(found) = finder.find(&part[at..])
        {
            at += found;
            if part[at..].starts_with(quote) {
                places.push(folded.source(range.start + at..range.start + at + quote.len()));
                at += quote.len();
                continue;
            }
            at += 1;
            misses += 1;
            if misses == FALSE_BEGINNINGS {
                finder = memmem::Finder::new(quote);
            }
        }
        places
    }
}

impl Finder {
    /// Prepares a document.
    pub fn new(document: &Document<'_>) -> Self {
        let whole = Folded::new(document.text());
        let shown =
            (!document.hidden().is_empty()).then(|| Folded::without(document.text(), document.hidden()));
        let folded = shown.as_ref().unwrap_or(&whole);
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
        let mut places = quote.places(&self.whole, within, most);
        if let Some(shown) = self.shown.as_ref().filter(|_| places.len() < most) {
            places.extend(quote.places(shown, within, most).into_iter().skip(places.len()));
        }
        places
    }

    /// The text as it was folded for reading.
    pub(in crate::verify) fn folded(&self) -> &Folded {
        self.shown.as_ref().unwrap_or(&self.whole)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::document::Format;

    #[test]
    fn a_quote_is_found_behind_any_number_of_places_that_begin_like_it() {
        let begin = "ha ".repeat(20);
        for often in [0, FALSE_BEGINNINGS - 1, FALSE_BEGINNINGS, 3 * FALSE_BEGINNINGS] {
            let text = format!("{}{begin}ho.", format!("{begin}hi. ").repeat(often));
            let finder = Finder::new(&Document::new(&text, Format::Text));
            let place = text.len() - begin.len() - 3..text.len();
            assert_eq!(finder.find(&text[place.clone()], 0..text.len(), 0), Some(place), "{often}");
        }
    }
}
