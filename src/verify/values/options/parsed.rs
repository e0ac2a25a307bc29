//! An option as it is compared: its values, and every other word of it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::super::language::Languages;
use super::super::lexicon::{Marker, Meaning, rows};
use super::super::reading::{Found, Reading};
use super::super::value::Value;
use super::super::wording::with_value;
use crate::verify::values::numbers::units;
use crate::verify::words::{Folded, Script, Token};

/// A word or mark that stands beside the values.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    /// In small letters, but for short words behind a number: they may be units that differ by case.
    text: String,
    /// Whether it carries nothing by itself, so that amounts can be compared in spite of it.
    is_small: bool,
}

/// How a value is written, where that changes what it means.
#[derive(Debug, Default, PartialEq, Eq)]
struct Form {
    /// Its decimals end in a zero, as those of a version may.
    ends_in_zero: bool,
    /// It is a place in an order: 14th, fourteenth.
    is_ordinal: bool,
}

/// An option's values, and what else it says.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) values: Vec<Found>,
    forms: Vec<Form>,
    rest: Vec<Word>,
}

/// The most letters of a word behind a number that may be a unit told by case.
const MAX_UNIT_LETTERS: u8 = 3;

/// What a word of `option_words.tsv` is, in the order of its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Article,
    Day,
    Year,
    Range,
}

static ROLES: LazyLock<HashMap<&str, Role>> = LazyLock::new(|| {
    let role = |name: &str| match name {
        "article" => Role::Article,
        "day" => Role::Day,
        "year" => Role::Year,
        _ => Role::Range,
    };
    let rows = rows(include_str!("../data/option_words.tsv"));
    let mut all = HashMap::new();
    for row in rows {
        let [name, words] = row.as_slice() else { continue };
        words.split('|').for_each(|word| _ = all.entry(word).or_insert(role(name)));
    }
    all
});

impl Parsed {
    pub(super) fn read(option: &str, languages: Languages) -> Self {
        let option = with_value(unquoted(option));
        let folded = Folded::new(&option);
        let reading = Reading::of_folded(folded.text(), Some(languages));
        Words::new(folded.text(), &reading).parsed()
    }

    /// The only value, if it has one reading.
    pub(super) fn single(&self) -> Option<(&Found, Value)> {
        match self.values.as_slice() {
            [found] => Some((found, found.readings.first().copied().filter(|_| found.readings.len() == 1)?)),
            _ => None,
        }
    }

    /// Whether each value has but one reading, and there is one.
    pub(super) fn is_clear(&self) -> bool {
        !self.values.is_empty() && self.values.iter().all(|found| found.readings.len() == 1)
    }

    /// Whether all that stands beside the values is the same, to the letter.
    pub(super) fn has_rest_of(&self, other: &Self) -> bool {
        self.rest == other.rest
    }

    /// Whether it has all words that stand beside the values of another.
    pub(super) fn has_words_of(&self, other: &Self) -> bool {
        other.rest.iter().all(|word| self.rest.contains(word))
    }

    /// Whether what stands beside the values, but for small words, is the same: their amounts can be compared.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        let is_large = |word: &&Word| !word.is_small;
        let (one, other) = (self.rest.iter().filter(is_large), other.rest.iter().filter(is_large));
        one.map(|word| &word.text).eq(other.map(|word| &word.text))
    }

    /// Whether the values of both at a position may be compared as numbers: neither a version nor a place in an order
    /// beside an amount.
    pub(super) fn has_form_of(&self, other: &Self, at: usize) -> bool {
        let (Some(form), Some(other_form)) = (self.forms.get(at), other.forms.get(at)) else { return false };
        let is_bare = self.values.get(at).is_some_and(|found| found.unit.is_none());
        form.is_ordinal == other_form.is_ordinal
            && !(is_bare && (form.ends_in_zero || other_form.ends_in_zero))
    }
}

/// A text without the quotation marks around it. Without one before it, one behind a number may be a unit.
fn unquoted(text: &str) -> &str {
    let is_quote = |c: char| "\"'`“”„‘’‚«»‹›「」『』".contains(c);
    let text = text.trim();
    let bare = text.trim_start_matches(is_quote);
    if bare.len() < text.len() { bare.trim_end_matches(is_quote) } else { bare }
}

/// The words of an option, and which of them have been accounted for.
struct Words<'a> {
    text: &'a str,
    reading: &'a Reading,
    tokens: &'a [Token],
    is_taken: Vec<bool>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str, reading: &'a Reading) -> Self {
        let tokens = reading.tokens().all();
        Self { text, reading, tokens, is_taken: vec![false; tokens.len()] }
    }

    fn parsed(mut self) -> Parsed {
        let values = self.reading.values();
        for found in values {
            self.take(&found.range);
            self.take(&found.bound);
        }
        let places: Vec<Range<usize>> =
            values.iter().map(|found| self.reading.tokens().within(&found.range)).collect();
        let mut forms = Vec::with_capacity(values.len());
        for (at, (found, place)) in values.iter().zip(&places).enumerate() {
            forms.push(self.form(found, place));
            self.take_before(found, place.start);
            if found.year().is_some() && self.role(place.end) == Some(Role::Year) {
                self.is_taken[place.end] = true;
            }
            if let Some(next) = places.get(at + 1).filter(|_| found.begins_range) {
                self.is_taken[place.end..next.start.max(place.end)].fill(true);
            }
        }
        self.take_articles();
        self.take_points();
        let first_value = places.first().map_or(usize::MAX, |place| place.start);
        let is_value = |at: usize| places.iter().any(|place| place.start == at);
        let rest = (0..self.tokens.len()).filter(|at| !self.is_taken[*at] || is_value(*at));
        // The place of a value among the words is a word too.
        let word = |at: usize| {
            if is_value(at) {
                return Word { text: String::new(), is_small: true };
            }
            self.rest(at, at > first_value)
        };
        let rest = rest.map(word).collect();
        Parsed { values: values.to_vec(), forms, rest }
    }

    fn take(&mut self, range: &Range<usize>) {
        let place = self.reading.tokens().within(range);
        self.is_taken[place].fill(true);
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).and_then(|token| self.text.get(token.range())).unwrap_or_default()
    }

    fn role(&self, at: usize) -> Option<Role> {
        ROLES.get(self.word(at).to_lowercase().as_str()).copied()
    }

    fn form(&mut self, found: &Found, place: &Range<usize>) -> Form {
        const ENDINGS: [&str; 12] = ["st", "nd", "rd", "th", "er", "re", "ère", "ème", "ième", "º", "ª", "й"];
        let written = self.text.get(found.range.clone()).unwrap_or_default();
        let digits = written.trim_end_matches(|c: char| !c.is_ascii_digit());
        let behind = digits.rsplit_once(['.', ',']).map_or("", |(_, behind)| behind);
        let has_ending = self.tokens.get(place.end).is_some_and(|token| !token.spaced)
            && ENDINGS.contains(&self.word(place.end));
        if has_ending {
            self.is_taken[place.end] = true;
        }
        let is_in_words = self.reading.senses_within(place).any(|sense| {
            matches!(sense.meaning, Meaning::Ordinal(_))
                && sense.at as usize + usize::from(sense.length) == place.end
        });
        Form {
            ends_in_zero: behind.ends_with('0') && behind.len() != 3,
            is_ordinal: has_ending || is_in_words,
        }
    }

    /// Takes what stands before a value and belongs to it: its currency, what opens its range, "on" before a day.
    fn take_before(&mut self, found: &Found, start: usize) {
        let is_time =
            found.year().is_some() || found.readings.iter().any(|value| !matches!(value, Value::Number(_)));
        let mut at = start;
        while let Some(before) = at.checked_sub(1) {
            let belongs = self.is_taken[before]
                || self.is_unit(found, before)
                || match self.role(before) {
                    Some(Role::Day) => is_time,
                    Some(Role::Article) => is_time && self.word(before) != "a",
                    Some(Role::Range) => found.begins_range,
                    _ => false,
                };
            if !belongs {
                break;
            }
            self.is_taken[before] = true;
            at = before;
        }
    }

    /// Whether a token is the unit of a value, or a part of its symbol.
    fn is_unit(&self, found: &Found, at: usize) -> bool {
        let Some(unit) = found.unit else { return false };
        let token = at..at + 1;
        let is_word = self.reading.senses_within(&token).any(|sense| sense.meaning == Meaning::Unit(unit));
        let written = self.word(at);
        is_word
            || units::symbol(written)
                .is_some_and(|(symbol, length)| symbol == unit && length == written.len())
            || unit.symbols().any(|symbol| symbol.len() > written.len() && symbol.contains(written))
    }

    fn take_articles(&mut self) {
        for at in 0..self.tokens.len() {
            let follows_value = at > 0 && self.is_taken[at - 1];
            let is_bare_a = self.word(at) == "a" || self.word(at) == "A";
            let precedes_number = self.tokens.get(at + 1).is_some_and(|next| next.script == Script::Digits);
            if self.role(at) == Some(Role::Article)
                && !follows_value
                && at + 1 < self.tokens.len()
                && !(is_bare_a && (precedes_number || self.word(at) == "A" && at > 0))
            {
                self.is_taken[at] = true;
            }
        }
    }

    /// Takes the points and commas that separate words, or end the option; not one before a digit.
    fn take_points(&mut self) {
        for at in 0..self.tokens.len() {
            let is_joined =
                self.tokens.get(at + 1).is_some_and(|next| !next.spaced && next.script == Script::Digits);
            let is_last = self.tokens[at..].iter().all(|token| token.script == Script::Mark);
            let is_point = self.tokens[at].is_mark('.') || self.tokens[at].is_mark(',');
            let is_end = matches!(self.tokens[at].first, ';' | ':' | '!' | '?' | '。' | '、');
            if is_point && (!is_joined || is_last) || is_end && is_last {
                self.is_taken[at] = true;
            }
        }
    }

    fn rest(&self, at: usize, is_behind_value: bool) -> Word {
        let token = &self.tokens[at];
        let may_be_unit = is_behind_value && token.chars <= MAX_UNIT_LETTERS;
        let text = if may_be_unit { self.word(at).to_owned() } else { self.word(at).to_lowercase() };
        let senses = || {
            self.reading.senses().iter().filter(|sense| {
                let from = sense.at as usize;
                (from..from + usize::from(sense.length)).contains(&at)
            })
        };
        let is_small = match token.script {
            Script::Mark => !matches!(token.first, '-' | '+' | '/'),
            _ => {
                !(may_be_unit && token.chars == 1)
                    && senses().any(|sense| matches!(sense.meaning, Meaning::Small | Meaning::Hedge(..)))
                    && !senses().any(|sense| sense.meaning == Meaning::Marker(Marker::Not))
            }
        };
        Word { text, is_small }
    }
}
