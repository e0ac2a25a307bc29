//! Dates and times of the day.

use super::cursor::Cursor;
use super::language::Languages;
use super::lexicon::{Hedge, Meaning};
use super::numbers::{bounds, signs};
use super::reading::Found;
use super::value::{Date, Time, Value};
use crate::verify::words::{Script, Token};

/// A date or time at a position, and the position behind it.
pub(super) fn read(cursor: &Cursor<'_>, at: usize) -> Option<(Found, usize)> {
    let token = cursor.token(at)?;
    let (readings, end) = match token.script {
        Script::Digits => {
            // A part of a name, or of a longer number.
            let before = at.checked_sub(1).and_then(|before| cursor.token(before));
            if cursor.is_joined(at) && before.is_some_and(|before| before.script == Script::Letters) {
                return None;
            }
            numeric(cursor, at)
                .or_else(|| ideographic(cursor, at))
                .or_else(|| time(cursor, at))
                .or_else(|| from_day(cursor, at))?
        }
        Script::Letters => from_month(cursor, at).or_else(|| from_day(cursor, at))?,
        _ => return None,
    };
    let possible: Vec<Value> = readings
        .into_iter()
        .filter(|value| !matches!(value, Value::Date(date) if !date.is_possible()))
        .collect();
    if possible.is_empty() {
        return None;
    }
    let (possible, end) = match signs::before_christ(cursor, end) {
        Some(length) if possible.iter().all(has_year) => {
            (possible.into_iter().map(before_christ).collect(), end + length)
        }
        _ => (possible, end),
    };
    // Of what bounds amounts only "about" bounds a date.
    let (hedge, bound) = bounds::hedge(cursor, at, end, |hedge| hedge == Hedge::About || hedge.is_of_time());
    let found = Found {
        range: cursor.range(at, end),
        readings: possible,
        unit: None,
        hedge,
        bound,
        weak: false,
        begins_range: false,
    };
    Some((found, end))
}

const fn has_year(value: &Value) -> bool {
    matches!(value, Value::Date(Date { year: Some(_), .. }))
}

fn before_christ(value: Value) -> Value {
    match value {
        Value::Date(date) => Value::Date(Date { year: date.year.map(|year| -year), ..date }),
        other => other,
    }
}

fn date(year: Option<i64>, month: i64, day: Option<i64>) -> Value {
    let small = |number: i64| u8::try_from(number).unwrap_or(0);
    Value::Date(Date {
        year: year.and_then(|year| i32::try_from(year).ok()),
        month: small(month),
        day: day.map(small),
    })
}

/// 2024-07-26, 26.07.2024, 07/26/2024 (two readings where both numbers may be the month).
fn numeric(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Value>, usize)> {
    let mark = cursor.token(at + 1).filter(|token| matches!(token.first, '-' | '/' | '.'))?.first;
    let is_whole = cursor.is_mark(at + 3, mark) && (at + 1..at + 5).all(|at| cursor.is_joined(at));
    let ends = !(cursor.is_joined(at + 5)
        && (cursor.is_digits(at + 5) || cursor.is_joined(at + 6) && cursor.is_digits(at + 6)));
    if !is_whole || !ends {
        return None;
    }
    let (one, two) = (cursor.digits(at, 1..5)?, cursor.digits(at + 2, 1..3)?);
    let (first, last) = (cursor.word(at).len(), cursor.word(at + 4).len());
    if first == 4 {
        return Some((vec![date(Some(one), two, Some(cursor.digits(at + 4, 1..3)?))], at + 5));
    }
    let year = cursor.digits(at + 4, 4..5).filter(|_| last == 4 && first <= 2)?;
    let day_first = date(Some(year), two, Some(one));
    let month_first = date(Some(year), one, Some(two));
    let readings =
        if mark == '.' || day_first == month_first { vec![day_first] } else { vec![day_first, month_first] };
    Some((readings, at + 5))
}

/// 2024年7月26日, 7월 26일.
fn ideographic(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Value>, usize)> {
    let is = |at: usize, signs: [char; 2]| cursor.token(at).is_some_and(|token| signs.contains(&token.first));
    let (year, month_at) = if is(at + 1, ['年', '년']) && cursor.is_digits(at + 2) {
        (cursor.digits(at, 1..5), at + 2)
    } else {
        (None, at)
    };
    if !is(month_at + 1, ['月', '월']) {
        return None;
    }
    let month = cursor.digits(month_at, 1..3)?;
    let day = cursor
        .digits(month_at + 2, 1..3)
        .filter(|_| is(month_at + 3, ['日', '일']) || is(month_at + 3, ['号', '號']));
    let end = month_at + if day.is_some() { 4 } else { 2 };
    Some((vec![date(year, month, day)], end))
}

/// 10:30, 10:30 pm, 5 a.m., 10.30 Uhr, 14h30, 10時30分.
fn time(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Value>, usize)> {
    let hour = cursor.digits(at, 1..3).filter(|hour| *hour <= 24)?;
    let mark = cursor.token(at + 1)?.first;
    let minute = cursor
        .digits(at + 2, 2..3)
        .filter(|minute| *minute < 60 && cursor.is_joined(at + 1) && cursor.is_joined(at + 2));
    let is_oclock = |at: usize| cursor.word(at).eq_ignore_ascii_case("uhr");
    let (minute, mut end) = match (mark, minute) {
        (':', Some(minute)) if cursor.word(at + 2).len() == 2 => (minute, at + 3),
        ('h', Some(minute)) => (minute, at + 3),
        ('.', Some(minute)) if is_oclock(at + 3) || half_of_day(cursor, at + 3).is_some() => (minute, at + 3),
        ('時' | '시', minute) => (minute.unwrap_or(0), at + 2 + 2 * usize::from(minute.is_some())),
        _ => (0, at + 1),
    };
    let is_bare = end == at + 1;
    let half = half_of_day(cursor, end);
    if is_bare && half.is_none() && !is_oclock(end) {
        return None;
    }
    let mut hour = hour;
    if let Some((is_afternoon, behind)) = half.filter(|_| hour <= 12) {
        hour = hour % 12 + if is_afternoon { 12 } else { 0 };
        end = behind;
    }
    end += usize::from(is_oclock(end));
    let seconds = u32::try_from(hour * 3600 + minute * 60).ok()?;
    Some((vec![Value::Time(Time(seconds))], end))
}

/// Whether "am" or "pm" stands at a position, and the position behind it.
fn half_of_day(cursor: &Cursor<'_>, at: usize) -> Option<(bool, usize)> {
    let word = cursor.word(at);
    if word.eq_ignore_ascii_case("am") || word.eq_ignore_ascii_case("pm") {
        return Some((word.starts_with(['p', 'P']), at + 1));
    }
    let is_spelt = matches!(word, "a" | "p" | "A" | "P")
        && cursor.is_mark(at + 1, '.')
        && matches!(cursor.word(at + 2), "m" | "M");
    is_spelt.then(|| {
        (
            word.starts_with(['p', 'P']),
            at + 3 + usize::from(cursor.is_mark(at + 3, '.') && cursor.is_joined(at + 3)),
        )
    })
}

/// The month at a position, if it can be meant, and how many tokens it has.
fn month(cursor: &Cursor<'_>, at: usize) -> Option<(i64, bool, usize)> {
    let ((month, clear), length) = cursor.longest(at, |meaning| match meaning {
        Meaning::Month { month, clear } => Some((i64::from(month), clear)),
        _ => None,
    })?;
    let is_english = Languages::of_code("en").is_some_and(|english| english == cursor.languages);
    let is_name = cursor.token(at).is_some_and(Token::is_capital);
    (clear || is_name || !is_english).then(|| {
        let end = at + length;
        let has_point = !clear && cursor.is_mark(end, '.') && cursor.is_joined(end);
        (month, clear, length + usize::from(has_point))
    })
}

/// The year at a position, behind a comma or a small word.
fn year(cursor: &Cursor<'_>, at: usize) -> Option<(i64, usize)> {
    let skipped =
        usize::from(cursor.is_mark(at, ',') || matches!(cursor.word(at), "de" | "del" | "of" | "di" | "do"));
    let year = cursor.digits(at + skipped, 3..5)?;
    // Not an amount: "In May 1,200 people", "in June 1500 km".
    let is_amount = cursor.is_joined(at + skipped + 1)
        && cursor.is_mark(at + skipped + 1, ',')
        && cursor.is_digits(at + skipped + 2)
        && cursor.is_joined(at + skipped + 2);
    (!is_amount && (cursor.word(at + skipped).len() == 4 || skipped == 0)).then_some((year, at + skipped + 1))
}

/// A day with its month behind it: 26 July 2024, 26. Juli, 26 de julio de 2024, the first of May.
fn from_day(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Value>, usize)> {
    let (day, mut end) = if let Some(day) = cursor.digits(at, 1..3) {
        (day, at + 1)
    } else {
        let pick = |meaning| if let Meaning::Ordinal(day) = meaning { Some(i64::from(day)) } else { None };
        let (day, length) = cursor.longest(at, pick)?;
        (day, at + length)
    };
    if !(1..=31).contains(&day) {
        return None;
    }
    let is_suffix = cursor.is_joined(end)
        && (matches!(cursor.word(end), "st" | "nd" | "rd" | "th" | "er" | "º" | "°")
            || cursor.is_mark(end, '.'));
    end += usize::from(is_suffix);
    end += usize::from(matches!(cursor.word(end), "of" | "de" | "di" | "do" | "d"));
    let (month, _, length) = month(cursor, end)?;
    end += length;
    let year = year(cursor, end);
    Some((vec![date(year.map(|(year, _)| year), month, Some(day))], year.map_or(end, |(_, end)| end)))
}

/// A month with what follows it: July 26, 2024; July 2024; July.
fn from_month(cursor: &Cursor<'_>, at: usize) -> Option<(Vec<Value>, usize)> {
    let (month, clear, length) = month(cursor, at)?;
    let mut end = at + length;
    let english = cursor.digits(end, 1..3).filter(|day| (1..=31).contains(day) && cursor.is_on_line(end));
    // Not the hour or an amount: "May 10:30", "in March 12 km", "April 5 million".
    let is_other = |at: usize| {
        cursor.is_mark(at, ':')
            || cursor.is_joined(at)
                && (cursor.is_mark(at, '.') || cursor.is_mark(at, ','))
                && cursor.is_digits(at + 1)
                && cursor.is_joined(at + 1)
            || cursor.is_mark(at, '%')
            || cursor
                .longest(at, |meaning| matches!(meaning, Meaning::Unit(_) | Meaning::Scale(_)).then_some(()))
                .is_some()
    };
    if let Some(day) = english.filter(|_| !is_other(end + 1)) {
        end += 1;
        end += usize::from(cursor.is_joined(end) && matches!(cursor.word(end), "st" | "nd" | "rd" | "th"));
        let year = year(cursor, end);
        return Some((
            vec![date(year.map(|(year, _)| year), month, Some(day))],
            year.map_or(end, |(_, end)| end),
        ));
    }
    if let Some((year, behind)) = year(cursor, end) {
        return Some((vec![date(Some(year), month, None)], behind));
    }
    // An unclear one alone: "in May", "seit März".
    let after_small = at.checked_sub(1).is_some_and(|before| {
        matches!(
            cursor.word(before).to_lowercase().as_str(),
            "in" | "im"
                | "en"
                | "em"
                | "since"
                | "seit"
                | "until"
                | "bis"
                | "by"
                | "depuis"
                | "desde"
                | "last"
                | "next"
                | "в"
                | "с"
                | "sinds"
                | "early"
                | "late"
                | "mid"
        )
    });
    let is_meant = clear
        || after_small
            && cursor
                .token(at)
                .is_some_and(|token| token.is_capital() || cursor.languages.has_decimal_comma());
    is_meant.then(|| (vec![date(None, month, None)], end))
}
