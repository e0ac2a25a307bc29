//! Numerals that are letters: Roman, CJK, and words grown together.

use super::number::Number;
use crate::verify::values::cursor::Cursor;
use crate::verify::values::lexicon::{Meaning, lexicon};
use crate::verify::words::{Script, Token, Tokens};

/// The number of a Roman numeral in capitals, also with an ending as in `XIXe`. Short ones have only the letters I, V
/// and X: others are far more often something else (CD, DC, MIX).
pub(in crate::verify) fn roman(word: &str) -> Option<i64> {
    let capitals = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let ending = word.get(capitals..)?;
    if !(1..=15).contains(&capitals)
        || !matches!(ending, "" | "e" | "er" | "ème" | "th")
        || (capitals == 1 && !ending.is_empty())
    {
        return None;
    }
    let numeral = word.get(..capitals)?;
    if capitals < 4 && numeral.bytes().any(|letter| !b"IVX".contains(&letter)) {
        return None;
    }
    let mut rest = numeral;
    let mut number = 0;
    for (value, letters, most) in [
        (1000, "M", 3),
        (900, "CM", 1),
        (500, "D", 1),
        (400, "CD", 1),
        (100, "C", 3),
        (90, "XC", 1),
        (50, "L", 1),
        (40, "XL", 1),
        (10, "X", 3),
        (9, "IX", 1),
        (5, "V", 1),
        (4, "IV", 1),
        (1, "I", 3),
    ] {
        for _ in 0..most {
            if let Some(behind) = rest.strip_prefix(letters) {
                number += value;
                rest = behind;
            }
        }
    }
    rest.is_empty().then_some(number)
}

/// Whether a word begins with a letter of Roman numerals and is all capitals, but for an ending behind several.
pub(in crate::verify::values) const fn may_be_roman(token: &Token) -> bool {
    let small = token.chars - token.capitals;
    matches!(token.first, 'I' | 'V' | 'X' | 'L' | 'C' | 'D' | 'M')
        && token.chars <= 18
        && (small == 0 || small <= 3 && token.capitals > 1)
}

/// A number in Han numerals: two or more of them, or one before a unit.
pub(in crate::verify::values) fn han(cursor: &Cursor<'_>, at: usize) -> Option<(Number, usize)> {
    let numeral = |at: usize| {
        cursor.token(at).filter(|token| token.script == Script::Han).and_then(|token| value(token.first))
    };
    let mut end = at;
    while end - at < 24 && numeral(end).is_some() && (end == at || cursor.is_joined(end)) {
        end += 1;
    }
    let values: Vec<i64> = (at..end).filter_map(numeral).collect();
    let has_unit =
        || cursor.longest(end, |meaning| matches!(meaning, Meaning::Unit(_)).then_some(())).is_some();
    match values.as_slice() {
        [] => return None,
        [one] if *one < 2 || *one > 10 || !has_unit() => return None,
        _ => {}
    }
    let is_positional = values.iter().all(|value| *value < 10);
    let number = if is_positional {
        if values.len() > 15 {
            return None;
        }
        values.iter().fold(0, |number, digit| number * 10 + digit)
    } else {
        composed(&values)?
    };
    Some((Number::from(number), end))
}

const fn value(c: char) -> Option<i64> {
    Some(match c {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' | '兩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        '十' => 10,
        '百' => 100,
        '千' => 1000,
        '万' | '萬' => 10_000,
        '亿' | '億' => 100_000_000,
        '兆' => 1_000_000_000_000,
        _ => return None,
    })
}

/// The number of numerals with powers among them: 三億五千万.
fn composed(values: &[i64]) -> Option<i64> {
    let (mut total, mut section, mut digit) = (0_i64, 0_i64, 0_i64);
    for &value in values {
        match value {
            0..=9 => digit = value,
            10 | 100 | 1000 => {
                section = section.checked_add(digit.max(1) * value)?;
                digit = 0;
            }
            _ => {
                total = total.checked_add((section + digit).max(1).checked_mul(value)?)?;
                (section, digit) = (0, 0);
            }
        }
    }
    total.checked_add(section)?.checked_add(digit)
}

/// A number of several words grown together, by the first of the parts that it has: what stands before multiplies it,
/// what stands behind is added.
pub(in crate::verify::values) fn compound(word: &str, parts: &[(&str, i64)]) -> Option<i64> {
    let (at, (part, value), rest) = parts.iter().enumerate().find_map(|(nth, part)| {
        let at = word.find(part.0)?;
        Some((at, *part, &parts[nth + 1..]))
    })?;
    let number =
        |text: &str| if text.is_empty() { None } else { compound(text, rest).or_else(|| cardinal(text)) };
    let before = word.get(..at)?;
    let behind = word.get(at + part.len()..)?;
    let behind = behind.strip_prefix("und").filter(|rest| number(rest).is_some()).unwrap_or(behind);
    let many = if before.is_empty() { 1 } else { number(before)? };
    let more = if behind.is_empty() { 0 } else { number(behind)? };
    Some(many * value + more)
}

fn cardinal(word: &str) -> Option<i64> {
    let tokens = Tokens::new(word);
    let (senses, _) = lexicon().senses(tokens.all());
    senses.iter().find_map(|sense| match sense.meaning {
        Meaning::Cardinal(number) if tokens.all().len() == usize::from(sense.length) => {
            Some(i64::from(number))
        }
        _ if matches!(word, "ein" | "een") => Some(1),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roman_numerals_are_those_that_are_written() {
        for (word, number) in [("II", 2), ("XIV", 14), ("XIXe", 19), ("MCMLXXXIX", 1989), ("V", 5)] {
            assert_eq!(roman(word), Some(number), "{word}");
        }
        for word in ["IIII", "VX", "CD", "MIX", "DC", "ii", "Xe", "", "IM"] {
            assert_eq!(roman(word), None, "{word}");
        }
    }
}
