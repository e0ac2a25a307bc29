//! The amounts that an option allows.

use super::super::lexicon::Hedge;
use super::super::reading::Found;
use super::super::units::Unit;
use super::super::value::Value;
use super::parsed::Parsed;

/// The amounts that an option allows, both ends included; `strict` ends are moved by nothing that matters to an overlap.
pub(super) struct Interval {
    low: f64,
    high: f64,
    low_open: bool,
    high_open: bool,
    pub(super) dimension: &'static str,
    pub(super) is_point: bool,
}

/// How far "about" reaches.
const ABOUT: f64 = 0.05;

impl Interval {
    pub(super) fn of(parsed: &Parsed) -> Option<Self> {
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
        let name = first.unit.map_or("", Unit::name);
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
        // What falls is no range but a score: 21–14.
        if dimension != other || low > high {
            return None;
        }
        let mut interval = Self::closed(low, high, dimension);
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

    pub(super) fn meets(&self, other: &Self) -> bool {
        let is_before = |one: &Self, two: &Self| {
            one.high < two.low || (one.high - two.low).abs() < f64::EPSILON && (one.high_open || two.low_open)
        };
        !is_before(self, other) && !is_before(other, self)
    }
}
