//! The amounts that an option allows.

use super::super::lexicon::Hedge;
use super::super::reading::Found;
use super::super::value::Value;
use super::as_date;
use super::parsed::Parsed;
use crate::verify::values::numbers::units::Unit;

/// The amounts that an option allows: from `low` to `high`, each included unless it is open.
#[derive(Debug, PartialEq)]
pub(super) struct Interval {
    low: f64,
    high: f64,
    low_open: bool,
    high_open: bool,
    pub(super) dimension: &'static str,
    pub(super) is_point: bool,
}

/// How far "about" reaches, as a share of an amount.
const ABOUT: f64 = 0.05;
/// The same for years, of which a share says nothing.
const ABOUT_YEARS: f64 = 10.0;

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
        let mut interval = Self::closed(low, high, dimension).bounded(
            first.hedge,
            if first.year().is_some() { ABOUT_YEARS } else { low.abs().max(high.abs()) * ABOUT },
        );
        interval.is_point = first.hedge == Hedge::None && first.range == last.range;
        Some(interval)
    }

    /// The days of a single date, month or year; all months count as 31 days.
    pub(super) fn of_days(parsed: &Parsed) -> Option<Self> {
        let (found, value) = parsed.single()?;
        let (year, month, day) = as_date(value)?;
        #[expect(clippy::cast_precision_loss, reason = "years are small")]
        let first = (year * 372) as f64;
        let (before, length) = match (month, day) {
            (None, _) => (0.0, 371.0),
            (Some(month), None) => (f64::from(month.saturating_sub(1)) * 31.0, 30.0),
            (Some(month), Some(day)) => {
                (f64::from(month.saturating_sub(1)) * 31.0 + f64::from(day.saturating_sub(1)), 0.0)
            }
        };
        Some(Self::closed(first + before, first + before + length, "day").bounded(found.hedge, length + 1.0))
    }

    /// What a hedge makes of it, with how far "about" reaches.
    const fn bounded(self, hedge: Hedge, reach: f64) -> Self {
        let mut interval = self;
        match hedge {
            Hedge::None => {}
            Hedge::About => {
                interval.low -= reach;
                interval.high += reach;
            }
            Hedge::AtLeast | Hedge::Since => interval.high = f64::INFINITY,
            Hedge::AtMost | Hedge::Until => interval.low = f64::NEG_INFINITY,
            // What lies behind or before the whole of a year, a month or a range.
            Hedge::More | Hedge::After => {
                (interval.low, interval.low_open, interval.high) = (interval.high, true, f64::INFINITY);
            }
            Hedge::Less | Hedge::Before => {
                (interval.high, interval.high_open, interval.low) = (interval.low, true, f64::NEG_INFINITY);
            }
        }
        interval
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
