//! What a place in a text can be read as.

use super::numbers::number::Number;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, also a year that stands alone.
    Number(Number),
    /// A day, a month or a year with a month.
    Date(Date),
    /// A time of the day.
    Time(Time),
}

/// A date as far as it is given. At least the month is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Date {
    /// The year, if it is said.
    pub year: Option<i32>,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, if it is said.
    pub day: Option<u8>,
}

impl Date {
    /// Whether the month and the day can be.
    pub const fn is_possible(self) -> bool {
        let days = match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 29,
            _ => 0,
        };
        match self.day {
            Some(day) => day >= 1 && day <= days,
            None => days > 0,
        }
    }
}

/// A time of the day, in seconds from midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub u32);
