//! The form in which options are compared: options that a reader would take for the same answer must not be rivals, as
//! votes for it would be split between them.
//!
//! Ignored are the way of writing a character (composed or not, full width or not), white space at the ends and its
//! amount, quotes around a text and punctuation at its end, and marks that group the digits of a number (`8,849`,
//! `1 000 000`). Kept is what may change the meaning: superscripts (10⁵ is not 105), signs, a decimal comma or point,
//! brackets. Case is left to the caller.

use unicode_normalization::UnicodeNormalization;

use super::text;

const QUOTES: &str = "\"'`“”„‘’‚«»‹›";
const END_PUNCTUATION: &str = ".,;:?。、，．";

/// The normal form of a text, in its own case.
pub(super) fn of(text: &str) -> String {
    let mut line = text::one_line(text);
    if !line.is_ascii() {
        line = text::one_line(&line.chars().map(narrow).nfc().collect::<String>());
    }
    let bare = line.trim_start_matches(|c| is_in(QUOTES, c));
    // Without one before it, a quote may be a unit: feet, inches, minutes.
    let is_quoted = bare.len() < line.len();
    let is_end = |c: char| c == ' ' || is_in(END_PUNCTUATION, c) || (is_quoted && is_in(QUOTES, c));
    let bare = bare.trim_end_matches(is_end);
    if bare.contains(|c: char| c.is_ascii_digit()) { without_grouping(bare) } else { bare.to_owned() }
}

/// The normal form of a text in small letters, for which case tells nothing.
pub(super) fn small(text: &str) -> String {
    of(text).to_lowercase()
}

fn is_in(set: &str, c: char) -> bool {
    set.contains(c)
}

/// The ASCII character that a full-width one stands for.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c),
        '\u{2212}' => '-',
        _ => c,
    }
}

/// The text without the marks that group digits of numbers by three.
fn without_grouping(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut ungrouped = String::with_capacity(text.len());
    let mut rest = characters.as_slice();
    let mut previous = None;
    while let Some((&first, after)) = rest.split_first() {
        let begins_number = first.is_ascii_digit() && !matches!(previous, Some('0'..='9' | '.' | ','));
        if let Some((digits, length)) = begins_number.then(|| grouped_number(rest)).flatten() {
            ungrouped.push_str(&digits);
            previous = digits.chars().last();
            rest = rest.get(length..).unwrap_or_default();
        } else {
            ungrouped.push(first);
            previous = Some(first);
            rest = after;
        }
    }
    ungrouped
}

/// The digits of the grouped number that the characters begin with, and its length. A single point may as well be
/// decimal, and does not group; neither does anything after a leading zero.
fn grouped_number(characters: &[char]) -> Option<(String, usize)> {
    let digits = |from: usize| {
        characters.get(from..).unwrap_or_default().iter().take_while(|c| c.is_ascii_digit()).count()
    };
    let first = digits(0);
    let mark = *characters.get(first)?;
    let is_mark = matches!(mark, ',' | '.' | ' ' | '\'' | '’' | '_');
    if !(1..=3).contains(&first) || !is_mark || characters.first() == Some(&'0') {
        return None;
    }
    let (mut end, mut groups) = (first, 0);
    while characters.get(end) == Some(&mark) && digits(end + 1) == 3 {
        end += 4;
        groups += 1;
    }
    // Digits that follow the same mark in any other number show that it does not group.
    let continues = characters.get(end) == Some(&mark) && digits(end + 1) > 0;
    let is_grouped = groups > usize::from(mark == '.') && !continues;
    is_grouped.then(|| (characters.iter().take(end).filter(|c| c.is_ascii_digit()).collect(), end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_answer_in_other_forms_has_one_normal_form() {
        for (one, other) in [
            ("8849 m", "8,849 m"),
            ("8849 m", "８８４９\u{3000}m"),
            ("1000000", "1.000.000"),
            ("1 234 567.8", "1234567.8"),
            ("1'000", "1\u{202f}000"),
            ("Bogotá", "Bogota\u{301}"),
            ("Paris.", "\u{201c}Paris\u{201d}"),
            ("in 1,500 of 20,000 cases", "in 1500 of 20000 cases"),
            ("-5", "−5"),
        ] {
            assert_eq!(of(one), of(other), "{one} and {other}");
        }
    }

    #[test]
    fn what_differs_in_meaning_differs_in_form() {
        for (one, other) in [
            ("1,5", "15"),
            ("8.849", "8849"),
            ("10⁵", "105"),
            ("-5", "5"),
            (".5", "5"),
            ("0,500", "500"),
            ("1,2345", "12345"),
            ("1914 1918", "19141918"),
            ("1,200,30", "120030"),
            ("[0, 1]", "(0, 1)"),
            ("C", "C++"),
            ("5 %", "5"),
            ("Co", "CO"),
            ("5'", "5"),
            ("5\"", "5'"),
        ] {
            assert_ne!(of(one), of(other), "{one} and {other}");
        }
    }

    proptest! {
        #[test]
        fn a_number_has_the_same_form_with_and_without_grouping(number in 1000_u64..1_000_000_000_000) {
            let digits = number.to_string();
            let mut grouped = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            prop_assert_eq!(of(&grouped), digits);
        }

        #[test]
        fn never_panics(text in any::<String>()) {
            let _ = of(&text);
        }
    }
}
