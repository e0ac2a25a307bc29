//! Numbers in digits, words, Roman and CJK numerals, with their scale, unit and hedge.

use super::number::Number;
use super::{bounds, literal, numerals, signs};
use crate::verify::values::cursor::Cursor;
use crate::verify::values::lexicon::{Hedge, Meaning};
use crate::verify::values::reading::Found;
use crate::verify::values::value::Value;
use crate::verify::words::{Script, Token};

/// A number at the tokens of a position, and the position behind it. Its readings are empty where digits are not a
/// value but a part of a name.
pub(in crate::verify::values) fn read(cursor: &Cursor<'_>, at: usize) -> Option<(Found, usize)> {
    let token = cursor.token(at)?;
    let mut weak = false;
    let (readings, end) = match token.script {
        Script::Digits => digits(cursor, at)?,
        Script::Letters => match numerals::roman(cursor.word(at)) {
            Some(roman) if token.chars > 1 || follows_name(cursor, at) => {
                weak = token.chars == 1;
                (vec![Number::from(roman)], at + 1)
            }
            _ => {
                let (readings, end) = words(cursor, at)?;
                // One is a word as well as a number: it supports a claim, and is not asked of it.
                weak = readings == [Number::from(1)];
                (readings, end)
            }
        },
        Script::Han | Script::Single => numerals::han(cursor, at).map(|(number, end)| (vec![number], end))?,
        _ => return None,
    };
    let (unit, end) = bounds::unit(cursor, at, end, &readings);
    let (readings, (first, end)) = signs::read(cursor, (at, end), unit, readings);
    let is_year = unit.is_none()
        && readings
            .first()
            .and_then(|number| number.whole())
            .is_some_and(|year| (1000..=2999).contains(&year));
    let (hedge, bound) = bounds::hedge(
        cursor,
        first,
        end,
        if is_year { |_: Hedge| true } else { |hedge: Hedge| !hedge.is_of_time() },
    );
    let found = Found {
        range: cursor.range(first, end),
        readings: readings.into_iter().map(Value::Number).collect(),
        unit,
        hedge,
        bound,
        weak,
        begins_range: false,
    };
    Some((found, end))
}

/// Digits with what multiplies them.
fn digits(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Number>, usize)> {
    if is_in_name(cursor, at) {
        return Some((Vec::new(), literal::end_of_chain(cursor, at)));
    }
    let (mut readings, mut end) = literal::read(cursor, at)?;
    if let Some((power, behind)) = literal::power_of_ten(cursor, end) {
        readings = times(&readings, &[power]);
        end = behind;
    }
    Some(scaled(cursor, readings, end))
}

/// Multiplied by the scale words that follow, with what they are continued by: 3億5千万, 2 million 300 thousand.
fn scaled(cursor: &Cursor<'_>, readings: Vec<Number>, end: usize) -> (Vec<Number>, usize) {
    let (mut readings, mut end) = (readings, end);
    let mut total: Option<Number> = None;
    for _ in 0..6 {
        let (powers, behind) = scale(cursor, end);
        if powers.is_empty() {
            break;
        }
        readings = times(&readings, &powers);
        end = behind;
        let is_written_on = cursor.is_joined(end) && cursor.is_digits(end);
        if let (true, [chunk], Some((more, next))) =
            (is_written_on, readings.as_slice(), literal::read(cursor, end))
        {
            total = total.map_or(Some(*chunk), |total| total.plus(*chunk));
            (readings, end) = (more, next);
        }
    }
    if let Some(total) = total {
        readings = readings.iter().filter_map(|chunk| total.plus(*chunk)).collect();
    }
    (readings, end)
}

/// The powers of ten that a scale word at a position may stand for.
fn scale(cursor: &Cursor<'_>, at: usize) -> (Vec<Number>, usize) {
    let pick = |meaning| if let Meaning::Scale(power) = meaning { Some(power) } else { None };
    let Some((_, length)) = cursor.longest(at, pick) else { return (Vec::new(), at) };
    let powers = cursor.senses(at).filter(|sense| usize::from(sense.length) == length);
    let numbers =
        powers.filter_map(|sense| pick(sense.meaning)).map(|power| Number::new(1, i32::from(power)));
    let end = at + length;
    let has_stop = cursor.is_mark(end, '.')
        && cursor.is_joined(end)
        && cursor.token(at + 1).is_some_and(|token| !token.is_capital());
    // "13 Mio. Euro" goes on with what is counted, in capitals as well.
    let is_counted =
        || cursor.longest(end + 1, |meaning| matches!(meaning, Meaning::Unit(_)).then_some(())).is_some();
    (numbers.collect(), end + usize::from(has_stop && (!ends_sentence(cursor, end) || is_counted())))
}

/// Whether a point is followed by a capital, and so may end a sentence.
fn ends_sentence(cursor: &Cursor<'_>, point: usize) -> bool {
    cursor.token(point + 1).is_none_or(|token| token.spaced && token.is_capital())
}

fn times(one: &[Number], other: &[Number]) -> Vec<Number> {
    one.iter().flat_map(|one| other.iter().filter_map(|other| one.times(*other))).collect()
}

/// A number in words; none for zero, and for one where no unit follows, which are words as well.
fn words(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Number>, usize)> {
    let (mut total, mut current, mut end) = (0_i64, 0_i64, at);
    let mut has_scale = false;
    let mut readings = Vec::new();
    loop {
        let number = cursor.longest(end, |meaning| match meaning {
            Meaning::Cardinal(number) => Some((i64::from(number), false)),
            Meaning::Ordinal(number) => Some((i64::from(number), true)),
            _ => None,
        });
        if let Some(((number, is_ordinal), length)) = number.filter(|_| current % 100 == 0) {
            current += number;
            end += length;
            if is_ordinal {
                break;
            }
        } else if let Some((number, true)) = compound(cursor, end).map(|number| (number, current == 0)) {
            current = number;
            end += 1;
        } else {
            let (powers, behind) = scale(cursor, end);
            let Some(power) =
                powers.first().and_then(|power| power.whole()).filter(|_| end > at || powers.len() == 1)
            else {
                break;
            };
            // "Thousands of", "million" alone: no number stands before it.
            if end == at {
                return None;
            }
            has_scale = true;
            if power == 100 {
                current = current.max(1) * 100;
            } else if powers.len() > 1 {
                readings = times(&[Number::from(total + current.max(1))], &powers);
                end = behind;
                break;
            } else {
                total = total.checked_add(current.max(1).checked_mul(power)?)?;
                current = 0;
            }
            end = behind;
        }
        // Between the parts: two hundred and five, mil y dos, twenty-five thousand.
        let joins = cursor.is_mark(end, '-') && cursor.is_joined(end)
            || has_scale && matches!(cursor.word(end), "and" | "und" | "y" | "e" | "et");
        end += usize::from(joins && begins_number(cursor, end + 1));
    }
    if end == at {
        return None;
    }
    let sum = total.checked_add(current)?;
    if readings.is_empty() {
        let has_unit =
            cursor.longest(end, |meaning| matches!(meaning, Meaning::Unit(_)).then_some(())).is_some();
        if sum == 0 || sum == 1 && !has_unit {
            return None;
        }
        readings.push(Number::from(sum));
    }
    let is_half =
        has_scale && at.checked_sub(1).is_some_and(|before| cursor.word(before).eq_ignore_ascii_case("half"));
    if is_half {
        readings = times(&readings, &[Number::new(5, -1)]);
    }
    Some((readings, end))
}

fn begins_number(cursor: &Cursor<'_>, at: usize) -> bool {
    cursor.longest(at, |meaning| matches!(meaning, Meaning::Cardinal(_)).then_some(())).is_some()
}

/// A number of several words in one: zweihundertfünfzig, duecento, driehonderd.
fn compound(cursor: &Cursor<'_>, at: usize) -> Option<i64> {
    const PARTS: [(&str, i64); 6] = [
        ("tausend", 1000),
        ("duizend", 1000),
        ("mila", 1000),
        ("hundert", 100),
        ("honderd", 100),
        ("cento", 100),
    ];
    let is_long = |token: &&Token| token.script == Script::Letters && token.chars >= 7;
    let token = cursor.token(at).filter(is_long).filter(|_| cursor.languages.have_compounds())?;
    let word = cursor.text.get(token.range())?.to_lowercase();
    numerals::compound(&word, &PARTS)
}

/// Whether a single capital stands behind a name, as a monarch's number does.
fn follows_name(cursor: &Cursor<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| cursor.token(before));
    before.is_some_and(|before| before.is_capital() && before.chars > 2) && !cursor.is_joined(at)
}

/// Whether digits are a part of a name: H2O, v2.1, B12.
fn is_in_name(cursor: &Cursor<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| cursor.token(before));
    let is_name = before.is_some_and(|before| before.script == Script::Letters) && cursor.is_joined(at);
    is_name && bounds::unit_before(cursor, at).is_none()
}
