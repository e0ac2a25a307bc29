//! A text under reading: its tokens, and what they mean in its language.

use std::ops::Range;

use super::language::Languages;
use super::lexicon::{Meaning, Sense};
use crate::verify::words::{Script, Token};

/// What readers of values look at.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
    pub(super) senses: &'a [Sense],
    /// For each token, and for the end, how many senses begin before it.
    pub(super) starts: &'a [u32],
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
        let between = self.text.get(before.end as usize..token.start as usize);
        between.is_some_and(|between| between.bytes().all(|byte| byte != b'\n'))
    }

    /// The number that a short row of digits writes.
    pub(super) fn digits(&self, at: usize, lengths: Range<u8>) -> Option<i64> {
        let token = self.token(at).filter(|token| token.script == Script::Digits)?;
        lengths.contains(&token.chars).then(|| self.word(at).parse().ok())?
    }

    /// What the tokens at a position mean in any language.
    fn all_senses(&self, at: usize) -> &'a [Sense] {
        let range = self.starts.get(at).zip(self.starts.get(at + 1));
        range.and_then(|(from, end)| self.senses.get(*from as usize..*end as usize)).unwrap_or_default()
    }

    /// What the tokens at a position mean in the text's language.
    pub(super) fn senses(&self, at: usize) -> impl Iterator<Item = &'a Sense> + use<'a> {
        let languages = self.languages;
        self.all_senses(at).iter().filter(move |sense| sense.languages.meet(languages))
    }

    /// Whether a number or a month may begin at a word, in any language.
    pub(super) fn may_begin_value(&self, at: usize) -> bool {
        let begins = |sense: &Sense| {
            matches!(
                sense.meaning,
                Meaning::Cardinal(_) | Meaning::Ordinal(_) | Meaning::Month { .. } | Meaning::Scale(_)
            )
        };
        self.all_senses(at).iter().any(begins)
    }

    /// The longest of those meanings that `pick` takes, and how many tokens it has.
    pub(super) fn longest<T>(&self, at: usize, pick: impl Fn(Meaning) -> Option<T>) -> Option<(T, usize)> {
        let picked =
            self.senses(at).filter_map(|sense| Some((pick(sense.meaning)?, usize::from(sense.length))));
        picked.max_by_key(|(_, length)| *length)
    }

    /// Of those meanings that `pick` takes, the one of the longest phrase of at most so many tokens that ends before a
    /// position, and how many it has.
    pub(super) fn before<T>(
        &self,
        at: usize,
        most: usize,
        pick: impl Fn(Meaning) -> Option<T>,
    ) -> Option<(T, usize)> {
        let starts = self.starts.get(at.saturating_sub(most)).zip(self.starts.get(at));
        let senses = starts.and_then(|(from, end)| self.senses.get(*from as usize..*end as usize))?;
        let ending = senses.iter().filter(|sense| sense.at as usize + usize::from(sense.length) == at);
        ending
            .filter(|sense| sense.languages.meet(self.languages))
            .find_map(|sense| Some((pick(sense.meaning)?, usize::from(sense.length))))
    }

    /// The range of the text from one token to before another.
    pub(super) fn range(&self, from: usize, end: usize) -> Range<usize> {
        let start = self.token(from).map_or(self.text.len(), |token| token.start as usize);
        let end =
            end.checked_sub(1).and_then(|last| self.token(last)).map_or(start, |token| token.end as usize);
        start..end.max(start)
    }
}
