//! Numbers of a text that nobody need ask for by themselves, and sentences that mean nothing by themselves.
//!
//! A claim that has a number only in its question leaves it unchecked. These may stand there: a number that belongs to a
//! name (Apollo 11, type 1), a small one in words (both, the second largest), and what is reckoned with (2 + 2 = 4).

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use crate::verify::anchors::is_word_of_names;
use crate::verify::document::Finder;
use crate::verify::values::Found;
use crate::verify::words::{Script, Token};

/// The largest number in words that says which or how many of what is named beside it.
const MOST_IN_WORDS: i64 = 12;
/// The largest number in digits that belongs to a name. A year behind one tells when.
const MOST_OF_NAMES: i64 = 999;

/// The longest mark in brackets, from either end of a word in it, in characters.
const MAX_MARK_CHARS: usize = 40;

/// What stands between two numbers that are reckoned with.
const SIGNS: [char; 6] = ['+', '-', '×', '÷', '*', '/'];
const OPERATIONS: [&str; 8] = ["plus ", "minus ", "times ", "mal ", "fois ", "por ", "più ", "плюс "];

type Words = HashSet<&'static str>;

/// Words that stand for what another sentence names.
static PRONOUNS: LazyLock<Words> = LazyLock::new(|| words(include_str!("../data/pronouns.tsv")));
/// Words that a number behind them belongs to.
static NUMBERED: LazyLock<Words> = LazyLock::new(|| words(include_str!("../data/numbered.tsv")));

/// The words of a table, whatever their language.
fn words(table: &'static str) -> Words {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('\t')).flat_map(|(_, words)| words.split('|')).collect()
}

/// Whether the subject of a sentence is likely to stand before it, so that the same words mean something else each time.
pub(super) fn begins_with_pronoun(finder: &Finder, range: &Range<usize>) -> bool {
    let place = finder.folded().folded(range);
    let tokens = finder.reading().tokens();
    let first = tokens.all()[tokens.within(&place)].iter().find(|token| token.is_word());
    let word = first.and_then(|token| finder.folded().text().get(token.range()));
    word.is_some_and(|word| PRONOUNS.contains(word.to_lowercase().as_str()))
}

/// Whether a word stands in square brackets that have no space: a reference or a mark, such as `[12]` or `[sic]`.
pub(super) fn is_mark(finder: &Finder, token: &Token) -> bool {
    let text = finder.folded().text();
    let (before, behind) = (text.get(..token.range().start), text.get(token.range().end..));
    let is_end = |c: &char| c.is_whitespace() || matches!(c, '[' | ']');
    let opens = before.unwrap_or_default().chars().rev().take(MAX_MARK_CHARS).find(is_end);
    opens == Some('[') && behind.unwrap_or_default().chars().take(MAX_MARK_CHARS).find(is_end) == Some(']')
}

/// The value that a word or digits are a part of.
pub(super) fn value_around(finder: &Finder, token: &Token) -> Option<usize> {
    let (values, start) = (finder.reading().values(), token.start as usize);
    let at = values.partition_point(|found| found.range.end <= start);
    values.get(at).filter(|found| found.range.start <= start).map(|_| at)
}

/// Whether a value of a sentence may stand in questions alone. `is_equation`: whether the sentence [says that things are
/// equal](is_equation).
pub(super) fn need_not_be_asked(finder: &Finder, is_equation: bool, at: usize) -> bool {
    is_of_a_word(finder, &finder.reading().values()[at])
        || is_reckoned_with(finder, is_equation, at)
        || at.checked_sub(1).is_some_and(|before| is_reckoned_with(finder, is_equation, before))
}

/// Whether a sentence has a sign of equality.
pub(super) fn is_equation(finder: &Finder, sentence: &Range<usize>) -> bool {
    finder.folded().text().get(sentence.clone()).is_some_and(|sentence| sentence.contains(['=', '≈']))
}

/// Whether a number belongs to the words around it.
fn is_of_a_word(finder: &Finder, found: &Found) -> bool {
    let is_at_most =
        |most: i64| found.numbers().any(|number| number.whole().is_none_or(|one| (0..=most).contains(&one)));
    let (reading, text) = (finder.reading(), finder.folded().text());
    let tokens = reading.tokens();
    let within = tokens.within(&found.range);
    if found.unit.is_some() {
        return false;
    }
    if !tokens.all()[within.clone()].iter().any(|token| token.script == Script::Digits) {
        return is_at_most(MOST_IN_WORDS);
    }
    let is_numbered = |token: &Token| {
        let word = text.get(token.range()).unwrap_or_default().to_lowercase();
        NUMBERED.contains(word.as_str())
    };
    // iPhone, macOS.
    let has_inner_capital = |token: &Token| {
        token.is_word()
            && text.get(token.range()).is_some_and(|word| word.chars().skip(1).any(char::is_uppercase))
    };
    let is_name = |at: usize| {
        let token = &tokens.all()[at];
        is_word_of_names(reading, at) || has_inner_capital(token) || is_numbered(token)
    };
    let before = within.start.checked_sub(1);
    is_at_most(MOST_OF_NAMES)
        && before.is_some_and(|before| match tokens.all()[before].first {
            '§' | '#' | '№' => true,
            // Covid-19, Article 12(3).
            '-' | '(' if !tokens.all()[before].spaced => before.checked_sub(1).is_some_and(|name| {
                tokens.all()[name].script == Script::Digits || is_word_of_names(reading, name)
            }),
            // No. 5.
            '.' => before.checked_sub(1).is_some_and(|word| is_numbered(&tokens.all()[word])),
            _ => is_name(before),
        })
}

/// Whether a value of a sentence and the next are reckoned with: 2 + 2 = 4, two plus two.
fn is_reckoned_with(finder: &Finder, is_equation: bool, at: usize) -> bool {
    let (values, text) = (finder.reading().values(), finder.folded().text());
    let (Some(one), Some(next)) = (values.get(at), values.get(at + 1)) else { return false };
    let between = text.get(one.range.end..next.range.end).unwrap_or_default().trim_start();
    let behind = between.strip_prefix(SIGNS).filter(|_| is_equation);
    let behind = behind.or_else(|| OPERATIONS.iter().find_map(|word| between.strip_prefix(word)));
    behind.is_some_and(|behind| behind.trim_start().len() <= next.range.len())
}
