//! Value parsers for numbers in flags, with error messages in plain words.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::config::whole_numbers;
use crate::money::NanoUsd;

/// A value parser for whole numbers in `range`. Clap's own error messages speak of `2..=3` and of digits.
pub(crate) fn within<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("it must be {}", whole_numbers(&range)))
    }
}

/// Parses an amount of US dollars, exactly as written.
pub(crate) fn dollars(text: &str) -> Result<NanoUsd, String> {
    NanoUsd::parse_usd(text).ok_or_else(|| {
        "it must be an amount in US dollars such as 25 or 0.50, at most a billion, with at most nine decimals"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_and_non_numbers_are_refused_alike() {
        let read = within(2..=9_u32);
        assert_eq!((read("2"), read("9")), (Ok(2), Ok(9)));
        for wrong in ["1", "10", "", "two", "-3", "2.5", "99999999999999999999"] {
            assert_eq!(read(wrong), Err("it must be a whole number from 2 to 9".to_owned()), "{wrong}");
        }
        assert_eq!(within(2..=3_u32)("4"), Err("it must be 2 or 3".to_owned()));
    }
}
