//! Options that mean the same, overlap, or come one after the other.
//!
//! A reader of two options has no text around them, so all is decided strictly: each must have one reading in the
//! languages given, and what stands beside the values must be the same words. Never the same: amounts of units that no
//! exact factor joins (tons and tonnes, a month and 30 days, °C and K), a hedged and a bare number, symbols that differ by
//! case, decimals that differ by a last zero (versions).

use std::cmp::Ordering;

use super::language::Languages;
use super::lexicon::{Hedge, Marker, Meaning};
use super::number::Number;
use super::reading::{Found, Reading};
use super::value::{Date, Value};
use super::wording::{country, normalized};
use crate::verify::words::{Folded, Script};

/// Whether two options mean the same, told only where each has one meaning in any language.
pub fn same(one: &str, other: &str) -> bool {
    same_in(one, other, Languages::ANY)
}

/// Like [`same`], for options in a known language.
pub fn same_in(one: &str, other: &str, languages: Languages) -> bool {
    let (normal, other_normal) = (normalized(one), normalized(other));
    normal == other_normal
        || country(&normal).is_some_and(|one| country(&other_normal) == Some(one))
        || same_values(&Parsed::read(one, languages), &Parsed::read(other, languages))
}

/// An option's values, and what else it says.
struct Parsed {
    values: Vec<Found>,
    /// The hashes of its other words that mean something by themselves.
    rest: Vec<u64>,
    /// For each value whether its decimals end in a zero.
    has_decimals: Vec<bool>,
}

impl Parsed {
    fn read(option: &str, languages: Languages) -> Self {
        let folded = Folded::new(option);
        let reading = Reading::of_folded(folded.text(), Some(languages));
        let values = reading.values().to_vec();
        let in_value = |start: usize| values.iter().any(|found| found.range.contains(&start));
        let is_empty = |at: usize| {
            let senses = reading.senses().iter().filter(|sense| {
                let from = sense.at as usize;
                (from..from + usize::from(sense.length)).contains(&at)
            });
            let means = |wanted: fn(&Meaning) -> bool| senses.clone().any(|sense| wanted(&sense.meaning));
            means(|meaning| matches!(meaning, Meaning::Small | Meaning::Hedge(..)))
                && !means(|meaning| matches!(meaning, Meaning::Marker(Marker::Not)))
        };
        let tokens = reading.tokens().all().iter().enumerate();
        let rest = tokens
            .filter(|(_, token)| token.script != Script::Mark || matches!(token.first, '-' | '+' | '/'))
            .filter(|(at, token)| !in_value(token.start as usize) && (values.is_empty() || !is_empty(*at)))
            .filter(|(_, token)| values.len() < 2 || !token.is_mark('-'))
            .filter(|(_, token)| !is_currency(&values, folded.text().get(token.range()).unwrap_or_default()))
            .map(|(_, token)| token.hash)
            .collect();
        let decimals = |found: &Found| {
            let literal = folded.text().get(found.range.clone()).unwrap_or_default();
            let digits = literal.trim_end_matches(|c: char| !c.is_ascii_digit());
            let behind = digits.rsplit_once(['.', ',']).map_or("", |(_, behind)| behind);
            behind.ends_with('0') && behind.len() != 3
        };
        let has_decimals = values.iter().map(decimals).collect();
        Self { values, rest, has_decimals }
    }

    /// The only value, if it has one reading.
    fn single(&self) -> Option<(&Found, Value)> {
        match self.values.as_slice() {
            [found] => Some((found, found.readings.first().copied().filter(|_| found.readings.len() == 1)?)),
            _ => None,
        }
    }
}

/// Whether a word outside of the values' ranges is the currency of one of them.
fn is_currency(values: &[Found], word: &str) -> bool {
    word.len() == 3
        && values.iter().any(|found| found.unit.is_some_and(|unit| unit.name().eq_ignore_ascii_case(word)))
        || word.eq_ignore_ascii_case("us")
            && values.iter().any(|found| found.unit.is_some_and(|unit| unit.name() == "usd"))
}

fn same_values(one: &Parsed, other: &Parsed) -> bool {
    let is_whole = |parsed: &Parsed| {
        !parsed.values.is_empty() && parsed.values.iter().all(|found| found.readings.len() == 1)
    };
    if !is_whole(one) || !is_whole(other) || one.values.len() != other.values.len() || one.rest != other.rest
    {
        return false;
    }
    let pairs = one.values.iter().zip(&other.values).zip(one.has_decimals.iter().zip(&other.has_decimals));
    pairs.into_iter().all(|((one, other), (has_decimals, other_has))| {
        // Versions and sections are written like decimals.
        let may_be_version = one.unit.is_none() && (*has_decimals || *other_has);
        one.hedge == other.hedge
            && one.begins_range == other.begins_range
            && !may_be_version
            && is_same(one, other)
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

/// The amounts that an option allows, both ends included; `strict` ends are moved by nothing that matters to an overlap.
struct Interval {
    low: f64,
    high: f64,
    low_open: bool,
    high_open: bool,
    dimension: &'static str,
    is_point: bool,
}

/// How far "about" reaches.
const ABOUT: f64 = 0.05;

impl Interval {
    fn of(parsed: &Parsed) -> Option<Self> {
        let (first, last) = match parsed.values.as_slice() {
            [found] => (found, found),
            [first, last] if first.begins_range => (first, last),
            _ => return None,
        };
        let amount = |found: &Found| -> Option<(f64, &'static str)> {
            let Value::Number(number) = *found.readings.first()? else { return None };
            Some(match found.unit {
                Some(unit) => match unit.in_base(number) {
                    Some(base) => (base.approximate(), unit.dimension()),
                    None => (number.approximate(), unit.name()),
                },
                None => (number.approximate(), ""),
            })
        };
        let ((low, dimension), (high, other)) = (amount(first)?, amount(last)?);
        let name = first.unit.map_or("", super::units::Unit::name);
        let written = match first.readings.first()? {
            Value::Number(number) => number.approximate(),
            _ => low,
        };
        // Decades and centuries hold years.
        if name == "decade" && written >= 1000.0 {
            return Some(Self::closed(written, written + 9.0, ""));
        }
        if name == "century" {
            return Some(Self::closed((written - 1.0) * 100.0 + 1.0, written * 100.0, ""));
        }
        if dimension != other {
            return None;
        }
        let mut interval = Self::closed(low.min(high), high.max(low), dimension);
        match first.hedge {
            Hedge::None => {}
            Hedge::About => {
                interval.low -= interval.low.abs() * ABOUT;
                interval.high += interval.high.abs() * ABOUT;
            }
            Hedge::AtLeast | Hedge::More => {
                interval.low_open = first.hedge == Hedge::More;
                interval.high = f64::INFINITY;
            }
            Hedge::AtMost | Hedge::Less => {
                interval.high_open = first.hedge == Hedge::Less;
                interval.low = f64::NEG_INFINITY;
            }
        }
        interval.is_point = first.hedge == Hedge::None && first.range == last.range;
        Some(interval)
    }

    const fn closed(low: f64, high: f64, dimension: &'static str) -> Self {
        Self { low, high, low_open: false, high_open: false, dimension, is_point: false }
    }

    fn meets(&self, other: &Self) -> bool {
        let is_before = |one: &Self, two: &Self| {
            one.high < two.low || (one.high - two.low).abs() < f64::EPSILON && (one.high_open || two.low_open)
        };
        !is_before(self, other) && !is_before(other, self)
    }
}

/// Whether two options are amounts or dates that can both be right: a bound or range and what lies in it, a month and a
/// day of it. Options that are the same are no case of it.
pub fn overlap(one: &str, other: &str) -> bool {
    let (one, other) = (Parsed::read(one, Languages::ANY), Parsed::read(other, Languages::ANY));
    if let (Some((_, one)), Some((_, other))) = (one.single(), other.single())
        && let (Some(one), Some(other)) = (as_date(one), as_date(other))
        && (one.1.is_some() || other.1.is_some())
    {
        return contains(one, other) || contains(other, one);
    }
    if one.rest != other.rest {
        return false;
    }
    let (Some(one), Some(other)) = (Interval::of(&one), Interval::of(&other)) else { return false };
    !(one.is_point && other.is_point) && one.dimension == other.dimension && one.meets(&other)
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

type Ymd = (i64, Option<u8>, Option<u8>);

/// Whether a coarser date holds a finer one.
fn contains(coarse: Ymd, fine: Ymd) -> bool {
    let holds = |coarse: Option<u8>, fine: Option<u8>| coarse.is_none() || coarse == fine;
    coarse != fine
        && coarse.0 == fine.0
        && holds(coarse.1, fine.1)
        && holds(coarse.2, fine.2)
        && (coarse.1.is_some() || coarse.2.is_none())
}

/// Which of two options comes first, for amounts of one kind, dates and times; `None` where that cannot be told, as
/// readings differ in it, or where other words stand beside them.
pub fn order(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (Parsed::read(one, Languages::ANY), Parsed::read(other, Languages::ANY));
    if one.rest != other.rest {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_that_mean_the_same_are_found() {
        for (one, other) in [
            ("16", "sixteen"),
            ("16", "sechzehn"),
            ("26 July 2024", "July 26, 2024"),
            ("26 July 2024", "2024-07-26"),
            ("26. Juli 2024", "26 July 2024"),
            ("26 de julio de 2024", "26.07.2024"),
            ("2024年7月26日", "26 July 2024"),
            ("on 26 July 2024", "26 July 2024"),
            ("USA", "United States"),
            ("the USA", "Vereinigte Staaten"),
            ("Côte d'Ivoire", "Ivory Coast"),
            ("100 °C", "212 °F"),
            ("37 °C", "98.6 °F"),
            ("13 Mio.", "13,000,000"),
            ("13 million", "13 000 000"),
            ("1.5 km", "1500 m"),
            ("5 kilometres", "5 km"),
            ("50%", "50 percent"),
            ("50 %", "fifty per cent"),
            ("8849 m", "8,849 metres"),
            ("10:30 pm", "22:30"),
            ("5 p.m.", "17:00"),
            ("two hundred and five", "205"),
            ("zweihundertfünfzig", "250"),
            ("3億5千万", "350,000,000"),
            ("三百二十", "320"),
            ("about 500", "approximately 500"),
            ("at least 79", "79 or more"),
            ("€5", "5 euros"),
            ("US$5 million", "5 million US dollars"),
            ("24 hours", "1 day"),
            ("12 months", "one year"),
            ("5-10 km", "5 to 10 km"),
            ("1904–05", "1904–1905"),
            ("Louis XIV", "Louis 14"),
            ("½ litre", "0.5 l"),
            ("10^6", "1,000,000"),
            ("3 × 10⁸ m/s", "300,000,000 m/s"),
            ("двадцать пять", "25"),
            ("Bogotá", "BOGOTÁ"),
        ] {
            assert!(
                same(one, other) && same(other, one),
                "{one} and {other}: {:?} {:?}",
                Parsed::read(one, Languages::ANY).values,
                Parsed::read(other, Languages::ANY).values
            );
        }
        let german = Languages::of_code("de").unwrap();
        assert!(same_in("1.233", "1233", german) && !same("1.233", "1233"));
        let english = Languages::of_code("en").unwrap();
        assert!(same_in("1 billion", "1,000,000,000", english) && !same("1 billion", "1,000,000,000"));
    }

    #[test]
    fn options_that_differ_are_kept_apart() {
        for (one, other) in [
            ("03/04/2020", "3 April 2020"),
            ("03/04/2020", "4 March 2020"),
            ("1.233", "1233"),
            ("1 t", "1 ton"),
            ("1 gallon", "3.785 l"),
            ("1 pint", "0.568 l"),
            ("0 °C", "273.15 K"),
            ("1 month", "30 days"),
            ("1 kB", "1 KiB"),
            ("1 KiB", "1000 bytes"),
            ("5 %", "5 percentage points"),
            ("version 2.1", "version 2.10"),
            ("2.1", "2.10"),
            ("C-311/18", "C-311/19"),
            ("C-311/18", "311/18"),
            ("about 500", "500"),
            ("at least 79", "79"),
            ("more than 90", "at least 90"),
            ("5 mW", "5 MW"),
            ("Co", "CO"),
            ("England", "UK"),
            ("Korea", "South Korea"),
            ("Congo", "DR Congo"),
            ("Georgia", "United States"),
            ("$5", "US$5"),
            ("5 m", "5 km"),
            ("5", "5 m"),
            ("36 °C", "97 °F"),
            ("July 2024", "26 July 2024"),
            ("2024", "July 2024"),
            ("1914–1918", "1914"),
            ("Apollo 11", "Apollo 12"),
            ("16 men", "16 women"),
            ("5–10", "5 and 10"),
            ("-5 °C", "5 °C"),
            ("10⁵", "105"),
            ("10:30", "10:30 pm"),
            ("first", "1"),
            ("H2O", "HO2"),
            ("", "0"),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} and {other}");
        }
    }

    #[test]
    fn bounds_and_ranges_overlap_with_what_lies_in_them() {
        for (one, other) in [
            ("at least 79", "95"),
            ("more than 90", "95"),
            ("more than 90", "at least 79"),
            ("5–10 km", "7 km"),
            ("5-10 km", "8000 m"),
            ("about 100", "98"),
            ("July 2024", "26 July 2024"),
            ("2024", "July 2024"),
            ("the 1990s", "1995"),
            ("19th century", "1850"),
            ("up to 20%", "15 %"),
            ("mindestens 79", "95"),
        ] {
            assert!(overlap(one, other) && overlap(other, one), "{one} and {other}");
        }
        for (one, other) in [
            ("79", "95"),
            ("at least 79", "50"),
            ("more than 90", "90"),
            ("less than 90", "90"),
            ("5–10 km", "7"),
            ("2024", "2023"),
            ("July 2024", "26 June 2024"),
            ("the 1990s", "2000"),
            ("Paris", "Rome"),
            ("about 100", "120"),
        ] {
            assert!(!overlap(one, other) && !overlap(other, one), "{one} and {other}");
        }
    }

    #[test]
    fn options_of_one_kind_have_an_order() {
        use Ordering::{Greater, Less};
        for (one, other, expected) in [
            ("5 km", "6000 m", Some(Less)),
            ("1,889", "330", Some(Greater)),
            ("26 July 2024", "July 25, 2024", Some(Greater)),
            ("1889", "July 1889", Some(Less)),
            ("5 million", "sixteen", Some(Greater)),
            ("10:30", "9:30 pm", Some(Less)),
            ("1.233", "5", None),
            ("5 km", "5 kg", None),
            ("Paris", "5", None),
        ] {
            assert_eq!(order(one, other), expected, "{one} and {other}");
        }
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(one in "[0-9a-z .,:/%°-]{0,24}|\\PC{0,24}", other in "[0-9IVX一十万月年 .,-]{0,24}|\\PC{0,24}") {
            prop_assert!(same(&one, &one));
            prop_assert_eq!(same(&one, &other), same(&other, &one));
            prop_assert_eq!(overlap(&one, &other), overlap(&other, &one));
            prop_assert_eq!(order(&one, &other), order(&other, &one).map(Ordering::reverse));
        }

        #[test]
        fn a_number_is_the_same_however_it_is_grouped(number in 10_000_i64..1_000_000_000_000) {
            let digits = number.to_string();
            for mark in [",", " ", "'", "\u{202f}"] {
                let mut grouped = String::new();
                for (at, digit) in digits.chars().enumerate() {
                    if at > 0 && (digits.len() - at) % 3 == 0 {
                        grouped.push_str(mark);
                    }
                    grouped.push(digit);
                }
                prop_assert!(same(&grouped, &digits), "{}", grouped);
            }
        }
    }
}
