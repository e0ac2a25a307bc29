//! What claims say, read once, and what of a text is said by them.

use std::ops::Range;

use super::{Account, AccountKind};
use crate::verify::document::{Document, Finder};
use crate::verify::values::{Found, Index, Meaning, Number, Reading, Value};
use crate::verify::words::{Folded, Script, Stems, Token};

/// What claims and skipped parts say, read once.
pub(super) struct Said {
    pub(super) index: Index,
    pub(super) stems: Stems,
    /// The hashes of its words, in order.
    words: Vec<u64>,
}

impl Said {
    pub(super) fn new<'s>(finder: &Finder, texts: impl Iterator<Item = &'s str>) -> Self {
        let all: Vec<&str> = texts.collect();
        // Two numbers in two texts are not one.
        let folded = Folded::new(&all.join("\n|\n"));
        let reading = Reading::within(folded.text(), finder.reading().languages());
        let mut stems = Stems::default();
        stems.add(folded.text(), reading.tokens().all());
        let words = reading.tokens().all().iter().filter(|token| token.is_word()).map(|token| token.hash);
        Self { index: Index::new(folded.text(), &reading), stems, words: words.collect() }
    }

    /// What claims and skipped parts say. Parts of the text itself are not read again: most of a text may be skipped.
    pub(super) fn by(finder: &Finder, accounts: &[Account<'_>]) -> Self {
        let claims = accounts.iter().filter(|account| account.kind == AccountKind::Claim);
        let mut said = Self::new(finder, claims.map(|account| account.says));
        for part in accounts.iter().filter(|account| account.kind == AccountKind::Skipped) {
            let place = finder.folded().folded(&part.quote);
            let tokens = finder.reading().tokens();
            said.stems.add(finder.folded().text(), &tokens.all()[tokens.within(&place)]);
            said.index.add_values(finder.reading(), &place);
        }
        said
    }

    /// Whether a value is said.
    pub(super) fn has(&self, value: Value) -> bool {
        match value {
            Value::Number(number) => !self.index.number(number).is_empty(),
            Value::Date(date) => !self.index.month(date.month, date.day).is_empty(),
            Value::Time(time) => !self.index.time(time).is_empty(),
        }
    }

    /// Whether a value of the text is said in a unit that may be its own, or all its words are: a month alone is hardly
    /// read as one.
    pub(super) fn has_found(&self, finder: &Finder, found: &Found) -> bool {
        let has_number = |number: Number| {
            let mut manners = self.index.manners(number).iter().peekable();
            // The year of a date has none.
            let is_bare = manners.peek().is_none() && !self.index.number(number).is_empty();
            is_bare
                || manners.any(|(unit, _)| unit.zip(found.unit).is_none_or(|(one, other)| one.may_be(other)))
        };
        let is_said = found.readings.iter().any(|value| match *value {
            Value::Number(number) => has_number(number) || has_number(number.negated()),
            other => self.has(other),
        });
        is_said || finder.reading().tokens().within(&found.range).all(|at| self.has_token(finder, at))
    }

    /// Whether this is said of a word or digits of the text.
    pub(super) fn has_token(&self, finder: &Finder, at: usize) -> bool {
        let (tokens, text) = (finder.reading().tokens().all(), finder.folded().text());
        let token = &tokens[at];
        match token.script {
            Script::Letters => self.stems.has_stem(text, token),
            Script::Digits => {
                let values = finder.reading().values();
                let start = token.start as usize;
                let first = values.partition_point(|found| found.range.end <= start);
                let found = values.get(first).filter(|found| found.range.start <= start);
                found.is_none_or(|found| found.weak || found.readings.iter().any(|value| self.has(*value)))
            }
            _ => {
                let is_next = |next: &&Token| next.start == token.end && next.is_word();
                let next = tokens.get(at + 1).filter(is_next);
                let before = at.checked_sub(1).map(|before| &tokens[before]);
                let before = before.filter(|before| before.end == token.start && before.is_word());
                next.is_some_and(|next| self.stems.has_bigram(token, next))
                    || before.is_some_and(|before| self.stems.has_bigram(before, token))
                    || next.is_none() && before.is_none() && self.stems.has_word(token)
            }
        }
    }

    /// Whether most of what carries a place's meaning is said.
    pub(super) fn has_most(&self, finder: &Finder, content: &[usize]) -> bool {
        let known = content.iter().filter(|at| self.has_token(finder, **at)).count();
        is_most(finder, content, known)
    }

    /// Whether all of it is said.
    pub(super) fn has_all(&self, finder: &Finder, content: &[usize]) -> bool {
        content.iter().all(|at| self.has_token(finder, *at))
    }

    /// Whether all of it is said in the same order: in another, the same words may say the opposite.
    pub(super) fn has_all_in_order(&self, finder: &Finder, content: &[usize]) -> bool {
        let tokens = finder.reading().tokens().all();
        let mut rest = self.words.as_slice();
        let mut is_next = |at: &usize| {
            let hash = tokens[*at].hash;
            match rest.iter().position(|word| *word == hash) {
                Some(place) => rest = &rest[place + 1..],
                None => return !self.words.contains(&hash),
            }
            true
        };
        self.has_all(finder, content) && content.iter().all(&mut is_next)
    }
}

/// Whether so many tokens are most of some: more than half. Of pairs of characters a third is as much, since those at the
/// seams of words differ.
pub(super) fn is_most(finder: &Finder, content: &[usize], known: usize) -> bool {
    let tokens = finder.reading().tokens().all();
    let is_single = |at: &&usize| !matches!(tokens[**at].script, Script::Letters | Script::Digits);
    let singles = content.iter().filter(is_single).count();
    match content.len() {
        0 => true,
        all if singles * 2 > all => known * 3 >= all,
        all => known * 2 > all,
    }
}

/// How two texts that may say the same compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// All words and values of each stand in the other.
    Same,
    /// Names and values do, other words differ.
    Near,
    /// One has a name or a value that the other has not.
    Different,
}

/// How two texts compare that may say the same, whatever the order of their words.
pub fn likeness(finder: &Finder, one: &str, other: &str) -> Likeness {
    let compared = |text: &str, other: &str| {
        let said = Said::new(finder, std::iter::once(other));
        let folded = Folded::new(text);
        let reading = Reading::within(folded.text(), finder.reading().languages());
        let tokens = reading.tokens().all();
        let mut likeness = Likeness::Same;
        for at in content(&reading, 0..tokens.len()) {
            let token = &tokens[at];
            let is_said = match token.script {
                Script::Letters => said.stems.has_stem(folded.text(), token),
                // Digits are parts of values.
                Script::Digits => true,
                _ => said.stems.has_word(token),
            };
            match (is_said, token.first.is_lowercase()) {
                (true, _) => {}
                (false, true) => likeness = Likeness::Near,
                (false, false) => return Likeness::Different,
            }
        }
        let mut values = reading.values().iter().filter(|found| !found.weak);
        if values.all(|found| found.readings.iter().any(|value| said.has(*value))) {
            likeness
        } else {
            Likeness::Different
        }
    };
    match (compared(one, other), compared(other, one)) {
        (Likeness::Same, Likeness::Same) => Likeness::Same,
        (Likeness::Different, _) | (_, Likeness::Different) => Likeness::Different,
        _ => Likeness::Near,
    }
}

/// Which of some tokens carry what a text says: all but small words and marks.
fn content(reading: &Reading, within: Range<usize>) -> Vec<usize> {
    let mut is_small = vec![false; within.len()];
    for sense in reading.senses_within(&within).filter(|sense| sense.meaning == Meaning::Small) {
        let from = sense.at as usize - within.start;
        let end = (from + usize::from(sense.length)).min(is_small.len());
        is_small[from..end].fill(true);
    }
    let tokens = reading.tokens().all();
    let small = |at: usize| is_small[at - within.start];
    let carries = |at: &usize| match tokens[*at].script {
        Script::Letters => tokens[*at].chars > 1 && !small(*at),
        Script::Mark => false,
        _ => true,
    };
    within.clone().filter(carries).collect()
}

/// The sentence of some that says most of what a passage says which does not stand in the text word for word; `None` if
/// none says the half of it.
pub fn nearest(
    document: &Document<'_>,
    finder: &Finder,
    sentences: Range<usize>,
    passage: &str,
) -> Option<usize> {
    let said = Said::new(finder, std::iter::once(passage));
    let folded = Folded::new(passage);
    let reading = Reading::within(folded.text(), finder.reading().languages());
    let words = content(&reading, 0..reading.tokens().all().len()).len();
    let shared = |at: usize| {
        let content = content_of(finder, &document.sentences()[at].range);
        content.into_iter().filter(|token| said.has_token(finder, *token)).count()
    };
    let sentences = sentences.filter(|at| document.sentences().get(*at).is_some_and(|one| !one.exempt));
    let (shared, nearest) = sentences.map(|at| (shared(at), at)).max_by_key(|(shared, at)| {
        // Of equal ones the first.
        (*shared, std::cmp::Reverse(*at))
    })?;
    (shared > 0 && shared * 2 >= words).then_some(nearest)
}

/// How well places of a text fit what is said: of those where a quote may be meant, the one with the most of it fits
/// best. A sentence may be as long as the text and hold all of the places, so each is read once, and not to its end.
pub struct Fit<'a> {
    document: &'a Document<'a>,
    finder: &'a Finder,
    said: Said,
    /// What was found, by the sentences of a place.
    pub(super) known: Vec<(Range<usize>, usize)>,
}

impl<'a> Fit<'a> {
    /// The most tokens of a sentence that are looked at.
    pub(super) const MAX_TOKENS: usize = 500;

    /// Reads what is said.
    pub fn new(document: &'a Document<'a>, finder: &'a Finder, said: &str) -> Self {
        Self { document, finder, said: Said::new(finder, std::iter::once(said)), known: Vec::new() }
    }

    /// How many words of the sentences at a place are said.
    pub fn of(&mut self, place: &Range<usize>) -> usize {
        let sentences = self.document.sentences_of(place);
        if let Some((_, fit)) = self.known.iter().find(|(known, _)| *known == sentences) {
            return *fit;
        }
        let reading = self.finder.reading();
        let words = |range: &Range<usize>| {
            let tokens = reading.tokens().within(&self.finder.folded().folded(range));
            content(reading, tokens.start..tokens.end.min(tokens.start + Self::MAX_TOKENS))
        };
        let all =
            self.document.sentences()[sentences.clone()].iter().flat_map(|sentence| words(&sentence.range));
        let fit = all.filter(|token| self.said.has_token(self.finder, *token)).count();
        self.known.push((sentences, fit));
        fit
    }
}

/// The tokens that carry what a range of the text says.
pub(super) fn content_of(finder: &Finder, range: &Range<usize>) -> Vec<usize> {
    let place = finder.folded().folded(range);
    content(finder.reading(), finder.reading().tokens().within(&place))
}

/// Whether a part of the text holds most of what a range of it says.
pub fn holds_most(finder: &Finder, part: &Range<usize>, range: &Range<usize>) -> bool {
    let part = finder.folded().folded(part);
    let tokens = finder.reading().tokens().within(&part);
    is_most_within(&content_of(finder, range), std::slice::from_ref(&tokens))
}

pub(super) fn is_most_within(content: &[usize], parts: &[Range<usize>]) -> bool {
    let is_within = |at: &&usize| parts.iter().any(|part| part.contains(at));
    content.iter().filter(is_within).count() * 2 >= content.len()
}
