//! Where each value of a text stands, so that a claim is looked up and not searched for.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use jiff::civil;

use super::lexicon::{Hedge, Marker, Meaning, Span};
use super::numbers::number::Number;
use super::numbers::units::Unit;
use super::reading::{Found, Reading};
use super::value::{Date, Time, Value};

/// The values of a text by what they are; places are positions in [`Reading::values`], in order.
#[derive(Debug, Default)]
pub struct Index {
    numbers: HashMap<Number, Vec<u32>, FixedState>,
    dates: HashMap<(u8, Option<u8>), Vec<u32>, FixedState>,
    times: HashMap<Time, Vec<u32>, FixedState>,
    /// Each number with the units and hedges that it stands with somewhere.
    manners: HashMap<Number, Vec<(Option<Unit>, Hedge)>, FixedState>,
    /// Where markers of each class stand, in bytes of the folded text.
    markers: [Vec<u32>; 4],
    relative: Vec<Ahead>,
    /// Those of them that are counted by a value, with its position; in order.
    ago: Vec<(u32, Ahead)>,
}

/// A time relative to the day of asking: how many units it lies ahead.
type Ahead = (Span, i32);
/// A year, and its month and day as far as they are meant.
type Day = (i32, Option<u8>, Option<u8>);

/// The most different manners of one number that are kept.
const MAX_MANNERS: usize = 32;

impl Index {
    /// Indexes what was read of a folded text.
    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    pub fn new(folded: &str, reading: &Reading) -> Self {
        let mut index = Self::default();
        for (at, found) in reading.values().iter().enumerate() {
            index.add(at as u32, found);
        }
        for (class, at) in markers(folded, reading) {
            index.markers[class as usize].push(reading.tokens().all()[at].start);
        }
        (index.relative, index.ago) = relative(folded, reading);
        index
    }

    /// Adds the values that stand in a range of the folded text that was read, and nothing else.
    #[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
    pub fn add_values(&mut self, reading: &Reading, folded: &std::ops::Range<usize>) {
        for at in reading.values_within(folded) {
            let found = &reading.values()[at];
            if found.range.end <= folded.end {
                self.add(at as u32, found);
            }
        }
    }

    fn add(&mut self, at: u32, found: &Found) {
        for value in &found.readings {
            match *value {
                Value::Number(number) => {
                    push(self.numbers.entry(number).or_default(), at);
                    let manners = self.manners.entry(number).or_default();
                    if manners.len() < MAX_MANNERS && !manners.contains(&(found.unit, found.hedge)) {
                        manners.push((found.unit, found.hedge));
                    }
                }
                Value::Date(date) => {
                    push(self.dates.entry((date.month, date.day)).or_default(), at);
                    push(self.dates.entry((date.month, None)).or_default(), at);
                    let parts = [date.year.map(i64::from), date.day.map(i64::from)];
                    for part in parts.into_iter().flatten() {
                        push(self.numbers.entry(Number::from(part)).or_default(), at);
                    }
                }
                Value::Time(time) => push(self.times.entry(time).or_default(), at),
            }
        }
    }

    /// Where a number stands, also as the year or day of a date.
    pub fn number(&self, number: Number) -> &[u32] {
        self.numbers.get(&number).map_or(&[], Vec::as_slice)
    }

    /// With which units and hedges a number stands in the text.
    pub fn manners(&self, number: Number) -> &[(Option<Unit>, Hedge)] {
        self.manners.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Where a month stands, or a day of it.
    pub fn month(&self, month: u8, day: Option<u8>) -> &[u32] {
        self.dates.get(&(month, day)).map_or(&[], Vec::as_slice)
    }

    /// Where a time of the day stands.
    pub fn time(&self, time: Time) -> &[u32] {
        self.times.get(&time).map_or(&[], Vec::as_slice)
    }

    /// Whether a marker of this class stands between two bytes of the folded text.
    pub fn has_marker(&self, marker: Marker, folded: &std::ops::Range<usize>) -> bool {
        let places = &self.markers[marker as usize];
        let first = places.partition_point(|at| (*at as usize) < folded.start);
        places.get(first).is_some_and(|at| (*at as usize) < folded.end)
    }

    /// The times that the text gives relative to a day, counted from it.
    pub fn relative(&self, as_of: civil::Date) -> impl Iterator<Item = Day> {
        self.relative.iter().filter_map(move |relative| counted(*relative, as_of))
    }

    /// The time that the value at a position is counted back to from a day: "three years ago".
    pub fn ago(&self, value: usize, as_of: civil::Date) -> Option<Day> {
        let found = self.ago.binary_search_by_key(&value, |(at, _)| *at as usize).ok()?;
        counted(self.ago[found].1, as_of)
    }

    /// Whether the text gives any time relative to the day of asking.
    pub fn has_relative(&self) -> bool {
        !self.relative.is_empty()
    }
}

fn push(places: &mut Vec<u32>, at: u32) {
    if places.last() != Some(&at) {
        places.push(at);
    }
}

/// The markers of a text with the token at which each stands; not those within hedges ("not less than"), numbers of
/// things ("No. 5"), compounds ("non-profit") and "not only".
pub fn markers(folded: &str, reading: &Reading) -> Vec<(Marker, usize)> {
    let tokens = reading.tokens().all();
    let mut found = Vec::new();
    let mut hedged_to = 0;
    for sense in reading.senses().iter().filter(|sense| sense.languages.meet(reading.languages())) {
        let at = sense.at as usize;
        match sense.meaning {
            Meaning::Hedge(..) if sense.length > 1 => {
                let end = at + usize::from(sense.length);
                hedged_to = hedged_to.max(end);
                while found.last().is_some_and(|(_, marked)| (at..end).contains(marked)) {
                    found.pop();
                }
            }
            Meaning::Marker(marker) if at >= hedged_to => {
                let next = at + usize::from(sense.length);
                let token = tokens.get(next);
                let is_compound = token.is_some_and(|token| token.is_mark('-') && !token.spaced);
                let is_number = token.is_some_and(|token| token.is_mark('.'))
                    && tokens.get(next + 1).is_some_and(|token| token.first.is_ascii_digit());
                let word = token.and_then(|token| folded.get(token.range())).unwrap_or_default();
                let is_not_only = marker == Marker::Not
                    && matches!(
                        word.to_lowercase().as_str(),
                        "only"
                            | "nur"
                            | "seulement"
                            | "solo"
                            | "sólo"
                            | "soltanto"
                            | "só"
                            | "apenas"
                            | "alleen"
                            | "только"
                            | "仅"
                            | "只"
                            | "just"
                            | "merely"
                    );
                if !(is_compound || is_number || is_not_only) && found.last() != Some(&(marker, at)) {
                    found.push((marker, at));
                }
            }
            _ => {}
        }
    }
    // "Not only" is no "only" either.
    let is_bare = |at: usize| {
        let before = at
            .checked_sub(1)
            .and_then(|before| tokens.get(before))
            .and_then(|token| folded.get(token.range()));
        !matches!(
            before.unwrap_or_default().to_lowercase().as_str(),
            "not" | "nicht" | "non" | "no" | "não" | "niet" | "не" | "不"
        )
    };
    found.retain(|(marker, at)| *marker != Marker::Only || is_bare(*at));
    found
}

/// The year, month or day that a relative time means.
fn counted((span, count): Ahead, as_of: civil::Date) -> Option<Day> {
    let small = |number: i8| u8::try_from(number).ok();
    let full = |date: civil::Date| (i32::from(date.year()), small(date.month()), small(date.day()));
    let count = i64::from(count);
    Some(match span {
        Span::Year => (i32::from(as_of.year()).checked_add(i32::try_from(count).ok()?)?, None, None),
        Span::Month => {
            let (year, month, _) = full(as_of.checked_add(jiff::Span::new().try_months(count).ok()?).ok()?);
            (year, month, None)
        }
        Span::Day => full(as_of.checked_add(jiff::Span::new().try_days(count).ok()?).ok()?),
    })
}

/// The relative times of a text, and those of them that a value counts, by its position.
fn relative(folded: &str, reading: &Reading) -> (Vec<Ahead>, Vec<(u32, Ahead)>) {
    let tokens = reading.tokens().all();
    let (mut found, mut counts) = (Vec::new(), Vec::new());
    for sense in reading.senses().iter().filter(|sense| sense.languages.meet(reading.languages())) {
        match sense.meaning {
            Meaning::Relative(span, count) => found.push((span, i32::from(count))),
            Meaning::Ago => {
                let start = tokens.get(sense.at as usize).map_or(0, |token| token.start as usize);
                let last = sense.at as usize + usize::from(sense.length) - 1;
                let end = tokens.get(last).map_or(start, |token| token.end as usize);
                counts.extend(ago(folded, reading.values(), start, end));
            }
            _ => {}
        }
    }
    found.extend(counts.iter().map(|(_, time)| *time));
    found.sort_by_key(|(span, count)| (*span as u8, *count));
    found.dedup();
    counts.sort_by_key(|(at, _)| *at);
    (found, counts)
}

/// The number of units that stands right before or behind "ago", and where.
#[expect(clippy::cast_possible_truncation, reason = "texts are far shorter than 4 GiB")]
fn ago(folded: &str, values: &[Found], start: usize, end: usize) -> Option<(u32, Ahead)> {
    let next = values.partition_point(|found| found.range.start < end);
    let is_blank =
        |from: usize, to: usize| folded.get(from..to).is_some_and(|between| between.trim().is_empty());
    let before = next.checked_sub(1).filter(|before| is_blank(values[*before].range.end, start));
    let behind = values.get(next).filter(|found| is_blank(end, found.begin())).map(|_| next);
    let at = before.or(behind)?;
    let count = i32::try_from(values[at].numbers().next()?.whole()?).ok()?;
    let time = match values[at].unit?.name() {
        "day" => (Span::Day, count.checked_neg()?),
        "week" => (Span::Day, count.checked_mul(-7)?),
        "month" => (Span::Month, count.checked_neg()?),
        "year" => (Span::Year, count.checked_neg()?),
        "decade" => (Span::Year, count.checked_mul(-10)?),
        _ => return None,
    };
    Some((at as u32, time))
}

impl Date {
    /// Whether what a claim says of a day is all in this date: a claim may be coarser, never finer.
    pub(in crate::verify) fn supports(self, claimed: Self) -> bool {
        let holds = |has: Option<i32>, wants: Option<i32>| wants.is_none() || has.is_none() || has == wants;
        self.month == claimed.month
            && (claimed.day.is_none() || self.day == claimed.day)
            && holds(self.year, claimed.year)
    }
}
