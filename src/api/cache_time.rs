//! For how long answers are kept, as callers and operators write it: `1h`, `1h30m`, `7d`.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::duration_text;

const UNITS: [(&str, Duration); 4] = [
    ("d", Duration::from_hours(24)),
    ("h", Duration::from_hours(1)),
    ("m", Duration::from_mins(1)),
    ("s", Duration::from_secs(1)),
];

/// A time in whole seconds, from one second to [`CacheTime::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheTime(u32);

impl CacheTime {
    /// The longest.
    pub const MAX: Duration = Duration::from_hours(30 * 24);

    /// What it must be, for people.
    pub const FORM: &str = "a time from 1s to 30d, such as 1h or 7d";

    /// Reads it.
    pub fn parse(text: &str) -> Option<Self> {
        let span = duration_text::parse(text, &UNITS).filter(|span| *span <= Self::MAX)?;
        u32::try_from(span.as_secs()).ok().and_then(Self::of_seconds)
    }

    /// So many seconds, if it can be that long.
    pub fn of_seconds(seconds: u32) -> Option<Self> {
        let is_allowed = seconds > 0 && Duration::from_secs(seconds.into()) <= Self::MAX;
        is_allowed.then_some(Self(seconds))
    }

    /// In seconds.
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// As a span of time.
    pub fn span(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

/// In the largest units that it is a whole number of.
impl fmt::Display for CacheTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::from(self.0);
        for (unit, length) in UNITS {
            let number = rest / length.as_secs();
            rest %= length.as_secs();
            if number > 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for CacheTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for (text, seconds) in
            [("1s", 1), ("90s", 90), ("1m30s", 90), ("1h", 3600), ("7d", 604_800), ("30d", 2_592_000)]
        {
            let time = CacheTime::parse(text).unwrap();
            assert_eq!(time.seconds(), seconds, "{text}");
            assert_eq!(CacheTime::parse(&time.to_string()), Some(time), "{text}");
        }
        assert_eq!(CacheTime::parse("90s").unwrap().to_string(), "1m30s");
    }

    #[test]
    fn nothing_else_is_a_time() {
        for wrong in ["", "0s", "0d", "31d", "720h1s", "99999999999d", "1", "1H", "-1h", "1.5h", "forever"] {
            assert_eq!(CacheTime::parse(wrong), None, "{wrong}");
        }
    }
}
