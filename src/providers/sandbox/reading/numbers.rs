//! Numbers in digits and English words, and plausible wrong ones.

/// The number of digits that a floating-point number can represent.
const MAX_DIGITS: usize = 15;
/// Numbers with more decimals are not read, as [`show`] would not write them.
const MAX_DECIMALS: usize = 6;
/// From here on, floating-point numbers cannot represent every integer.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// Reads a number: `1,000`, `3.5`, `-2`, `eight`, `twenty-one`.
pub(in crate::providers::sandbox) fn read(text: &str) -> Option<f64> {
    digits(text).or_else(|| words(text))
}

fn digits(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '−']).unwrap_or(text);
    let starts_with_digit = unsigned.starts_with(|c: char| c.is_ascii_digit());
    if !starts_with_digit || unsigned.len() > MAX_DIGITS || !unsigned.ends_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if fraction.len() > MAX_DECIMALS {
        return None;
    }
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = whole.contains(',');
    if (grouped && first.len() > 3) || groups.any(|group| group.len() != 3) {
        return None;
    }
    if !whole.chars().chain(fraction.chars()).all(|c| c.is_ascii_digit() || c == ',')
        || fraction.contains(',')
    {
        return None;
    }
    let value: f64 = unsigned.replace(',', "").parse().ok()?;
    Some(if unsigned.len() == text.len() { value } else { -value })
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number below a hundred.
fn words(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let position = |list: &[&str], word: &str| list.iter().position(|entry| *entry == word);
    let (tens, rest) = match lower.split_once('-') {
        Some((tens, rest)) => (position(&TENS, tens)? * 10 + 20, Some(rest)),
        None => match position(&TENS, &lower) {
            Some(tens) => (tens * 10 + 20, None),
            None => (0, Some(&*lower)),
        },
    };
    let small =
        rest.map_or(Some(0), |rest| position(&SMALL, rest).filter(|small| tens == 0 || *small < 10))?;
    u32::try_from(tens + small).ok().map(f64::from)
}

/// The distances from a claimed number to other ones, on each side.
pub(in crate::providers::sandbox) const STEPS: [f64; 3] = [1.0, 2.0, 10.0];

/// A number in its plainest form: `4`, `2.5`.
pub(in crate::providers::sandbox) fn show(value: f64) -> String {
    let text = format!("{value:.MAX_DECIMALS$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Whether two numbers are equal, except for floating-point errors.
pub(in crate::providers::sandbox) fn same(one: f64, other: f64) -> bool {
    let largest = one.abs().max(other.abs());
    let are_whole = one.fract() == 0.0 && other.fract() == 0.0;
    let tolerance = if are_whole && largest < EXACT_BELOW { 0.0 } else { 1e-12 * largest.max(1.0) };
    (one - other).abs() <= tolerance
}

/// Numbers other than `claimed`, three on each side as far as they are positive like it, including `right` if it
/// differs.
pub(in crate::providers::sandbox) fn rivals(right: f64, claimed: f64, steps: [f64; 3]) -> Vec<String> {
    let side = |sign: f64| {
        let mut side: Vec<f64> = steps.map(|step| claimed + sign * step).to_vec();
        if (right - claimed) * sign > 0.0 && !side.iter().any(|number| same(*number, right)) {
            side.pop();
            side.push(right);
        }
        side.retain(|number| *number >= 0.0 || claimed < 0.0 || same(*number, right));
        side
    };
    let mut rivals = side(-1.0);
    rivals.extend(side(1.0));
    rivals.sort_by(f64::total_cmp);
    rivals.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_words_are_read() {
        for (text, value) in
            [("4", 4.0), ("1,000", 1000.0), ("3.5", 3.5), ("-2", -2.0), ("eight", 8.0), ("Twenty-one", 21.0)]
        {
            assert!(read(text).is_some_and(|read| same(read, value)), "{text}");
        }
        let wrong = [
            "",
            "-",
            "1,00",
            "1.2.3",
            "Paris",
            "4x",
            "12345678901234567890",
            "one fish",
            "1e5",
            "1.",
            "twenty-ten",
        ];
        for text in wrong.into_iter().chain(["0.0000001"]) {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn only_floating_point_errors_are_ignored() {
        assert!(same(0.1 + 0.2, 0.3) && same(1e9 / 3.0 * 3.0, 1e9));
        assert!(!same(1_000_000_001.0, 1_000_000_002.0));
        assert!(!same(123_456_789_000.0, 123_456_789_050.0));
        assert!(!same(0.000_001, 0.000_002));
    }

    #[test]
    fn rivals_include_the_right_number_unless_it_is_claimed() {
        assert_eq!(rivals(40.0, 50.0, STEPS), ["40", "48", "49", "51", "52", "60"]);
        assert_eq!(rivals(70.0, 50.0, STEPS), ["40", "48", "49", "51", "52", "70"]);
        assert_eq!(rivals(4.0, 4.0, STEPS), ["2", "3", "5", "6", "14"]);
        assert_eq!(rivals(0.0, 0.0, STEPS), ["1", "2", "10"]);
    }
}
