//! Options as texts: their form, and the countries that they name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lexicon::rows;
use crate::verify::normal_form;

/// The most letters of a symbol, where case matters: a chemical element, or a unit with its prefix.
const MAX_SYMBOL_LETTERS: usize = 2;
/// Words as short as a symbol that are not symbols, even in capitals.
const SHORT_WORDS: [&str; 3] = ["no", "am", "pm"];

/// An option in the form in which options are compared as texts: a symbol keeps its case, as `Co` and `CO`, or `mW` and
/// `MW`, are not the same.
pub fn normalized(option: &str) -> String {
    let normal = normal_form::of(option);
    let small = normal.to_lowercase();
    let letters: String = small.chars().filter(|c| c.is_alphabetic()).collect();
    if is_symbol(option) && !SHORT_WORDS.contains(&letters.as_str()) { normal } else { small }
}

/// Whether a text has a single word (apart from numbers), which is short and has a capital after its first letter.
fn is_symbol(text: &str) -> bool {
    let mut words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    letters().count() <= MAX_SYMBOL_LETTERS && letters().skip(1).any(char::is_uppercase)
}

/// The countries by their names in small letters.
static COUNTRIES: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    let lines = rows(include_str!("data/countries.tsv")).enumerate();
    let names = lines.flat_map(|(at, row)| {
        row.into_iter().flat_map(move |row| row.split('|').map(move |name| (name, at)))
    });
    names.map(|(name, at)| (normal_form::of(name).to_lowercase(), at)).collect()
});

/// The country of a name in its compared form, by its row in the table.
pub(super) fn country(normalized: &str) -> Option<usize> {
    COUNTRIES.get(normalized.to_lowercase().as_str()).copied()
}
