//! On which side of zero a number stands: signs, degrees below zero and south, years before Christ.

use super::number::Number;
use super::units::Unit;
use crate::verify::values::cursor::Cursor;
use crate::verify::values::lexicon::{Meaning, Sign};
use crate::verify::words::Script;

/// The readings of the number at the tokens between two positions with the sign that stands beside it, where the number
/// begins with that sign, and the position behind both.
pub(in crate::verify::values) fn read(
    cursor: &Cursor<'_>,
    (at, end): (usize, usize),
    unit: Option<Unit>,
    readings: Vec<Number>,
) -> (Vec<Number>, (usize, usize)) {
    let negated = |readings: &[Number]| readings.iter().map(|number| number.negated()).collect();
    if let Some(length) = word_before(cursor, at, Sign::Minus) {
        return (negated(&readings), (at - length, end));
    }
    if let Some(length) = behind(cursor, end, unit) {
        return (negated(&readings), (at, end + length));
    }
    let is_era = unit.is_none_or(is_time);
    if let Some(length) = word_before(cursor, at, Sign::BcBefore).filter(|_| is_era) {
        return (negated(&readings), (at - length, end));
    }
    match mark(cursor, at) {
        Mark::None => (readings, (at, end)),
        Mark::Minus(sign) => (negated(&readings), (sign, end)),
        Mark::Unclear(sign) if cursor.strict => (negated(&readings), (sign, end)),
        Mark::Unclear(_) => {
            let both =
                readings.iter().map(|number| number.negated()).chain(readings.iter().copied()).collect();
            (both, (at, end))
        }
    }
}

/// How many tokens behind a year say that it is one before Christ.
pub(in crate::verify::values) fn before_christ(cursor: &Cursor<'_>, end: usize) -> Option<usize> {
    let is_sign = |meaning| matches!(meaning, Meaning::Sign(Sign::Bc)).then_some(());
    let ((), length) = cursor.longest(end, is_sign).filter(|_| cursor.is_on_line(end))?;
    // The point of the last abbreviation: 44 v. Chr.
    let has_point = cursor.is_mark(end + length, '.')
        && cursor.is_joined(end + length)
        && cursor.token(end + length - 1).is_some_and(|token| token.chars < 4);
    Some(
        length
            + usize::from(has_point && cursor.token(end + length + 1).is_some_and(|next| !next.is_capital())),
    )
}

fn behind(cursor: &Cursor<'_>, end: usize, unit: Option<Unit>) -> Option<usize> {
    let name = unit.map_or("", Unit::name);
    let is = |wanted: Sign| {
        let found = cursor.longest(end, |meaning| (meaning == Meaning::Sign(wanted)).then_some(()));
        found.filter(|_| cursor.is_on_line(end)).map(|((), length)| length)
    };
    match name {
        "degree" => is(Sign::Below).or_else(|| is(Sign::South)),
        "celsius" | "fahrenheit" => is(Sign::Below),
        _ if unit.is_none_or(is_time) => before_christ(cursor, end),
        _ => None,
    }
}

fn is_time(unit: Unit) -> bool {
    matches!(unit.name(), "year" | "decade" | "century")
}

/// How many tokens before a position are such a word.
fn word_before(cursor: &Cursor<'_>, at: usize, wanted: Sign) -> Option<usize> {
    let pick = |meaning: Meaning| (meaning == Meaning::Sign(wanted)).then_some(());
    cursor.before(at, 4, pick).filter(|_| cursor.is_on_line(at)).map(|((), length)| length)
}

/// What stands before a number, by its position.
enum Mark {
    None,
    Minus(usize),
    /// It may as well be a dash or a bullet.
    Unclear(usize),
}

/// The mark before digits, also before their currency: -5, (-5), -$5. Spaced before and joined behind it is a sign.
fn mark(cursor: &Cursor<'_>, at: usize) -> Mark {
    if !cursor.is_digits(at) || !cursor.is_joined(at) {
        return Mark::None;
    }
    let is_currency = |at: usize| {
        cursor.token(at).is_some_and(|token| matches!(token.first, '$' | '€' | '£' | '¥'))
            && cursor.is_joined(at)
    };
    let Some(sign) = at
        .checked_sub(1)
        .and_then(|before| if is_currency(before) { before.checked_sub(1) } else { Some(before) })
    else {
        return Mark::None;
    };
    if !cursor.is_mark(sign, '-') {
        return Mark::None;
    }
    let before = sign.checked_sub(1).and_then(|before| cursor.token(before));
    let is_bracketed = before.is_some_and(|before| matches!(before.first, '(' | '[' | '"' | ':' | ','));
    let is_spaced = cursor.token(sign).is_some_and(|token| token.spaced);
    match before {
        _ if !is_spaced && !is_bracketed => Mark::None,
        // The first of a line may be a bullet, one behind a number a dash.
        None => Mark::Unclear(sign),
        Some(before) if before.script == Script::Digits || !cursor.is_on_line(sign) => Mark::Unclear(sign),
        Some(_) => Mark::Minus(sign),
    }
}
