//! What stands around a number: its unit, its hedge, the other end of its range.

use std::ops::Range;

use super::number::Number;
use super::units::{self, Unit};
use crate::verify::values::cursor::Cursor;
use crate::verify::values::lexicon::{Hedge, Marker, Meaning};
use crate::verify::values::reading::Found;
use crate::verify::values::value::Value;

/// The most tokens of a hedge, and between it and its number.
const MAX_HEDGE: usize = 6;

/// Endings that make an ordinal of digits.
const ORDINALS: [&str; 18] =
    ["st", "nd", "rd", "th", "e", "er", "re", "ère", "ème", "ième", "de", "º", "ª", "o", "a", "й", "го", "м"];

/// The unit of the number between two positions, and the position behind both.
pub(in crate::verify::values) fn unit(
    cursor: &Cursor<'_>,
    at: usize,
    end: usize,
    readings: &[Number],
) -> (Option<Unit>, usize) {
    let year = readings.first().and_then(|number| number.whole()).filter(|year| (1000..=2999).contains(year));
    let before = unit_before(cursor, at);
    if before.is_some() {
        return (before, end);
    }
    let mut behind = end;
    if cursor.is_digits(end - 1) && cursor.is_joined(end) {
        let word = cursor.word(end);
        let is_tens =
            readings.first().and_then(|number| number.whole()).is_some_and(|number| number % 10 == 0);
        if is_tens
            && matches!(word, "s" | "er" | "ers")
            && (year.is_some() || readings.first().is_some_and(|number| *number < Number::from(100)))
        {
            return (Unit::named("decade"), end + 1);
        }
        if ORDINALS.contains(&word) {
            behind += 1;
        } else if cursor.is_mark(end, '-')
            && ORDINALS.contains(&cursor.word(end + 1))
            && cursor.is_joined(end + 1)
        {
            behind += 2;
        }
    }
    // "19. Jahrhundert", and "5-year", "330-Meter-Turm".
    let century = |at: usize| unit_at(cursor, at).filter(|(unit, _)| unit.name() == "century");
    let is_hyphened =
        || cursor.is_mark(behind, '-') && cursor.is_joined(behind) && unit_at(cursor, behind + 1).is_some();
    if cursor.is_mark(behind, '.') && century(behind + 1).is_some() || is_hyphened() {
        behind += 1;
    }
    // "400 millions d'euros", "897 milhões de euros".
    let joins = match cursor.word(behind) {
        "de" | "di" => 1,
        "d" if cursor.is_mark(behind + 1, '\'') => 2,
        _ => 0,
    };
    if joins > 0 && unit_at(cursor, behind + joins).is_some() {
        behind += joins;
    }
    match unit_at(cursor, behind) {
        // A year is not an amount of years: 1889年, в 1889 году.
        Some((unit, _)) if year.is_some() && unit.name() == "year" => (None, end),
        Some((unit, length)) => (Some(unit), behind + length),
        None => (None, end),
    }
}

/// A currency that stands before its amount.
pub(in crate::verify::values) fn unit_before(cursor: &Cursor<'_>, at: usize) -> Option<Unit> {
    const CURRENCIES: [&str; 12] = [
        "usd", "dollar", "euro", "sterling", "yen", "yuan", "won", "franc", "rouble", "rupee", "krona",
        "zloty",
    ];
    let before = at.checked_sub(1).filter(|_| cursor.is_on_line(at))?;
    let start = if cursor.word(before) == "$"
        && cursor.word(before.wrapping_sub(1)) == "US"
        && cursor.is_joined(before)
    {
        before - 1
    } else {
        before
    };
    let symbol = units::whole_symbol(cursor.text.get(cursor.range(start, at))?);
    let token = cursor.token(before)?;
    let code = || {
        let is_code = token.chars == 3 && token.capitals == 3;
        is_code.then(|| cursor.longest(before, unit_of).map(|(unit, _)| unit)).flatten()
    };
    symbol.or_else(code).filter(|unit| CURRENCIES.contains(&unit.name()))
}

fn unit_of(meaning: Meaning) -> Option<Unit> {
    if let Meaning::Unit(unit) = meaning { Some(unit) } else { None }
}

/// The unit at a position, in symbols or words, and how many tokens it has.
fn unit_at(cursor: &Cursor<'_>, at: usize) -> Option<(Unit, usize)> {
    if !cursor.is_on_line(at) {
        return None;
    }
    let token = cursor.token(at)?;
    let named = cursor.longest(at, unit_of);
    let rest = cursor.text.get(token.start as usize..)?;
    let symbol = units::symbol(rest).and_then(|(unit, length)| {
        let end = token.start as usize + length;
        // Not a part of a word, of a longer power or of an address.
        let next = cursor.text.get(end..)?.chars().next();
        let is_whole = next.is_none_or(|next| !next.is_alphanumeric() && next != '^')
            || rest.get(..length).is_some_and(|symbol| !symbol.ends_with(char::is_alphanumeric));
        let tokens =
            cursor.tokens[at..].iter().take(8).take_while(|token| (token.start as usize) < end).count();
        is_whole.then_some((unit, tokens))
    });
    match (symbol, named) {
        (Some(symbol), Some(named)) => Some(if named.1 > symbol.1 { named } else { symbol }),
        (symbol, named) => symbol.or(named),
    }
}

/// Whether a word is the sign of the number behind it: below minus 40 degrees.
pub(in crate::verify::values) fn is_minus_in_words(cursor: &Cursor<'_>, at: usize) -> bool {
    ["minus", "минус"].iter().any(|word| cursor.word(at).eq_ignore_ascii_case(word))
}

/// How the number between two positions is bounded, and where the words stand that say so.
pub(in crate::verify::values) fn hedge(
    cursor: &Cursor<'_>,
    at: usize,
    end: usize,
    may_be: fn(Hedge) -> bool,
) -> (Hedge, Range<usize>) {
    let pick = |before: bool| {
        move |meaning| match meaning {
            Meaning::Hedge(hedge, side) if side == before && may_be(hedge) => Some(hedge),
            _ => None,
        }
    };
    // Also behind what is counted: 90人以上, 1990年以前.
    for end in [end, end + usize::from(is_counter(cursor, end))] {
        let behind = cursor.longest(end, pick(false));
        if let Some((hedge, length)) = behind.filter(|_| cursor.is_on_line(end)) {
            return (hedge, cursor.range(end, end + length));
        }
    }
    // Over the currency, a sign, a point of an abbreviation, a bracket.
    let mut first = at;
    while let Some(before) =
        first.checked_sub(1).filter(|_| at - first < 3).and_then(|before| cursor.token(before))
    {
        let is_mark = matches!(before.first, '$' | '.' | '(' | '-' | '"' | '€' | '£' | '\'');
        let is_every = || cursor.senses(first - 1).any(|sense| sense.meaning == Meaning::Marker(Marker::All));
        let is_currency = || first == at && unit_before(cursor, at).is_some();
        if !(is_mark || is_every() || is_minus_in_words(cursor, first - 1) || is_currency()) {
            break;
        }
        // The end of the sentence before is not an abbreviation's.
        if before.is_mark('.') && cursor.longest(first.saturating_sub(2), pick(true)).is_none() {
            break;
        }
        first -= 1;
    }
    let hedge = cursor.before(first, MAX_HEDGE, pick(true));
    hedge.map_or((Hedge::None, 0..0), |(hedge, length)| (hedge, cursor.range(first - length, first)))
}

/// Whether a character is written between a number and what is counted.
pub(in crate::verify::values) fn is_counter(cursor: &Cursor<'_>, at: usize) -> bool {
    let counters = "年月日人名位个個本枚匹头頭次回度台座只隻条條件家所岁歳才つ国國层層階部章篇种種类類条点點票辆輛艘년명개인대번살";
    cursor.is_joined(at)
        && cursor.token(at).is_some_and(|token| token.chars == 1 && counters.contains(token.first))
}

/// Whether "and" joins the ends of a range: between 5 and 10.
fn is_between(cursor: &Cursor<'_>, first: &Found) -> bool {
    const BETWEEN: [&str; 7] = ["between", "zwischen", "entre", "tra", "fra", "tussen", "между"];
    let before = cursor.text.get(..first.range.start).unwrap_or_default().trim_end();
    let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    BETWEEN.contains(&word.to_lowercase().as_str())
}

/// Gives both ends of a range the unit and the hedge of either, and the second year of `1904-05` its century.
pub(in crate::verify::values) fn join_ranges(cursor: &Cursor<'_>, values: &mut [Found]) {
    for at in 1..values.len() {
        let (before, after) = values.split_at_mut(at);
        let (Some(first), Some(second)) = (before.last_mut(), after.first_mut()) else { continue };
        let between = cursor.text.get(first.range.end..second.range.start).unwrap_or("\n\n\n\n\n\n\n\n\n");
        if between.len() > 12 {
            continue;
        }
        let between = between.trim().trim_start_matches(['.', ',']).trim().to_lowercase();
        let is_short = matches!(between.as_str(), "-" | "/" | "~");
        let is_range = matches!(
            between.as_str(),
            "-" | "~"
                | "to"
                | "bis"
                | "à"
                | "a"
                | "tot"
                | "до"
                | "по"
                | "至"
                | "到"
                | "から"
                | "と"
                | "에서"
                | "and"
                | "und"
                | "et"
                | "y"
                | "e"
                | "и"
                | "en"
                | "or"
                | "oder"
                | "o"
                | "ou"
        );
        if is_short {
            complete_year(cursor, first, second);
        }
        if is_range {
            share_sign(cursor, first, second);
            let is_conjunction = matches!(
                between.as_str(),
                "and" | "und" | "et" | "y" | "e" | "и" | "en" | "or" | "oder" | "o" | "ou" | "と"
            ) && !is_between(cursor, first);
            // What joins the ends is no hedge of the second: 1914 bis 1918.
            if first.range.end <= second.bound.start && second.bound.end <= second.range.start {
                (second.hedge, second.bound) = (Hedge::None, 0..0);
            }
            if first.unit.is_none()
                && first.year().is_none()
                && !first.readings.iter().any(|value| matches!(value, Value::Date(_)))
            {
                first.unit = second.unit;
            } else if second.unit.is_none() && second.year().is_none() && !is_conjunction {
                second.unit = first.unit;
            }
            if !is_conjunction {
                first.begins_range = true;
                if first.hedge != Hedge::None {
                    second.hedge = first.hedge;
                } else if second.hedge == Hedge::About {
                    first.hedge = second.hedge;
                }
            }
        }
    }
}

/// The beginning of a range whose end has its sign behind it: 100–44 BC.
fn share_sign(cursor: &Cursor<'_>, first: &mut Found, second: &Found) {
    let written = cursor.text.get(second.range.clone()).unwrap_or_default();
    let zero = Number::from(0);
    let is_behind =
        written.starts_with(|c: char| c.is_ascii_digit()) && second.numbers().any(|number| number < zero);
    if is_behind && first.numbers().all(|number| number > zero) {
        let turned: Vec<Value> = first.numbers().map(|number| Value::Number(number.negated())).collect();
        if cursor.strict {
            first.readings = turned;
        } else {
            first.readings.extend(turned);
        }
    }
}

fn complete_year(cursor: &Cursor<'_>, first: &Found, second: &mut Found) {
    let is_two_digits = cursor
        .text
        .get(second.range.clone())
        .is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(year) = first.year().filter(|_| is_two_digits) else { return };
    let short = second.numbers().find_map(Number::whole).unwrap_or_default();
    let full = i64::from(year) / 100 * 100 + short;
    if full > i64::from(year) {
        if cursor.strict {
            second.readings.clear();
        }
        second.readings.push(Value::Number(Number::from(full)));
    }
}
