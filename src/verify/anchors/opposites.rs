//! Words of a claim that say the opposite of what the text says around its quote: rose and fell, north and south, by and to.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use memchr::memmem;

use super::check::Case;
use super::fault::{Fault, FaultKind, Severity};
use super::numbers::near;
use crate::verify::values::Found;
use crate::verify::words::{Token, Tokens};

/// A pair by its row, and which of its sides.
type Side = (usize, bool);

/// The sides that words have: by the hash of a single token, or as texts in scripts without spaces.
struct Table {
    words: HashMap<u64, Vec<Side>, FixedState>,
    /// Each prepared once, as every claim looks for all of them; first those of ASCII.
    phrases: Vec<(memmem::Finder<'static>, Side)>,
    /// How many of the phrases are of ASCII, and so may stand in a text of ASCII.
    ascii_phrases: usize,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { words: HashMap::default(), phrases: Vec::new(), ascii_phrases: 0 };
    let lines = include_str!("data/opposites.tsv").lines().filter(|line| !line.starts_with('#'));
    for (row, (one, other)) in lines.filter_map(|line| line.split_once('\t')).enumerate() {
        let words = one.split('|').map(|word| (word, true)).chain(other.split('|').map(|word| (word, false)));
        for (word, side) in words {
            match Tokens::new(word).all() {
                [token] => table.words.entry(token.hash).or_default().push((row, side)),
                _ => table.phrases.push((memmem::Finder::new(word), (row, side))),
            }
        }
    }
    // In the order of the file otherwise.
    table.phrases.sort_by_key(|(phrase, _)| !phrase.needle().is_ascii());
    table.ascii_phrases = table.phrases.partition_point(|(phrase, _)| phrase.needle().is_ascii());
    table
});

/// Words before a number of which one says the difference and one the end: rose by 5 %, rose to 5 %.
const DIRECTIONS: [(&str, &str); 6] =
    [("by", "to"), ("um", "auf"), ("de", "à"), ("del", "al"), ("met", "tot"), ("на", "до")];

/// The most tokens of a place that are looked at.
const MAX_TOKENS: usize = 2_000;

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    let mut claimed = sides(case.claim.text(), case.claim.reading.tokens().all());
    if !claimed.is_empty() {
        let around = said(case, &case.zone.all);
        let said = said(case, std::slice::from_ref(&case.zone.sentences));
        let all = claimed.clone();
        claimed.retain(|((row, side), _)| {
            let has = |sides: &[Side], side: bool| sides.contains(&(*row, side));
            has(&said, !side)
                && !has(&around, *side)
                && !all.iter().any(|((other, turned), _)| other == row && turned != side)
        });
        if let Some((_, place)) = claimed.first() {
            let word = case.claim.text().get(place.clone()).unwrap_or_default();
            faults.push(Fault::new(Severity::Soft, FaultKind::Opposite, word));
        }
    }
    let turned =
        case.claim.reading.values().iter().find(|found| !found.weak && is_directed_otherwise(case, found));
    faults.extend(turned.map(|found| {
        let start = found.range.start.saturating_sub(word_before(case.claim.text(), found).len() + 1);
        let shown = case.claim.text().get(start..found.range.end).unwrap_or_default();
        Fault::new(Severity::Soft, FaultKind::Opposite, shown)
    }));
}

/// The sides that the words of a text have, with their places.
fn sides(text: &str, tokens: &[Token]) -> Vec<(Side, Range<usize>)> {
    let table = &*TABLE;
    let words = tokens.iter().filter_map(|token| Some((table.words.get(&token.hash)?, token.range())));
    let words = words.flat_map(|(sides, place)| sides.iter().map(move |side| (*side, place.clone())));
    let possible = if text.is_ascii() { table.ascii_phrases } else { table.phrases.len() };
    let phrases = table.phrases[..possible].iter().filter_map(|(phrase, side)| {
        let at = phrase.find(text.as_bytes())?;
        Some((*side, at..at + phrase.needle().len()))
    });
    words.chain(phrases).collect()
}

/// The sides that the words at some places of the text have.
fn said(case: &Case<'_>, places: &[Range<usize>]) -> Vec<Side> {
    let text = case.finder.folded().text();
    let tokens = case.finder.reading().tokens();
    let one = |place: &Range<usize>| {
        let within = tokens.within(place);
        let tokens = &tokens.all()[within.start..within.end.min(within.start + MAX_TOKENS)];
        let (start, end) =
            (tokens.first().map_or(0, |token| token.start), tokens.last().map_or(0, |token| token.end));
        sides(text.get(start as usize..end as usize).unwrap_or_default(), tokens)
    };
    places.iter().flat_map(one).map(|(side, _)| side).collect()
}

/// Whether a number that all have "by" before it in the text has "to" in the claim, or the other way round.
fn is_directed_otherwise(case: &Case<'_>, found: &Found) -> bool {
    let word = word_before(case.claim.text(), found);
    let opposite = DIRECTIONS.iter().find_map(|(by, to)| {
        let other = if word == *by { Some(*to) } else { None };
        other.or_else(|| (word == *to).then_some(*by))
    });
    let Some(opposite) = opposite else { return false };
    let text = case.finder.folded().text();
    let mut written = found.numbers().flat_map(|number| near(case, number, &case.zone.all)).peekable();
    written.peek().is_some() && written.all(|written| word_before(text, written) == opposite)
}

/// The word right before a value or its hedge.
fn word_before<'t>(text: &'t str, found: &Found) -> &'t str {
    let before = text.get(..found.begin()).unwrap_or_default().trim_end_matches(' ');
    let from =
        before.char_indices().rev().find(|(_, c)| !c.is_alphabetic()).map_or(0, |(at, c)| at + c.len_utf8());
    &before[from..]
}
