//! Numbers, dates, units and hedges of a claim.

use std::ops::Range;

use super::check::{Case, Part};
use super::fault::{Fault, FaultKind, Severity};
use crate::verify::values::{Date, Found, Hedge, Meaning, Number, Reading, Unit, Value};

/// The most values of a quote that are compared with those of a claim.
const MAX_VALUES: usize = 200;

/// The most meanings of words near a quote that are looked at.
const MAX_SENSES: usize = 4_000;

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    for found in case.claim.reading.values() {
        if found.weak {
            faults.extend(one_of_another(case, found));
            continue;
        }
        if is_another_span(case, found) {
            faults.push(Fault::new(Severity::Hard, FaultKind::Number, shown(&case.claim, found)));
            continue;
        }
        if let Some(kind) = unsupported(case, found) {
            faults.push(Fault::new(Severity::Hard, kind, shown(&case.claim, found)));
            continue;
        }
        faults.extend(
            unit(case, found)
                .map(|severity| Fault::new(severity, FaultKind::Unit, shown(&case.claim, found))),
        );
        if is_hedged_otherwise(case, found) {
            faults.push(Fault::new(Severity::Soft, FaultKind::Hedge, shown(&case.claim, found)));
        }
    }
    faults.extend(
        turned(case).map(|found| Fault::new(Severity::Hard, FaultKind::Number, shown(&case.claim, found))),
    );
    faults.extend(scaled_otherwise(case));
    faults.extend(
        swapped(case).map(|found| Fault::new(Severity::Soft, FaultKind::Number, shown(&case.claim, found))),
    );
}

/// "A week" where the quote's sentence has "a month", and no week stands in the text.
fn one_of_another(case: &Case<'_>, found: &Found) -> Option<Fault> {
    let unit = found.unit.filter(|unit| !case.finder.names_unit(*unit))?;
    let is_claimed = |written: Unit| {
        case.claim.reading.values().iter().any(|found| found.unit.is_some_and(|unit| unit.may_be(written)))
    };
    let places = std::slice::from_ref(&case.zone.sentences);
    let mut others =
        found.numbers().flat_map(|number| near(case, number, places)).filter_map(|found| found.unit);
    let is_other = others.any(|written| !written.may_be(unit) && !is_claimed(written));
    is_other.then(|| Fault::new(Severity::Hard, FaultKind::Unit, shown(&case.claim, found)))
}

/// Whether a year of the claim is but the name of a decade in the text: 1980, the 1980s.
fn is_another_span(case: &Case<'_>, found: &Found) -> bool {
    let mut manners = found.numbers().flat_map(|number| case.finder.index().manners(number)).peekable();
    found.year().is_some()
        && manners.peek().is_some()
        && manners.all(|(unit, _)| unit.is_some_and(|unit| unit.name() == "decade"))
}

/// Two numbers of the claim that stand in the text the other way round: 3/4 and 4/3, 21–14 and 14–21.
fn turned<'a>(case: &'a Case<'_>) -> Option<&'a Found> {
    let claimed = case.claim.reading.values();
    let text = case.finder.folded().text();
    let values = case.finder.reading().values();
    let stands = |first: Number, second: Number| {
        let places = case.finder.index().number(first).iter().take(MAX_VALUES);
        places.map(|at| *at as usize).any(|at| {
            let pair = values.get(at).zip(values.get(at + 1));
            pair.is_some_and(|(one, other)| {
                is_pair(text, one, other) && other.numbers().any(|number| number == second)
            })
        })
    };
    claimed.windows(2).find_map(|pair| {
        let [one, other] = pair else { return None };
        let (first, second) = (one.numbers().next()?, other.numbers().next()?);
        let is_turned = first != second
            && is_pair(case.claim.text(), one, other)
            && stands(second, first)
            && !stands(first, second);
        is_turned.then_some(one)
    })
}

/// Whether but a mark stands between two numbers.
fn is_pair(text: &str, one: &Found, other: &Found) -> bool {
    let between = text.get(one.range.end..other.range.start).unwrap_or_default().trim();
    matches!(between, "-" | "/" | ":" | "\u{2044}")
}

/// A power of ten that stands without a number before it: "thousands" where the text near the quote has "millions".
fn scaled_otherwise(case: &Case<'_>) -> Option<Fault> {
    let bare = |reading: &Reading, within: Range<usize>| -> Vec<(u8, usize)> {
        let tokens = reading.tokens();
        let in_value = |at: usize| {
            let start = tokens.all()[at].start as usize;
            reading.values().iter().any(|found| found.range.contains(&start))
        };
        let scales = reading.senses_within(&within).filter_map(|sense| match sense.meaning {
            Meaning::Scale(power) => Some((power, sense.at as usize)),
            _ => None,
        });
        scales.filter(|(_, at)| !in_value(*at)).collect()
    };
    let claim = &case.claim.reading;
    let claimed = bare(claim, 0..claim.tokens().all().len());
    let reading = case.finder.reading();
    let powers = |place: &Range<usize>| {
        let senses: Vec<_> =
            reading.senses_within(&reading.tokens().within(place)).take(MAX_SENSES).collect();
        senses.into_iter().filter_map(|sense| match sense.meaning {
            Meaning::Scale(power) => Some(power),
            _ => None,
        })
    };
    let (_, at) = claimed
        .iter()
        .find(|(power, _)| !case.zone.all.iter().flat_map(powers).any(|near| near == *power))?;
    let mut said =
        powers(&case.zone.sentences).filter(|power| !claimed.iter().any(|(claimed, _)| claimed == power));
    let token = claim.tokens().all()[*at].range();
    let word = case.claim.text().get(token).unwrap_or_default();
    said.next().map(|_| Fault::new(Severity::Hard, FaultKind::Number, word))
}

/// A value as it stands in a part of a claim.
pub(super) fn shown<'a>(part: &'a Part, found: &Found) -> &'a str {
    part.text().get(found.range.clone()).unwrap_or_default()
}

/// Which fault it is that a value of a claim does not stand in the text; none if it does.
pub(super) fn unsupported(case: &Case<'_>, found: &Found) -> Option<FaultKind> {
    if found.readings.iter().any(|value| stands(case, *value)) {
        return None;
    }
    let is_date = found.readings.iter().any(|value| matches!(value, Value::Date(_)));
    let is_time = is_date || found.year().is_some();
    Some(if is_time && case.finder.index().has_relative() {
        FaultKind::RelativeTime
    } else if is_date {
        FaultKind::Date
    } else {
        FaultKind::Number
    })
}

fn stands(case: &Case<'_>, value: Value) -> bool {
    let index = case.finder.index();
    match value {
        Value::Number(number) => !index.number(number).is_empty() || is_relative_year(case, number),
        Value::Time(time) => {
            !index.time(time).is_empty()
                || time.0 % 3600 == 0 && !index.number(Number::from(i64::from(time.0 / 3600))).is_empty()
        }
        Value::Date(date) => {
            let at = |at: &u32| case.finder.reading().values().get(*at as usize);
            let mut dates = index
                .month(date.month, date.day)
                .iter()
                .take(MAX_VALUES)
                .filter_map(at)
                .flat_map(|found| &found.readings);
            let relative = || {
                index.relative(case.as_of).any(|(year, month, day)| {
                    date.year.is_none_or(|claimed| claimed == year)
                        && month == Some(date.month)
                        && (date.day.is_none() || day == date.day)
                })
            };
            dates.any(|value| matches!(value, Value::Date(written) if supports(case, *written, date)))
                || relative()
        }
    }
}

/// Whether a date of the text holds all that the claim says of a day. A year that it leaves out may stand elsewhere.
fn supports(case: &Case<'_>, written: Date, claimed: Date) -> bool {
    let Some(year) = claimed.year.filter(|_| written.year.is_none()) else {
        return written.supports(claimed);
    };
    let number = Number::from(i64::from(year));
    written.supports(claimed)
        && (!case.finder.index().number(number).is_empty()
            || is_relative_year(case, number)
            || year == i32::from(case.as_of.year()))
}

fn is_relative_year(case: &Case<'_>, number: Number) -> bool {
    number.whole().is_some_and(|year| {
        (1000..=2999).contains(&year)
            && case.finder.index().relative(case.as_of).any(|(relative, ..)| i64::from(relative) == year)
    })
}

/// Whether the number stands in the text only with other units, or without the unit where nobody names it.
fn unit(case: &Case<'_>, found: &Found) -> Option<Severity> {
    let unit = found.unit?;
    let manners = || found.numbers().flat_map(|number| case.finder.index().manners(number));
    if manners().next().is_none()
        || manners().any(|(written, _)| written.is_some_and(|written| written.may_be(unit)))
    {
        return None;
    }
    if manners().all(|(written, _)| written.is_some()) {
        return Some(Severity::Hard);
    }
    // In the heading of a column, or in a word that was not read as a unit: "aged 5".
    let is_named = case.finder.names_unit(unit);
    (!is_named).then_some(Severity::Soft)
}

/// Whether the claim bounds a number in another way than the text does, near the quote if it stands there.
fn is_hedged_otherwise(case: &Case<'_>, found: &Found) -> bool {
    let near: Vec<Hedge> = found
        .numbers()
        .flat_map(|number| near(case, number, &case.zone.all))
        .map(|found| found.hedge)
        .collect();
    let anywhere =
        || found.numbers().flat_map(|number| case.finder.index().manners(number)).map(|(_, hedge)| *hedge);
    if near.is_empty() {
        anywhere().next().is_some() && anywhere().all(|hedge| hedge.differs_from(found.hedge))
    } else {
        near.iter().all(|hedge| hedge.differs_from(found.hedge))
    }
}

/// The values of the text in some places of it that may be this number.
pub(super) fn near<'a>(case: &Case<'a>, number: Number, places: &[Range<usize>]) -> Vec<&'a Found> {
    near_places(case, case.finder.index().number(number), places)
}

/// Those of the values at these positions that stand in some places of the text.
pub(super) fn near_places<'a>(case: &Case<'a>, positions: &[u32], places: &[Range<usize>]) -> Vec<&'a Found> {
    let values = case.finder.reading().values();
    let start = |at: &u32| values.get(*at as usize).map_or(usize::MAX, |found| found.range.start);
    let mut all = Vec::new();
    for place in places {
        let first = positions.partition_point(|at| start(at) < place.start);
        let within = positions[first..].iter().take(MAX_VALUES).take_while(|at| start(at) < place.end);
        all.extend(within.filter_map(|at| values.get(*at as usize)));
    }
    all
}

/// A number that the claim takes from elsewhere although the quote has one of the same kind that the claim leaves out.
fn swapped<'a>(case: &'a Case<'_>) -> Option<&'a Found> {
    let reading = case.finder.reading();
    let quoted = &reading.values()[reading.values_within(&case.zone.quote)];
    let quoted = &quoted[..quoted.len().min(MAX_VALUES)];
    let claimed = case.claim.reading.values();
    let unused = |kind: &Found| {
        quoted
            .iter()
            .any(|quoted| is_same_kind(quoted, kind) && !claimed.iter().any(|claimed| meet(claimed, quoted)))
    };
    claimed
        .iter()
        .filter(|found| !found.weak)
        .find(|found| !quoted.iter().any(|quoted| meet(quoted, found)) && unused(found))
}

fn is_same_kind(one: &Found, other: &Found) -> bool {
    match (one.unit, other.unit) {
        (Some(one), Some(other)) => one == other,
        (None, None) => year_of(one).is_some() && year_of(other).is_some(),
        _ => false,
    }
}

fn year_of(found: &Found) -> Option<i32> {
    found.year().or_else(|| {
        found.readings.iter().find_map(|value| if let Value::Date(date) = value { date.year } else { None })
    })
}

/// Whether two values have a reading in common, or one of a part of a date.
pub(super) fn meet(one: &Found, other: &Found) -> bool {
    one.readings.iter().any(|value| other.readings.iter().any(|other| parts_meet(*value, *other)))
}

/// Whether two values are the same, or a year is that of the other's date.
fn parts_meet(one: Value, other: Value) -> bool {
    let year = |number: Number, date: Date| {
        date.year.map(i64::from) == number.whole() || date.day.map(i64::from) == number.whole()
    };
    match (one, other) {
        (Value::Number(number), Value::Date(date)) | (Value::Date(date), Value::Number(number)) => {
            year(number, date)
        }
        (Value::Date(one), Value::Date(other)) => one.supports(other) || other.supports(one),
        (one, other) => one == other,
    }
}
