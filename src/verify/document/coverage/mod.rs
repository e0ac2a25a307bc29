//! What of a text no claim and no skipped part accounts for (CONTRACT 4.6).
//!
//! The contract asks that a quote touches each sentence. Here a quote counts only for what it is about, since one quote
//! around a whole text would account for all of it otherwise: one over several sentences counts for those whose words
//! mostly stand in its claim, a skipped part for the sentence whose words it mostly holds, and a duplicate for what
//! something else says.

use std::ops::Range;

use super::finder::Finder;
use super::text::{Document, Kind};
use crate::verify::anchors::{is_shortened, name_tokens};
use crate::verify::values::{Index, Meaning, Number, Reading, Value, roman};
use crate::verify::words::{Folded, Script, Stems, Token};

/// A sentence that is not accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which sentence of the document.
    pub sentence: usize,
    /// Numbers, dates and times of it that stand in no claim and no skipped part, as they stand in the text.
    pub values: Vec<String>,
    /// Names of it that do not.
    pub names: Vec<String>,
    /// Whether a claim or a skipped part is about it.
    pub touched: bool,
}

/// What accounts for a part of a text.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// Where its quote stands, in bytes of the text.
    pub quote: Range<usize>,
    /// What a claim says; of other parts, their own words.
    pub says: &'a str,
    /// What it is.
    pub kind: AccountKind,
}

/// What accounts for a part of a text, by what it may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// A claim: for what it says.
    Claim,
    /// A skipped part: for its own words.
    Skipped,
    /// A part that was skipped as said already: for what something else says.
    Duplicate,
}

/// What claims and skipped parts say, read once.
struct Said {
    index: Index,
    stems: Stems,
}

impl Said {
    fn new<'s>(finder: &Finder, texts: impl Iterator<Item = &'s str>) -> Self {
        let all: Vec<&str> = texts.collect();
        let folded = Folded::new(&all.join("\n"));
        let reading = Reading::within(folded.text(), finder.reading().languages());
        let mut stems = Stems::default();
        stems.add(folded.text(), reading.tokens().all());
        Self { index: Index::new(folded.text(), &reading), stems }
    }

    /// What accounts other than duplicates say, and some `more`. Parts of the text itself are not read again: most of a
    /// text may be skipped.
    fn by(finder: &Finder, accounts: &[Account<'_>], more: Option<&str>) -> Self {
        let claims = accounts.iter().filter(|account| account.kind == AccountKind::Claim);
        let mut said = Self::new(finder, claims.map(|account| account.says).chain(more));
        for part in accounts.iter().filter(|account| account.kind == AccountKind::Skipped) {
            let place = finder.folded().folded(&part.quote);
            let tokens = finder.reading().tokens();
            said.stems.add(finder.folded().text(), &tokens.all()[tokens.within(&place)]);
            said.index.add_values(finder.reading(), &place);
        }
        said
    }

    fn has(&self, value: Value) -> bool {
        match value {
            Value::Number(number) => !self.index.number(number).is_empty(),
            Value::Date(date) => !self.index.month(date.month, date.day).is_empty(),
            Value::Time(time) => !self.index.time(time).is_empty(),
        }
    }

    /// Whether this is said of a word or digits of the text.
    fn has_token(&self, finder: &Finder, at: usize) -> bool {
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

    /// Whether most of what carries a place's meaning is said: half of its words and numbers. Of pairs of characters a
    /// third is as much, since those at the seams of words differ.
    fn has_most(&self, finder: &Finder, content: &[usize]) -> bool {
        let tokens = finder.reading().tokens().all();
        let known = content.iter().filter(|at| self.has_token(finder, **at)).count();
        let singles = content
            .iter()
            .filter(|at| !matches!(tokens[**at].script, Script::Letters | Script::Digits))
            .count();
        let factor = if singles * 2 > content.len() { 3 } else { 2 };
        known * factor >= content.len()
    }

    /// Whether a noticeable part of it is said.
    fn has_some(&self, finder: &Finder, content: &[usize]) -> bool {
        content.iter().filter(|at| self.has_token(finder, **at)).count() * 3 >= content.len()
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
    known: Vec<(Range<usize>, usize)>,
}

impl<'a> Fit<'a> {
    /// The most tokens of a sentence that are looked at.
    const MAX_TOKENS: usize = 500;

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
fn content_of(finder: &Finder, range: &Range<usize>) -> Vec<usize> {
    let place = finder.folded().folded(range);
    content(finder.reading(), finder.reading().tokens().within(&place))
}

/// Whether a part of the text holds most of what a range of it says.
pub fn holds_most(finder: &Finder, part: &Range<usize>, range: &Range<usize>) -> bool {
    let part = finder.folded().folded(part);
    let tokens = finder.reading().tokens().within(&part);
    is_most_within(&content_of(finder, range), std::slice::from_ref(&tokens))
}

fn is_most_within(content: &[usize], parts: &[Range<usize>]) -> bool {
    let is_within = |at: &&usize| parts.iter().any(|part| part.contains(at));
    content.iter().filter(is_within).count() * 2 >= content.len()
}

/// What is known of a sentence while its accounts are gone through.
#[derive(Clone, Default)]
struct Touched {
    by_claim: bool,
    /// The tokens of skipped parts in it.
    skipped: Vec<Range<usize>>,
    duplicates: Vec<Range<usize>>,
}

/// The sentences of a section (or of the whole document, by their positions) that no claim and no skipped part is about,
/// or of which a number or name is missing. The `accounts` may be in any order; `before` is what else a duplicate may
/// repeat.
pub fn coverage(
    document: &Document<'_>,
    finder: &Finder,
    sentences: Range<usize>,
    accounts: &[Account<'_>],
    before: &str,
) -> Vec<Gap> {
    let all = document.sentences().get(sentences.clone()).unwrap_or_default();
    let said = Said::by(finder, accounts, None);
    let has_duplicates = accounts.iter().any(|account| account.kind == AccountKind::Duplicate);
    let said_before = has_duplicates.then(|| Said::by(finder, accounts, Some(before)));
    let mut touched = vec![Touched::default(); all.len()];
    for account in accounts.iter().filter(|account| !account.quote.is_empty()) {
        touch(document, finder, &sentences, account, &mut touched);
    }
    let tokens = finder.reading().tokens();
    let text = finder.folded().text();
    let names = names_within(finder, all);
    let sentences = sentences.zip(all).zip(&touched).filter(|((_, sentence), _)| !sentence.exempt);
    let gaps = sentences.filter_map(|((at, sentence), touched)| {
        let content = content_of(finder, &sentence.range);
        let holds = |parts: &[Range<usize>]| !parts.is_empty() && is_most_within(&content, parts);
        let repeats =
            said_before.as_ref().filter(|said| holds(&touched.duplicates) && said.has_some(finder, &content));
        let is_touched = touched.by_claim || holds(&touched.skipped) || repeats.is_some();
        let said = repeats.unwrap_or(&said);
        let place = finder.folded().folded(&sentence.range);
        let values = missing_values(finder, &place, said, sentence.kind);
        let within = tokens.within(&place);
        let from = names.partition_point(|name| *name < within.start);
        let mut missing = Vec::new();
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
        let is_whole = is_touched && values.is_empty() && missing.is_empty();
        (!is_whole).then_some(Gap { sentence: at, values, names: missing, touched: is_touched })
    });
    gaps.collect()
}

/// Notes which of the sentences an account is about.
fn touch(
    document: &Document<'_>,
    finder: &Finder,
    sentences: &Range<usize>,
    account: &Account<'_>,
    touched: &mut [Touched],
) {
    let under = document.sentences_of(&account.quote);
    let (first, last) = (under.start.max(sentences.start), under.end.min(sentences.end));
    if account.kind == AccountKind::Claim {
        let all = document.sentences();
        let is_wide = all[under].iter().filter(|sentence| !sentence.exempt).count() > 1;
        let said = is_wide.then(|| Said::new(finder, std::iter::once(account.says)));
        for at in first..last {
            let is_about =
                said.as_ref().is_none_or(|said| said.has_most(finder, &content_of(finder, &all[at].range)));
            touched[at - sentences.start].by_claim |= is_about;
        }
        return;
    }
    let place = finder.folded().folded(&account.quote);
    let tokens = finder.reading().tokens().within(&place);
    if finder.reading().tokens().all()[tokens.clone()].iter().all(|token| token.script == Script::Mark) {
        return;
    }
    for at in first..last {
        let touched = &mut touched[at - sentences.start];
        let parts =
            if account.kind == AccountKind::Skipped { &mut touched.skipped } else { &mut touched.duplicates };
        parts.push(tokens.clone());
    }
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

#[cfg(test)]
mod tests;
