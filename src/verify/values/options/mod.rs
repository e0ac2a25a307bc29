//! Options that mean the same, overlap, or come one after the other.
//!
//! A reader of two options has no text around them, so all is decided strictly: each must have one reading in the
//! languages given, and every word, letter and mark beside the values must be the same but for articles: what is merged
//! by mistake takes a right answer from the panel. Never the same: amounts of units that
//! no exact factor joins (tons and tonnes, a month and 30 days, °C and K), a hedged and a bare number, a place in an
//! order and an amount, symbols that differ by case, decimals that differ by a last zero (versions).

mod interval;
mod parsed;

use std::cell::OnceCell;
use std::cmp::Ordering;

use interval::Interval;
use parsed::Parsed;

use super::language::Languages;
use super::lexicon::Hedge;
use super::numbers::number::Number;
use super::reading::Found;
use super::value::{Date, Value};
use super::wording::{Countries, compared};
use crate::verify::normal_form;

/// An option, read once to be compared with any number of others.
#[derive(Debug)]
pub struct Choice<'a> {
    text: &'a str,
    languages: Languages,
    /// Its normal form in small letters.
    small: String,
    /// Its form as options are compared as texts.
    compared: String,
    countries: OnceCell<Countries>,
    /// What it says, read when its form alone does not decide.
    parsed: OnceCell<Parsed>,
    /// The amounts that it allows, if it is about any.
    interval: OnceCell<Option<Interval>>,
}

impl<'a> Choice<'a> {
    /// An option in any language: what it means is told only where it has one meaning in all of them.
    pub fn new(text: &'a str) -> Self {
        Self::of(text, Languages::ANY)
    }

    /// An option in a known language.
    pub fn of(text: &'a str, languages: Languages) -> Self {
        let (countries, parsed, interval) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let normal = normal_form::of(text);
        let (small, compared) = (normal.to_lowercase(), compared(&normal));
        Self { text, languages, small, compared, countries, parsed, interval }
    }

    /// Its words.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Its normal form in small letters.
    pub fn small(&self) -> &str {
        &self.small
    }

    /// Whether it is the same text as another, whatever that means.
    pub fn is_same_text(&self, other: &Choice<'_>) -> bool {
        self.compared == other.compared
    }

    fn parsed(&self) -> &Parsed {
        self.parsed.get_or_init(|| Parsed::read(self.text, self.languages))
    }

    fn countries(&self) -> &Countries {
        self.countries.get_or_init(|| Countries::of(&self.small))
    }

    fn interval(&self) -> Option<&Interval> {
        self.interval.get_or_init(|| Interval::of(self.parsed())).as_ref()
    }

    /// Whether it means the same as another.
    pub fn is_same(&self, other: &Choice<'_>) -> bool {
        self.is_same_text(other)
            || self.countries().named.is_some_and(|one| other.countries().named == Some(one))
            || same_values(self.parsed(), other.parsed())
    }

    /// Whether it gives the values of another, with as many values as it and all its words; `None` if that has no
    /// values.
    pub fn holds_values_of(&self, other: &Choice<'_>) -> Option<bool> {
        let (one, other) = (self.parsed(), other.parsed());
        (!other.values.is_empty()).then(|| has_values_of(one, other) && one.has_words_of(other))
    }

    /// Whether both can be right: a bound or range and what lies in it, a month and a day of it, a country and a
    /// name that it goes by loosely. Options that are the same are no case of it.
    pub fn overlaps(&self, other: &Choice<'_>) -> bool {
        if self.countries().may_be(other.countries()) {
            return true;
        }
        let intervals = || self.interval().zip(other.interval());
        let (one, other) = (self.parsed(), other.parsed());
        let hedge = |parsed: &Parsed| parsed.values.first().map(|found| found.hedge);
        // Since 2010 and since 2015 name two beginnings, of which one can be right.
        if hedge(one) == hedge(other) && matches!(hedge(one), Some(Hedge::Since | Hedge::Until)) {
            return false;
        }
        let is_date =
            |parsed: &Parsed| matches!(parsed.single(), Some((_, Value::Date(Date { year: Some(_), .. }))));
        if is_date(one) || is_date(other) {
            let days = (Interval::of_days(one), Interval::of_days(other));
            return one.is_comparable(other)
                && matches!(days, (Some(one), Some(other)) if one != other && one.meets(&other));
        }
        if !one.is_comparable(other) {
            return false;
        }
        let Some((one, other)) = intervals() else { return false };
        !(one.is_point && other.is_point) && one.dimension == other.dimension && one.meets(other)
    }

    /// Which of both comes first, for amounts of one kind, dates and times; `None` where that cannot be told, as
    /// readings differ in it, or where other words stand beside them.
    pub fn order(&self, other: &Choice<'_>) -> Option<Ordering> {
        let (one, other) = (self.parsed(), other.parsed());
        if !one.is_comparable(other) {
            return None;
        }
        let (one, other) = (one.values.first()?, other.values.first()?);
        let orders: Option<Vec<Ordering>> = one
            .readings
            .iter()
            .flat_map(|value| other.readings.iter().map(move |other| (*value, *other)))
            .map(|(value, other_value)| order_of((one, value), (other, other_value)))
            .collect();
        let orders = orders?;
        let first = *orders.first()?;
        orders.iter().all(|order| *order == first).then_some(first)
    }
}

/// Whether two options mean the same, told only where each has one meaning in any language.
pub fn same(one: &str, other: &str) -> bool {
    Choice::new(one).is_same(&Choice::new(other))
}

fn same_values(one: &Parsed, other: &Parsed) -> bool {
    one.has_rest_of(other) && has_values_of(one, other)
}

/// Whether two options have the same values, each with one reading.
fn has_values_of(one: &Parsed, other: &Parsed) -> bool {
    one.is_clear()
        && other.is_clear()
        && one.values.len() == other.values.len()
        && one.values.iter().zip(&other.values).enumerate().all(|(at, (value, other_value))| {
            value.hedge == other_value.hedge
                && value.begins_range == other_value.begins_range
                && one.has_form_of(other, at)
                && is_same(value, other_value)
        })
}

fn is_same(one: &Found, other: &Found) -> bool {
    match (one.readings.first(), other.readings.first()) {
        (Some(Value::Number(number)), Some(Value::Number(other_number))) => {
            let (Some(unit), Some(other_unit)) = (one.unit, other.unit) else {
                return one.unit == other.unit && number == other_number;
            };
            if unit == other_unit {
                return number == other_number;
            }
            match (unit.name(), other_unit.name()) {
                ("celsius", "fahrenheit") => is_same_heat(*number, *other_number),
                ("fahrenheit", "celsius") => is_same_heat(*other_number, *number),
                _ => {
                    let base = unit.in_base(*number);
                    unit.dimension() == other_unit.dimension()
                        && base.is_some()
                        && base == other_unit.in_base(*other_number)
                }
            }
        }
        (Some(value), Some(other)) => value == other,
        _ => false,
    }
}

/// Whether degrees Celsius and Fahrenheit are exactly the same heat.
fn is_same_heat(celsius: Number, fahrenheit: Number) -> bool {
    let as_fahrenheit = celsius.times(Number::new(18, -1)).and_then(|number| number.plus(Number::from(32)));
    as_fahrenheit == Some(fahrenheit)
}

/// Year, month and day of a date or of a year alone.
fn as_date(value: Value) -> Option<(i64, Option<u8>, Option<u8>)> {
    match value {
        Value::Date(Date { year, month, day }) => Some((i64::from(year?), Some(month), day)),
        Value::Number(number) => {
            Some((number.whole().filter(|year| (1000..=2999).contains(year))?, None, None))
        }
        Value::Time(_) => None,
    }
}

fn order_of((one, value): (&Found, Value), (other, other_value): (&Found, Value)) -> Option<Ordering> {
    match (value, other_value) {
        (Value::Number(number), Value::Number(other_number)) => {
            if one.unit == other.unit {
                return Some(number.cmp(&other_number));
            }
            let (unit, other_unit) = (one.unit?, other.unit?);
            let bases = unit.in_base(number)?.cmp(&other_unit.in_base(other_number)?);
            (unit.dimension() == other_unit.dimension()).then_some(bases)
        }
        (Value::Time(one), Value::Time(other)) => Some(one.cmp(&other)),
        (
            Value::Date(Date { year: None, month, day }),
            Value::Date(Date { year: None, month: other, day: other_day }),
        ) => Some((month, day).cmp(&(other, other_day))),
        (one, other) => Some(as_date(one)?.cmp(&as_date(other)?)),
    }
}

#[cfg(test)]
mod tests;
