//! Formats numbers for people.

use std::time::Duration;

/// `1 claim`, `15,028 claims`.
pub(crate) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// `90 ms`, `2.4 s`, `1 m 05 s`.
pub(crate) fn seconds(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return format!("{} ms", span.as_millis());
    }
    if span < Duration::from_mins(1) {
        return format!("{:.1} s", span.as_secs_f64());
    }
    format!("{} m {:02} s", span.as_secs() / 60, span.as_secs() % 60)
}

/// `10.0 s left`, if what is missing takes as long a piece as what was done since; `None` where nothing is missing, or
/// nothing was done.
pub(crate) fn time_left(since: Duration, done: usize, missing: usize) -> Option<String> {
    let [done, missing] = [done, missing].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    (done > 0 && missing > 0).then(|| format!("{} left", seconds((since / done).saturating_mul(missing))))
}

/// `3,120`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `$0.0031`, `$12.50`; never zero for a cost above zero.
pub(crate) fn dollars(amount: f64) -> String {
    if amount >= 1.0 {
        return format!("${amount:.2}");
    }
    if amount > 0.0 && amount < 0.0001 {
        return "<$0.0001".to_owned();
    }
    format!("${amount:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (3120, "3,120"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn money_is_never_rounded_to_nothing() {
        for (amount, text) in
            [(0.0031, "$0.0031"), (0.000_01, "<$0.0001"), (12.5, "$12.50"), (0.0, "$0.0000")]
        {
            assert_eq!(dollars(amount), text);
        }
    }

    #[test]
    fn time_is_short() {
        assert_eq!(seconds(Duration::from_millis(90)), "90 ms");
        assert_eq!(seconds(Duration::from_millis(2440)), "2.4 s");
        assert_eq!(seconds(Duration::from_secs(65)), "1 m 05 s");
    }
}
