//! The words of the tables in `data/`, found in a text in one pass.
//!
//! A word or phrase may mean several things: `second` an ordinal and a unit, `may` a month and a verb. Each meaning
//! keeps the languages in which it is one; what reads them decides.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::language::{Languages, field};
use super::numbers::units::{self, Unit};
use crate::verify::words::{Folded, Token, Tokens};

/// How a number is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hedge {
    /// Not at all: the number itself.
    #[default]
    None,
    /// About so much.
    About,
    /// So much or more.
    AtLeast,
    /// So much or less.
    AtMost,
    /// More than that.
    More,
    /// Less than that.
    Less,
    /// Later than that time.
    After,
    /// Earlier than that time.
    Before,
    /// From that time on.
    Since,
    /// Up to that time.
    Until,
}

impl Hedge {
    /// Whether it bounds a time: it stands beside dates and years alone.
    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::After | Self::Before | Self::Since | Self::Until)
    }

    /// Whether two hedges of the same number say different things: any two of an amount; of a time, where sentences are
    /// often built in another way (until 1945, ended in 1945), only those that point in opposite directions.
    pub fn differs_from(self, other: Self) -> bool {
        if self.is_of_time() || other.is_of_time() {
            self.direction() * other.direction() < 0
        } else {
            self != other
        }
    }

    const fn direction(self) -> i8 {
        match self {
            Self::AtLeast | Self::More | Self::After | Self::Since => 1,
            Self::AtMost | Self::Less | Self::Before | Self::Until => -1,
            Self::None | Self::About => 0,
        }
    }
}

/// What a word does to its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Denies it.
    Not,
    /// Says what made it so.
    Cause,
    /// Says it of all.
    All,
    /// Says it of nothing else.
    Only,
}

/// What a word or phrase can mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// A number in words.
    Cardinal(u8),
    /// A place in an order.
    Ordinal(u8),
    /// A power of ten before which a number stands.
    Scale(u8),
    /// A month; not a clear one if it means something else as well.
    Month {
        /// From 1.
        month: u8,
        /// Whether it means nothing else.
        clear: bool,
    },
    /// A unit of what is counted.
    Unit(Unit),
    /// How the number beside it is bounded, and whether it stands before it.
    Hedge(Hedge, bool),
    /// What it does to its sentence.
    Marker(Marker),
    /// A time counted from the day of asking.
    Relative(Span, i8),
    /// Makes of a number of units such a time.
    Ago,
    /// Turns a number to the other side of zero.
    Sign(Sign),
    /// A word that carries nothing by itself.
    Small,
}

/// Beside which number a word is a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Before any number.
    Minus,
    /// Behind degrees of heat.
    Below,
    /// Behind degrees of a place.
    South,
    /// Behind a year or century.
    Bc,
    /// Before a year or century.
    BcBefore,
}

/// The unit of a relative time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Days.
    Day,
    /// Months.
    Month,
    /// Years.
    Year,
}

/// A meaning of the tokens at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sense {
    /// The first of the tokens.
    pub at: u32,
    /// How many they are.
    pub length: u8,
    /// What they mean.
    pub meaning: Meaning,
    /// In which languages.
    pub languages: Languages,
}

/// The longest phrase of the tables, in tokens.
const MAX_TOKENS: usize = 12;

#[derive(Debug, Default)]
struct Node {
    /// Whether a longer phrase begins like this.
    continues: bool,
    meanings: Vec<(Meaning, Languages)>,
}

/// All words and phrases, by a hash of their tokens.
#[derive(Debug, Default)]
pub(super) struct Lexicon(HashMap<u64, Node, FixedState>);

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

/// The tables, read once.
pub(super) fn lexicon() -> &'static Lexicon {
    &LEXICON
}

/// The lines of a table: their fields, without comments.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split('\t').collect())
}

impl Lexicon {
    fn read() -> Self {
        let mut all = Self::default();
        for row in rows(include_str!("data/numbers.tsv")) {
            let [kind, value, words @ ..] = row.as_slice() else { continue };
            let value = value.parse().unwrap_or_default();
            let meaning = if *kind == "ordinal" { Meaning::Ordinal(value) } else { Meaning::Cardinal(value) };
            all.add_fields(words, meaning);
        }
        for row in rows(include_str!("data/scales.tsv")) {
            let [power, words @ ..] = row.as_slice() else { continue };
            all.add_fields(words, Meaning::Scale(power.parse().unwrap_or_default()));
        }
        for row in rows(include_str!("data/months.tsv")) {
            let [clear, month, words @ ..] = row.as_slice() else { continue };
            let month = month.parse().unwrap_or_default();
            all.add_fields(words, Meaning::Month { month, clear: *clear == "clear" });
        }
        for (unit, words) in units::words() {
            all.add_fields(&words, Meaning::Unit(unit));
        }
        for row in rows(include_str!("data/hedges.tsv")) {
            let [class, side, words @ ..] = row.as_slice() else { continue };
            let hedge = match *class {
                "about" => Hedge::About,
                "atleast" => Hedge::AtLeast,
                "atmost" => Hedge::AtMost,
                "more" => Hedge::More,
                "less" => Hedge::Less,
                "after" => Hedge::After,
                "before" => Hedge::Before,
                "since" => Hedge::Since,
                "until" => Hedge::Until,
                _ => Hedge::None,
            };
            all.add_fields(words, Meaning::Hedge(hedge, *side == "before"));
        }
        for row in rows(include_str!("data/markers.tsv")) {
            let [class, words @ ..] = row.as_slice() else { continue };
            let marker = match *class {
                "not" => Marker::Not,
                "cause" => Marker::Cause,
                "all" => Marker::All,
                _ => Marker::Only,
            };
            all.add_fields(words, Meaning::Marker(marker));
        }
        all.read_times();
        all
    }

    fn read_times(&mut self) {
        for row in rows(include_str!("data/relative.tsv")) {
            let [unit, count, words @ ..] = row.as_slice() else { continue };
            let count = count.parse().unwrap_or_default();
            let meaning = match *unit {
                "day" => Meaning::Relative(Span::Day, count),
                "month" => Meaning::Relative(Span::Month, count),
                "year" => Meaning::Relative(Span::Year, count),
                _ => Meaning::Ago,
            };
            self.add_fields(words, meaning);
        }
        for row in rows(include_str!("data/signs.tsv")) {
            let [kind, words @ ..] = row.as_slice() else { continue };
            let sign = match *kind {
                "minus" => Sign::Minus,
                "below" => Sign::Below,
                "south" => Sign::South,
                "bc" => Sign::Bc,
                _ => Sign::BcBefore,
            };
            self.add_fields(words, Meaning::Sign(sign));
        }
        for row in rows(include_str!("data/stop_words.tsv")) {
            let [code, words] = row.as_slice() else { continue };
            let languages = Languages::of_code(code).unwrap_or(Languages::ANY);
            words.split('|').for_each(|word| self.add(word, Meaning::Small, languages));
        }
    }

    fn add_fields(&mut self, fields: &[&str], meaning: Meaning) {
        for (languages, words) in fields.iter().map(|words| field(words)) {
            words
                .split('|')
                .filter(|word| !word.is_empty())
                .for_each(|word| self.add(word, meaning, languages));
        }
    }

    fn add(&mut self, phrase: &str, meaning: Meaning, languages: Languages) {
        let folded = Folded::new(phrase);
        let tokens = Tokens::new(folded.text());
        let mut path = 0;
        let mut steps = tokens.all().iter().filter(|token| !joins(token)).peekable();
        while let Some(token) = steps.next() {
            path = step(path, token);
            let node = self.0.entry(path).or_default();
            node.continues |= steps.peek().is_some();
        }
        let node = self.0.entry(path).or_default();
        match node.meanings.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, known)) => known.0 |= languages.0,
            None => node.meanings.push((meaning, languages)),
        }
    }

    /// Every meaning of every word and phrase of a text, in order of their places, and how many stand before each token.
    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    pub(super) fn senses(&self, tokens: &[Token]) -> (Vec<Sense>, Vec<u32>) {
        let (mut senses, mut starts) =
            (Vec::with_capacity(tokens.len()), Vec::with_capacity(tokens.len() + 1));
        for at in 0..tokens.len() {
            starts.push(senses.len() as u32);
            self.senses_at(tokens, at, &mut senses);
        }
        starts.push(senses.len() as u32);
        (senses, starts)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "texts are far shorter than 4 GiB, and phrases are short"
    )]
    fn senses_at(&self, tokens: &[Token], at: usize, senses: &mut Vec<Sense>) {
        let mut path = 0;
        for (nth, token) in tokens[at..].iter().take(MAX_TOKENS).enumerate() {
            // A hyphen or apostrophe within a phrase is as good as a space, but no phrase begins with one.
            if nth > 0 && joins(token) {
                continue;
            }
            path = step(path, token);
            let Some(node) = self.0.get(&path) else { return };
            senses.extend(node.meanings.iter().map(|(meaning, languages)| Sense {
                at: at as u32,
                length: nth as u8 + 1,
                meaning: *meaning,
                languages: *languages,
            }));
            if !node.continues {
                return;
            }
        }
    }
}

fn joins(token: &Token) -> bool {
    token.is_mark('-') || token.is_mark('\'') || token.is_mark('.')
}

const fn step(path: u64, token: &Token) -> u64 {
    (path.rotate_left(11) ^ token.hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
