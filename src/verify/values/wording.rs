//! Options as texts: their form, and the countries that they name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lexicon::rows;
use crate::verify::normal_form;

/// The most letters of a symbol by itself, where case matters: a chemical element, or a unit with its prefix.
const MAX_SYMBOL_LETTERS: usize = 2;
/// The most letters of a word behind a number that may be a unit told by case: MHz and mHz.
const MAX_UNIT_LETTERS: usize = 3;
/// Words as short as a symbol that are not symbols, even in capitals.
const SHORT_WORDS: [&str; 9] = ["no", "am", "pm", "ja", "si", "sì", "sí", "да", "it"];

/// An option in the form in which options are compared as texts: a symbol keeps its case, as `Co` and `CO`, or `5 mg` and
/// `5 Mg`, are not the same.
pub fn normalized(option: &str) -> String {
    let normal = normal_form::of(option);
    let letters: String = normal.chars().filter(|c| c.is_alphabetic()).collect();
    if is_symbol(&normal) && !SHORT_WORDS.contains(&letters.to_lowercase().as_str()) {
        return normal;
    }
    let mut small = String::with_capacity(normal.len());
    let mut has_number = false;
    let mut rest = normal.as_str();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| c.is_alphabetic() != first.is_alphabetic()).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(length);
        let may_be_unit = has_number && first.is_alphabetic() && run.chars().count() <= MAX_UNIT_LETTERS;
        if may_be_unit {
            small.push_str(run);
        } else {
            small.extend(run.chars().flat_map(char::to_lowercase));
        }
        has_number |= run.contains(|c: char| c.is_ascii_digit());
        rest = behind;
    }
    small
}

/// Whether a text has a single word (apart from numbers), which is short and has a capital.
fn is_symbol(text: &str) -> bool {
    let mut words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    letters().count() <= MAX_SYMBOL_LETTERS && letters().any(char::is_uppercase)
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
