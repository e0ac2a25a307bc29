//! What of a text no claim and no skipped part accounts for (CONTRACT 4.6).

use std::ops::Range;

use super::finder::Finder;
use super::text::{Document, Kind};
use crate::verify::anchors::{is_shortened, name_tokens};
use crate::verify::values::{Index, Meaning, Number, Reading, Value, roman};
use crate::verify::words::{Folded, Stems};

/// A sentence that is not accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which sentence of the document.
    pub sentence: usize,
    /// Numbers and names of it that stand in no claim and no skipped part, as they stand in the text.
    pub missing: Vec<String>,
    /// Whether a quote touches it.
    pub touched: bool,
}

/// What claims and skipped parts say, read once.
struct Said {
    index: Index,
    stems: Stems,
}

impl Said {
    fn new(finder: &Finder, claims: &[&str], skipped: &[&str]) -> Self {
        let all: Vec<&str> = claims.iter().chain(skipped).copied().collect();
        let folded = Folded::new(&all.join("\n"));
        let reading = Reading::within(folded.text(), finder.reading().languages());
        let mut stems = Stems::default();
        stems.add(folded.text(), reading.tokens().all());
        Self { index: Index::new(folded.text(), &reading), stems }
    }

    fn has(&self, value: Value) -> bool {
        match value {
            Value::Number(number) => !self.index.number(number).is_empty(),
            Value::Date(date) => !self.index.month(date.month, date.day).is_empty(),
            Value::Time(time) => !self.index.time(time).is_empty(),
        }
    }
}

/// The sentences of a section (or of the whole document, by their positions) that no quote touches, or of which a number
/// or name is missing. `touched` are the places of the quotes of claims and skipped parts in bytes of the text, in any
/// order; `claims` and `skipped` what they say, with question and answer if those say more.
pub fn coverage(
    document: &Document<'_>,
    finder: &Finder,
    sentences: Range<usize>,
    touched: &[Range<usize>],
    claims: &[&str],
    skipped: &[&str],
) -> Vec<Gap> {
    let all = document.sentences().get(sentences.clone()).unwrap_or_default();
    let said = Said::new(finder, claims, skipped);
    let mut is_touched = vec![false; document.sentences().len()];
    for quote in touched.iter().filter(|quote| !quote.is_empty()) {
        // Quotes lie over few sentences each.
        is_touched[document.sentences_of(quote)].fill(true);
    }
    let tokens = finder.reading().tokens();
    let text = finder.folded().text();
    let names = names_within(finder, all);
    let gaps = sentences.zip(all).filter(|(_, sentence)| !sentence.exempt).filter_map(|(at, sentence)| {
        let place = finder.folded().folded(&sentence.range);
        let mut missing = missing_values(finder, &place, &said, sentence.kind);
        let within = tokens.within(&place);
        let from = names.partition_point(|name| *name < within.start);
        for name in names[from..].iter().copied().take_while(|name| *name < within.end) {
            let token = &tokens.all()[name];
            let is_said = said.stems.has_stem(text, token)
                || said.stems.has_name_of(token)
                || is_shortened(tokens.all(), name, &said.stems)
                || roman(&text[token.range()])
                    .is_some_and(|number| said.has(Value::Number(Number::from(number))));
            if !is_said {
                missing.push(text[token.range()].to_owned());
            }
        }
        (!is_touched[at] || !missing.is_empty()).then(|| Gap {
            sentence: at,
            missing,
            touched: is_touched[at],
        })
    });
    gaps.collect()
}

/// Which tokens of some sentences are names.
fn names_within(finder: &Finder, sentences: &[super::Sentence]) -> Vec<usize> {
    let (Some(first), Some(last)) = (sentences.first(), sentences.last()) else { return Vec::new() };
    let whole = finder.folded().folded(&(first.range.start..last.range.end));
    name_tokens(finder.folded().text(), finder.reading(), finder.reading().tokens().within(&whole))
}

/// The numbers, dates and times of a sentence that nothing says. Relative times and the numbers of list items do not count.
fn missing_values(finder: &Finder, place: &Range<usize>, said: &Said, kind: Kind) -> Vec<String> {
    let values = finder.reading().values();
    let first = values.partition_point(|found| found.range.start < place.start);
    let text = finder.folded().text();
    let is_item = |start: usize, end: usize| {
        kind == Kind::Prose
            && start == place.start
            && text.get(end..).is_some_and(|rest| rest.starts_with(['.', ')']))
    };
    let found = values[first..].iter().take_while(|found| found.range.start < place.end);
    found
        .filter(|found| {
            !found.weak && !is_item(found.range.start, found.range.end) && !is_relative(finder, &found.range)
        })
        .filter(|found| !found.readings.iter().any(|value| said.has(*value)))
        .filter_map(|found| text.get(found.range.clone()).map(str::to_owned))
        .collect()
}

/// Whether a value is part of a time relative to the day of asking, which claims give as a date: "three years ago".
fn is_relative(finder: &Finder, range: &Range<usize>) -> bool {
    let reading = finder.reading();
    let tokens = reading.tokens();
    let place = tokens.within(range);
    let around = place.start.saturating_sub(3)..place.end + 2;
    reading.senses_within(&around).any(|sense| sense.meaning == Meaning::Ago)
}
