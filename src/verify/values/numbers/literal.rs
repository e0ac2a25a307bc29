//! Numbers in digits: grouped, with decimals, as fractions and powers.

use super::number::Number;
use crate::verify::values::cursor::Cursor;

/// The most groups of digits that are one number.
const MAX_GROUPS: usize = 12;

/// The readings of the digits at a position, and the position behind them. Empty for what has more points than a
/// number: versions, sections, addresses.
pub(in crate::verify::values) fn read(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Number>, usize)> {
    let first = cursor.word(at);
    if let Some((fraction, end)) = fraction(cursor, at) {
        return Some((vec![fraction], end));
    }
    let (groups, end) = groups(cursor, at);
    let readings = match groups.as_slice() {
        [] => vec![Number::parse(first)?],
        [(mark, digits)] => one_mark(cursor, first, *mark, digits)?,
        _ => match several_marks(first, &groups) {
            Some(number) => vec![number],
            // A list such as 1,2,3 is not one number; what has several points is none.
            None if groups.iter().all(|(mark, _)| *mark == ',') => {
                return Some((vec![Number::parse(first)?], at + 1));
            }
            None => return Some((Vec::new(), end)),
        },
    };
    if groups.is_empty()
        && let Some((half, end)) = fraction(cursor, end).filter(|_| cursor.is_on_line(end))
    {
        let sum = readings.iter().filter_map(|number| number.plus(half)).collect();
        return Some((sum, end));
    }
    Some((readings, end))
}

/// Where what is written on at a position ends: digits, letters and marks between them.
pub(in crate::verify::values) fn end_of_chain(cursor: &Cursor<'_>, at: usize) -> usize {
    let mut end = at + 1;
    while cursor.is_joined(end)
        && (cursor.is_digits(end) || cursor.is_digits(end + 1) && cursor.is_joined(end + 1))
    {
        end += 1;
    }
    end
}

/// The power of ten in "× 10^6" or "· 10^-3", or of ten itself in "^6".
pub(in crate::verify::values) fn power_of_ten(cursor: &Cursor<'_>, at: usize) -> Option<(Number, usize)> {
    let is_times = cursor.is_mark(at, '×')
        || cursor.is_mark(at, '·')
        || cursor.is_mark(at, '*')
        || cursor.word(at) == "x";
    let (base, caret) = if is_times { (at + 1, at + 2) } else { (at.checked_sub(1)?, at) };
    if cursor.word(base) != "10" || !cursor.is_mark(caret, '^') || !cursor.is_joined(caret) {
        return None;
    }
    let is_negative = cursor.is_mark(caret + 1, '-');
    let digits = caret + 1 + usize::from(is_negative);
    let power = i32::try_from(cursor.digits(digits, 1..4)?).ok()?;
    let power = if is_negative { -power } else { power };
    // Ten itself has been read already.
    Some((Number::new(1, if is_times { power } else { power - 1 }), digits + 1))
}

/// The groups of digits behind the first, each with the mark before it.
fn groups<'a>(cursor: &Cursor<'a>, at: usize) -> (Vec<(char, &'a str)>, usize) {
    let mut groups: Vec<(char, &str)> = Vec::new();
    let mut end = at + 1;
    while groups.len() < MAX_GROUPS {
        let before = groups.last().map_or(cursor.word(at).len(), |(_, digits)| digits.len());
        let mark = cursor
            .token(end)
            .filter(|_| cursor.is_joined(end) && cursor.is_digits(end + 1) && cursor.is_joined(end + 1));
        if let Some(mark) = mark.filter(|mark| matches!(mark.first, '.' | ',' | '\'' | '_')) {
            groups.push((mark.first, cursor.word(end + 1)));
            end += 2;
        } else if cursor.is_digits(end)
            && cursor.is_on_line(end)
            && cursor.word(end).len() == 3
            && before <= 3
            && groups.iter().all(|(mark, _)| *mark == ' ')
            && !cursor.word(at).starts_with('0')
        {
            groups.push((' ', cursor.word(end)));
            end += 1;
        } else {
            break;
        }
    }
    // An apostrophe or space before other than three digits groups nothing.
    if let Some(at_mark) = groups.iter().position(|(mark, digits)| *mark == '\'' && digits.len() != 3) {
        groups.truncate(at_mark);
        end = at + 1 + 2 * at_mark;
    }
    (groups, end)
}

/// A number with one mark: grouped or with decimals, or both readings.
fn one_mark(cursor: &Cursor<'_>, first: &str, mark: char, digits: &str) -> Option<Vec<Number>> {
    let grouped = || Number::parse(&[first, digits].concat());
    let decimal = || Number::parse(&[first, ".", digits].concat());
    let may_group = digits.len() == 3 && (1..=3).contains(&first.len()) && !first.starts_with('0');
    if matches!(mark, ' ' | '\'' | '_') {
        return Some(vec![grouped()?]);
    }
    if !may_group {
        return Some(vec![decimal()?]);
    }
    let (comma, point) = (cursor.languages.has_decimal_comma(), cursor.languages.has_decimal_point());
    Some(match (cursor.strict, mark) {
        (true, '.') if comma => vec![grouped()?],
        (true, '.') if point => vec![decimal()?],
        (true, ',') if comma => vec![decimal()?],
        // Where nothing is known of the language, a comma groups: it does so in most of what is written.
        (true, ',') => vec![grouped()?],
        _ => vec![grouped()?, decimal()?],
    })
}

/// A number with several marks: groups of three, or as in India, and decimals behind another mark.
fn several_marks(first: &str, groups: &[(char, &str)]) -> Option<Number> {
    let (last, rest) = groups.split_last()?;
    let mark = groups.first()?.0;
    let is_grouped = |groups: &[(char, &str)]| {
        let by_three = groups.iter().all(|(_, digits)| digits.len() == 3) && first.len() <= 3;
        let (thousands, lakhs) = groups.split_last().unwrap_or((last, &[]));
        let indian = mark == ','
            && thousands.1.len() == 3
            && first.len() <= 2
            && lakhs.iter().all(|(_, digits)| digits.len() == 2);
        groups.iter().all(|(other, _)| *other == mark) && (by_three || indian)
    };
    let join =
        |groups: &[(char, &str)]| groups.iter().fold(first.to_owned(), |all, (_, digits)| all + digits);
    if is_grouped(groups) {
        return Number::parse(&join(groups));
    }
    (last.0 != mark && matches!(last.0, '.' | ',') && is_grouped(rest))
        .then(|| Number::parse(&(join(rest) + "." + last.1)))?
}

/// A fraction such as 1⁄2 that has a decimal form.
fn fraction(cursor: &Cursor<'_>, at: usize) -> Option<(Number, usize)> {
    if !cursor.is_mark(at + 1, '\u{2044}') {
        return None;
    }
    let (over, under) = (cursor.digits(at, 1..3)?, cursor.digits(at + 2, 1..3)?);
    let thousandths = over.checked_mul(1000)?;
    (under > 0 && thousandths % under == 0)
        .then(|| (Number::new(i128::from(thousandths / under), -3), at + 3))
}
