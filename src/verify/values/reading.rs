//! Reads the values of a text.

use std::ops::Range;

use super::cursor::Cursor;
use super::dates;
use super::language::Languages;
use super::lexicon::{Hedge, Sense, lexicon};
use super::numbers::number::Number;
use super::numbers::units::Unit;
use super::numbers::{amounts, bounds, numerals};
use super::value::Value;
use crate::verify::words::{Folded, Script, Tokens};

/// A value at its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its place in bytes: with its unit, but without its hedge.
    pub range: Range<usize>,
    /// What it can be read as; never empty.
    pub readings: Vec<Value>,
    /// Of what it is an amount, if that is said in a unit of the tables.
    pub unit: Option<Unit>,
    /// How it is bounded.
    pub hedge: Hedge,
    /// Where the words stand that bound it; empty if there are none.
    pub bound: Range<usize>,
    /// Whether it may as well be no value: a single Roman numeral. Such a one supports a claim, and is not asked of it.
    pub weak: bool,
    /// Whether it is the beginning of a range, whose end is the next value.
    pub begins_range: bool,
}

impl Found {
    /// The numbers among its readings.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        self.readings.iter().filter_map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// Where it begins, with the words that bound it: "about 5".
    pub fn begin(&self) -> usize {
        if self.bound.is_empty() { self.range.start } else { self.range.start.min(self.bound.start) }
    }

    /// The year that it may be: a whole number of three or four digits without a unit.
    pub fn year(&self) -> Option<i32> {
        let is_year = |year: &i32| (1000..=2999).contains(year);
        let whole = |number: Number| number.whole().and_then(|whole| i32::try_from(whole).ok());
        self.unit.is_none().then(|| self.numbers().find_map(whole).filter(is_year)).flatten()
    }
}

/// A text that was read: its words, what they mean, and its values.
#[derive(Debug)]
pub struct Reading {
    tokens: Tokens,
    senses: Vec<Sense>,
    languages: Languages,
    values: Vec<Found>,
}

impl Reading {
    /// Reads a text; places are those of its folded form.
    pub fn new(text: &str) -> Self {
        Self::of_folded(Folded::new(text).text(), None)
    }

    /// Reads a folded text, in its own language where none is given. A given one decides between readings.
    pub fn of_folded(folded: &str, given: Option<Languages>) -> Self {
        Self::read(folded, given, given.is_some())
    }

    /// Reads a folded text that is known to be in one of these languages, keeping every reading of its numbers.
    pub fn within(folded: &str, languages: Languages) -> Self {
        Self::read(folded, Some(languages), false)
    }

    fn read(folded: &str, given: Option<Languages>, strict: bool) -> Self {
        let tokens = Tokens::new(folded);
        let (senses, starts) = lexicon().senses(tokens.all());
        let languages = given.unwrap_or_else(|| Languages::guess(tokens.all(), &senses));
        let cursor = Cursor {
            text: folded,
            tokens: tokens.all(),
            senses: &senses,
            starts: &starts,
            languages,
            strict,
        };
        let has_compounds = languages.have_compounds();
        let mut values = Vec::new();
        let mut at = 0;
        while at < tokens.all().len() {
            let token = &tokens.all()[at];
            let may_begin = match token.script {
                Script::Mark | Script::Katakana => false,
                Script::Letters => {
                    cursor.may_begin_value(at)
                        || numerals::may_be_roman(token)
                        || has_compounds && token.chars >= 7
                }
                _ => true,
            };
            if !may_begin {
                at += 1;
                continue;
            }
            let found = dates::read(&cursor, at).or_else(|| amounts::read(&cursor, at));
            at = match found {
                Some((found, end)) => {
                    values.extend((!found.readings.is_empty()).then_some(found));
                    end.max(at + 1)
                }
                None => at + 1,
            };
        }
        bounds::join_ranges(&cursor, &mut values);
        Self { tokens, senses, languages, values }
    }

    /// Its words.
    pub const fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// What they mean, in order; also in languages that are not the text's.
    pub fn senses(&self) -> &[Sense] {
        &self.senses
    }

    /// What the tokens of a range mean in the text's own language.
    pub fn senses_within(&self, tokens: &Range<usize>) -> impl Iterator<Item = &Sense> {
        let place = |at: usize| self.senses.partition_point(|sense| (sense.at as usize) < at);
        let senses = &self.senses[place(tokens.start)..place(tokens.end)];
        senses.iter().filter(|sense| sense.languages.meet(self.languages))
    }

    /// Its language, as far as it can be told.
    pub const fn languages(&self) -> Languages {
        self.languages
    }

    /// Its values, in order.
    pub fn values(&self) -> &[Found] {
        &self.values
    }

    /// The positions of those that begin in a range of the text.
    pub fn values_within(&self, folded: &Range<usize>) -> Range<usize> {
        let at = |byte: usize| self.values.partition_point(|found| found.range.start < byte);
        at(folded.start)..at(folded.end.max(folded.start))
    }
}

/// The values of a text, at their places in it. A language decides what would have two readings otherwise.
pub fn read(text: &str, languages: Option<Languages>) -> Vec<Found> {
    let folded = Folded::new(text);
    let values = Reading::of_folded(folded.text(), languages).values;
    values
        .into_iter()
        .map(|found| Found {
            range: folded.source(found.range.clone()),
            bound: folded.source(found.bound.clone()),
            ..found
        })
        .collect()
}
