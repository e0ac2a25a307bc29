//! Options as texts: their form, and the countries that they name.

use std::borrow::Cow;
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

/// An option's normal form as options are compared as texts: a symbol keeps its case, as `Co` and `CO`, or `5 mg` and
/// `5 Mg`, are not the same.
pub(super) fn compared(normal: &str) -> String {
    if is_symbol(normal) {
        return normal.to_owned();
    }
    let mut small = String::with_capacity(normal.len());
    let mut has_number = false;
    let mut rest = normal;
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

/// Whether a text has a single word (apart from numbers), which is short, has a capital and is a symbol.
fn is_symbol(text: &str) -> bool {
    let mut words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    let letters = || word.chars().filter(|c| c.is_alphabetic());
    let is_word = || SHORT_WORDS.contains(&letters().collect::<String>().to_lowercase().as_str());
    letters().count() <= MAX_SYMBOL_LETTERS && letters().any(char::is_uppercase) && !is_word()
}

/// The countries by their names in small letters.
static COUNTRIES: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    let lines = rows(include_str!("data/countries.tsv")).enumerate();
    let names = lines.flat_map(|(at, row)| {
        row.into_iter().flat_map(move |row| row.split('|').map(move |name| (name, at)))
    });
    names.map(|(name, at)| (normal_form::small(name), at)).collect()
});

/// The countries that a name stands for loosely, by their rows in the table of countries.
static LOOSE_NAMES: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    for row in rows(include_str!("data/loose_names.tsv")) {
        let [name, loose] = row.as_slice() else { continue };
        let Some(&at) = COUNTRIES.get(&normal_form::small(name)) else { continue };
        for loose in loose.split('|') {
            all.entry(normal_form::small(loose)).or_default().push(at);
        }
    }
    all
});

/// What a text names as a country, by rows in the table.
#[derive(Debug)]
pub(super) struct Countries {
    /// The one that has this name.
    pub(super) named: Option<usize>,
    /// Those that it stands for loosely.
    loose: &'static [usize],
}

impl Countries {
    /// Those of a text by its normal form in small letters.
    pub(super) fn of(small: &str) -> Self {
        let loose = LOOSE_NAMES.get(small).map_or(&[][..], Vec::as_slice);
        Self { named: COUNTRIES.get(small).copied(), loose }
    }

    /// Whether one of two is a loose name of the country that the other names.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        let is_loose = |loose: &Self, name: &Self| name.named.is_some_and(|row| loose.loose.contains(&row));
        is_loose(self, other) || is_loose(other, self)
    }
}

/// The words at the end of an option that stand for a value, longest first, with that value.
static VALUES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let rows = rows(include_str!("data/option_values.tsv"));
    let mut all: Vec<(&str, &str)> = rows
        .filter_map(|row| if let [value, words] = row.as_slice() { Some((*value, *words)) } else { None })
        .flat_map(|(value, words)| words.split('|').map(move |word| (word, value)))
        .collect();
    all.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    all
});

/// An option with a value in the place of words at its end that stand for one: over half, noon, 60 in.
pub(super) fn with_value(option: &str) -> Cow<'_, str> {
    let option = option.trim().trim_end_matches('.');
    if let Some(inches) =
        option.strip_suffix(" in").filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit()))
    {
        return Cow::Owned([inches, " inches"].concat());
    }
    let small = option.to_lowercase();
    let found = VALUES.iter().find_map(|(words, value)| {
        let before = small.strip_suffix(words)?;
        let is_word =
            !before.ends_with(char::is_alphanumeric) || words.starts_with(|c: char| c >= '\u{3000}');
        // Below zero is a part of a number; zero by itself is one.
        let is_whole = is_word && (*value != "0" || before.is_empty());
        is_whole.then(|| Cow::Owned([before, value].concat()))
    });
    found.unwrap_or(Cow::Borrowed(option))
}
