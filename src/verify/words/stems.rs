//! Which words a text has, whatever their ending: Moscow's words for Moscow, Germany and German.
//!
//! Two words have the same stem if they agree in at least four letters and in all but the last three of each. Kept are
//! the hashes of each word's beginnings that are long enough, so that a look-up takes four steps. Some endings make
//! another name of one, though they are as short as those of its cases: Niger and Nigeria, George and Georgia.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::tokens::{SEED, Script, Token, hashed, small};

/// The fewest letters that two different words with the same stem share.
const MIN_SHARED: usize = 4;
/// How many of the last letters may differ.
const ENDING: usize = 3;

/// Endings of names that begin alike and mean something else: Niger, Nigeria; India, Indiana; George, Georgia; Alexander,
/// Alexandria; Martin, Martinez; Johnson, Johnston.
const OTHER_NAMES: [(&str, &str); 6] =
    [("", "ia"), ("", "na"), ("e", "ia"), ("er", "ria"), ("", "ez"), ("on", "ton")];

/// The words of a text.
#[derive(Debug, Default)]
pub struct Stems {
    words: HashSet<u64, FixedState>,
    beginnings: HashSet<u64, FixedState>,
    bigrams: HashSet<u64, FixedState>,
    /// The first letters of names of several words, as they may be shortened.
    acronyms: HashSet<u64, FixedState>,
}

/// The most words of a name that is shortened to their first letters.
const MAX_ACRONYM: usize = 6;

impl Stems {
    /// Adds the words of a folded text.
    pub fn add(&mut self, folded: &str, tokens: &[Token]) {
        // A word of a text stands there several times, and has up to four beginnings.
        self.words.reserve(tokens.len() / 6);
        self.beginnings.reserve(tokens.len() / 3);
        let mut previous: Option<&Token> = None;
        let mut initials: Vec<char> = Vec::new();
        for token in tokens {
            self.add_initial(token, &mut initials);
            match token.script {
                Script::Letters if self.words.insert(token.hash) => {
                    self.beginnings.extend(stems_of(folded.get(token.range()).unwrap_or_default()));
                }
                Script::Han | Script::Katakana | Script::Single => {
                    self.words.insert(token.hash);
                    if let Some(before) = previous.filter(|before| before.is_word() && !token.spaced) {
                        self.bigrams.insert(pair(before, token));
                    }
                }
                _ => {}
            }
            previous = Some(token);
        }
    }

    /// Goes on with the name that ends before a token: a capital adds to it, a small word such as "of" leaves it.
    fn add_initial(&mut self, token: &Token, initials: &mut Vec<char>) {
        if !token.is_capital() {
            if token.script != Script::Letters || token.chars > 3 {
                initials.clear();
            }
            return;
        }
        if initials.len() == MAX_ACRONYM {
            initials.remove(0);
        }
        initials.push(small(token.first));
        for from in 0..initials.len() - 1 {
            self.acronyms.insert(initials[from..].iter().fold(SEED, |hash, c| hashed(hash, *c)));
        }
    }

    /// Whether the text has a name that this word shortens.
    pub fn has_name_of(&self, acronym: &Token) -> bool {
        self.acronyms.contains(&acronym.hash)
    }

    /// Whether the text has this very word, in capitals or small letters.
    pub fn has_word(&self, token: &Token) -> bool {
        self.words.contains(&token.hash)
    }

    /// Whether the text has a word with the same stem.
    pub fn has_stem(&self, folded: &str, token: &Token) -> bool {
        let word = folded.get(token.range()).unwrap_or_default();
        self.has_word(token)
            || stems_of(word).any(|stem| self.beginnings.contains(&stem)) && !self.has_other_name(word)
    }

    /// Whether the text has another name that begins like this one, and none that has more of it.
    fn has_other_name(&self, word: &str) -> bool {
        let is_other = |from: &str, to: &str| {
            let Some(stem) = word.strip_suffix(from) else { return false };
            let hash = |ending: &str| {
                stem.chars().chain(ending.chars()).fold(SEED, |hash, c| hashed(hash, small(c)))
            };
            let shared = stem.chars().count();
            let mut more = stems_of(word).zip(MIN_SHARED.max(word.chars().count().saturating_sub(ENDING))..);
            shared >= MIN_SHARED
                && self.words.contains(&hash(to))
                && !more.any(|(stem, chars)| chars > shared && self.beginnings.contains(&stem))
        };
        word.starts_with(char::is_uppercase)
            && OTHER_NAMES.iter().any(|(one, other)| is_other(one, other) || is_other(other, one))
    }

    /// Whether the text has these two characters side by side.
    pub fn has_bigram(&self, one: &Token, other: &Token) -> bool {
        self.bigrams.contains(&pair(one, other))
    }
}

/// Whether two words, each of a folded text, have the same stem.
pub fn is_same_stem((text, token): (&str, &Token), (other_text, other): (&str, &Token)) -> bool {
    if token.hash == other.hash {
        return true;
    }
    if small(token.first) != small(other.first) || token.script != Script::Letters {
        return false;
    }
    let word = text.get(token.range()).unwrap_or_default();
    let other_word = other_text.get(other.range()).unwrap_or_default();
    let shared =
        word.chars().zip(other_word.chars()).take_while(|(one, other)| small(*one) == small(*other)).count();
    let ends = |word: &str| word.chars().nth(shared + ENDING).is_none();
    shared >= MIN_SHARED && ends(word) && ends(other_word) && !are_other_names(word, other_word)
}

/// Whether two words are different names though they begin alike.
fn are_other_names(one: &str, other: &str) -> bool {
    let is_pair = |one: &str, other: &str, endings: &(&str, &str)| {
        one.strip_suffix(endings.0).is_some_and(|stem| other.strip_suffix(endings.1) == Some(stem))
    };
    one.starts_with(char::is_uppercase)
        && OTHER_NAMES.iter().any(|endings| is_pair(one, other, endings) || is_pair(other, one, endings))
}

const fn pair(one: &Token, other: &Token) -> u64 {
    one.hash.rotate_left(17) ^ other.hash
}

/// The hashes of a word's beginnings by which it is found. An Arabic article is left out.
fn stems_of(word: &str) -> impl Iterator<Item = u64> {
    let word = word.strip_prefix("ال").filter(|rest| rest.chars().count() > 2).unwrap_or(word);
    let count = word.chars().count();
    let hashes = word.chars().scan(SEED, |hash, c| {
        *hash = hashed(*hash, small(c));
        Some(*hash)
    });
    hashes.skip(MIN_SHARED.max(count.saturating_sub(ENDING)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::words::Tokens;

    #[test]
    fn words_are_found_by_their_stem() {
        let text = "Die Москва und Germany Paris العراق";
        let mut stems = Stems::default();
        stems.add(text, Tokens::new(text).all());
        let has = |word: &str| stems.has_stem(word, &Tokens::new(word).all()[0]);
        for word in ["Москве", "German", "PARIS", "die", "عراق"] {
            assert!(has(word), "{word}");
        }
        for word in ["Moskau", "Gerard", "Par", "Parma", "dies"] {
            assert!(!has(word), "{word}");
        }
    }

    #[test]
    fn names_that_begin_alike_are_told_apart() {
        for (text, name, is_known) in [
            ("Niger", "Nigeria", false),
            ("Nigeria", "Niger", false),
            ("Nigerian", "Nigeria", true),
            ("the Nigerian and Niger", "Nigeria", true),
            ("George", "Georgia", false),
            ("Alexandria", "Alexander", false),
            ("Johnson", "Johnston", false),
            ("Egyptian", "Egypt", true),
            ("Germany", "German", true),
        ] {
            let (tokens, token) = (Tokens::new(text), Tokens::new(name).all()[0]);
            let mut stems = Stems::default();
            stems.add(text, tokens.all());
            assert_eq!(stems.has_stem(name, &token), is_known, "{text} {name}");
            let one = tokens.all().iter().any(|other| is_same_stem((name, &token), (text, other)));
            assert_eq!(one, is_known, "{text} {name}");
        }
    }
}
