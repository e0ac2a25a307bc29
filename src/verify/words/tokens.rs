//! The words, digits and marks of a folded text.

use std::ops::Range;

/// What a token consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Letters of a script with spaces between words.
    Letters,
    /// ASCII digits.
    Digits,
    /// One Han character.
    Han,
    /// One Katakana character.
    Katakana,
    /// One character of another script without spaces, or a Hangul syllable.
    Single,
    /// One character that is neither a letter nor a digit.
    Mark,
}

/// A token of a folded text: 24 bytes, as a long text has some ten thousand.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Where it begins, in bytes of the folded text.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// What it consists of.
    pub script: Script,
    /// Its first character.
    pub first: char,
    /// How many characters it has, or as many as are counted.
    pub chars: u8,
    /// How many of them are capitals.
    pub capitals: u8,
    /// The hash of its small letters.
    pub hash: u64,
    /// Whether white space or the text's beginning stands before it.
    pub spaced: bool,
}

impl Token {
    /// The token that begins at a place of a folded text with this character: with those of the same script behind it, if
    /// it is of letters or digits.
    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    fn at(folded: &str, at: usize, first: char, spaced: bool) -> Self {
        let script = script(first);
        let mut hash = hashed(SEED, small(first));
        let (mut end, mut chars, mut capitals) =
            (at + first.len_utf8(), 1_u8, u8::from(first.is_uppercase()));
        let rest = if matches!(script, Script::Letters | Script::Digits) { folded } else { "" };
        while let Some(&byte) = rest.as_bytes().get(end) {
            // Told at once, as most of most texts is small ASCII letters.
            if byte.is_ascii_lowercase() && script == Script::Letters {
                hash = hashed(hash, char::from(byte));
                end += 1;
            } else {
                let Some(c) = rest[end..].chars().next().filter(|c| self::script(*c) == script) else {
                    break;
                };
                capitals = capitals.saturating_add(u8::from(c.is_uppercase()));
                hash = hashed(hash, small(c));
                end += c.len_utf8();
            }
            chars = chars.saturating_add(1);
        }
        Self { start: at as u32, end: end as u32, script, first, chars, capitals, hash, spaced }
    }

    /// Its range in the folded text.
    pub const fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Whether it begins with a capital.
    pub fn is_capital(&self) -> bool {
        self.script == Script::Letters && self.first.is_uppercase()
    }

    /// Whether it is letters or an ideograph.
    pub fn is_word(&self) -> bool {
        !matches!(self.script, Script::Digits | Script::Mark)
    }

    /// Whether it is this mark.
    pub fn is_mark(&self, mark: char) -> bool {
        self.script == Script::Mark && self.first == mark
    }
}

/// The hash of a text of no characters.
pub(super) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of a text with one more character.
pub(super) const fn hashed(hash: u64, c: char) -> u64 {
    (hash ^ c as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// The small letter, by which words are compared.
pub(super) fn small(c: char) -> char {
    match c {
        '\0'..='\u{7f}' => c.to_ascii_lowercase(),
        // What most texts consist of needs no look-up in the tables.
        'ß'..='ÿ' | 'а'..='я' | '\u{3041}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => c,
        'А'..='Я' => char::from_u32(u32::from(c) + 32).unwrap_or(c),
        _ => c.to_lowercase().next().unwrap_or(c),
    }
}

/// The tokens of a folded text, in order.
#[derive(Debug, Default)]
pub struct Tokens(Vec<Token>);

impl Tokens {
    /// Cuts a folded text into tokens.
    pub fn new(folded: &str) -> Self {
        let mut tokens: Vec<Token> = Vec::with_capacity(folded.len() / 4 + 1);
        let (mut at, mut spaced) = (0, true);
        while let Some(c) = folded.get(at..).and_then(|rest| rest.chars().next()) {
            if c == ' ' || c == '\n' {
                spaced = true;
                at += 1;
                continue;
            }
            let token = Token::at(folded, at, c, spaced);
            at = token.end as usize;
            tokens.push(token);
            spaced = false;
        }
        Self(tokens)
    }

    /// All tokens.
    pub fn all(&self) -> &[Token] {
        &self.0
    }

    /// The positions of the tokens that begin in a range of the folded text.
    pub fn within(&self, folded: &Range<usize>) -> Range<usize> {
        let at = |byte: usize| self.0.partition_point(|token| (token.start as usize) < byte);
        at(folded.start)..at(folded.end)
    }
}

fn script(c: char) -> Script {
    match c {
        _ if c.is_ascii_alphabetic() => Script::Letters,
        '0'..='9' => Script::Digits,
        '\0'..='\u{a9}' => Script::Mark,
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='\u{24f}' | '\u{400}'..='\u{481}' => Script::Letters,
        '\u{3005}'..='\u{3007}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Script::Han,
        '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' => Script::Katakana,
        '\u{3041}'..='\u{3096}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{e01}'..='\u{e4e}'
        | '\u{e81}'..='\u{ecd}'
        | '\u{1000}'..='\u{103f}'
        | '\u{1780}'..='\u{17d3}' => Script::Single,
        _ if c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c) => Script::Letters,
        _ => Script::Mark,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_digits_and_ideographs_are_apart() {
        let text = "Été 1990s, H2O: 東京タワー 서울";
        let tokens = Tokens::new(text);
        let shown: Vec<&str> = tokens.all().iter().map(|token| &text[token.range()]).collect();
        let expected =
            ["Été", "1990", "s", ",", "H", "2", "O", ":", "東", "京", "タ", "ワ", "ー", "서", "울"];
        assert_eq!(shown, expected);
        assert_eq!(Tokens::new("ÉTÉ").all()[0].hash, tokens.all()[0].hash);
    }

    proptest! {
        #[test]
        fn tokens_are_apart_and_hold_all_but_white_space(text in any::<String>()) {
            let tokens = Tokens::new(&text);
            let held: String = tokens.all().iter().map(|token| &text[token.range()]).collect();
            prop_assert_eq!(held, text.replace([' ', '\n'], ""));
        }
    }
}
