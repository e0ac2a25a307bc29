//! A text under reading: its tokens, and what they mean in its language.

use std::ops::Range;

use super::language::Languages;
use super::lexicon::{Meaning, Sense};
use crate::verify::words::{Script, Token};

/// Which senses begin at each token.
#[derive(Debug, Default)]
pub(super) struct Starts(Vec<u32>);

impl Starts {
    /// Of senses that are in order.
    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    pub(super) fn new(tokens: usize, senses: &[Sense]) -> Self {
        let mut starts = Vec::with_capacity(tokens + 1);
        for (nth, sense) in senses.iter().enumerate() {
            if starts.len() <= sense.at as usize {
                starts.resize(sense.at as usize + 1, nth as u32);
            }
        }
        starts.resize(tokens + 1, senses.len() as u32);
        Self(starts)
    }

    fn of(&self, at: usize) -> Option<Range<usize>> {
        Some(*self.0.get(at)? as usize..*self.0.get(at + 1)? as usize)
    }
}

/// What readers of values look at.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
    pub(super) senses: &'a [Sense],
    /// For each token which senses begin there.
    pub(super) starts: &'a Starts,
    pub(super) languages: Languages,
    /// Whether the language decides how digits are grouped; otherwise every reading is kept.
    pub(super) strict: bool,
}

impl<'a> Cursor<'a> {
    /// The token at a position.
    pub(super) fn token(&self, at: usize) -> Option<&'a Token> {
        self.tokens.get(at)
    }

    /// The text of a token; empty if there is none.
    pub(super) fn word(&self, at: usize) -> &'a str {
        self.token(at).and_then(|token| self.text.get(token.range())).unwrap_or_default()
    }

    /// Whether a token stands there that follows the one before it without white space.
    pub(super) fn is_joined(&self, at: usize) -> bool {
        self.token(at).is_some_and(|token| !token.spaced)
    }

    pub(super) fn is_mark(&self, at: usize, mark: char) -> bool {
        self.token(at).is_some_and(|token| token.is_mark(mark))
    }

    pub(super) fn is_digits(&self, at: usize) -> bool {
        self.token(at).is_some_and(|token| token.script == Script::Digits)
    }

    /// Whether only a space, no line's end, stands between a token and the one before it.
    pub(super) fn is_on_line(&self, at: usize) -> bool {
        let Some((before, token)) =
            at.checked_sub(1).and_then(|before| self.token(before)).zip(self.token(at))
        else {
            return false;
        };
        !self.text.get(before.end as usize..token.start as usize).unwrap_or("\n").contains('\n')
    }

    /// The number that a short row of digits writes.
    pub(super) fn digits(&self, at: usize, lengths: Range<u16>) -> Option<i64> {
        let token = self.token(at).filter(|token| token.script == Script::Digits)?;
        lengths.contains(&token.chars).then(|| self.word(at).parse().ok())?
    }

    /// What the tokens at a position mean in the text's language.
    pub(super) fn senses(&self, at: usize) -> impl Iterator<Item = &'a Sense> + use<'a> {
        let languages = self.languages;
        let senses = self.starts.of(at).and_then(|range| self.senses.get(range)).unwrap_or_default();
        senses.iter().filter(move |sense| sense.languages.meet(languages))
    }

    /// Whether a number or a month may begin at a word, in any language.
    pub(super) fn may_begin_value(&self, at: usize) -> bool {
        let begins = |sense: &Sense| {
            matches!(
                sense.meaning,
                Meaning::Cardinal(_) | Meaning::Ordinal(_) | Meaning::Month { .. } | Meaning::Scale(_)
            )
        };
        self.starts.of(at).and_then(|range| self.senses.get(range)).unwrap_or_default().iter().any(begins)
    }

    /// The longest of those meanings that `pick` takes, and how many tokens it has.
    pub(super) fn longest<T>(&self, at: usize, pick: impl Fn(Meaning) -> Option<T>) -> Option<(T, usize)> {
        let picked =
            self.senses(at).filter_map(|sense| Some((pick(sense.meaning)?, usize::from(sense.length))));
        picked.max_by_key(|(_, length)| *length)
    }

    /// The range of the text from one token to before another.
    pub(super) fn range(&self, from: usize, end: usize) -> Range<usize> {
        let start = self.token(from).map_or(self.text.len(), |token| token.start as usize);
        let end =
            end.checked_sub(1).and_then(|last| self.token(last)).map_or(start, |token| token.end as usize);
        start..end.max(start)
    }
}
