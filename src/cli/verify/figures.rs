//! Numbers as people read them, and the parts of the summary line.

use std::collections::BTreeSet;
use std::time::Duration;

use super::votes;
use crate::api::verify::{Assessment, VerifyResponse};

/// A part of the summary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether it continues a list, so that a comma stands before it.
    pub(crate) continues: bool,
    /// Its text.
    pub(crate) text: String,
}

impl Part {
    fn new(text: String) -> Self {
        Self { continues: false, text }
    }
}

/// The parts of the summary. `symbol` gives an assessment's symbol as it is to be printed.
pub(crate) fn summary(
    result: &VerifyResponse,
    elapsed: Duration,
    symbol: impl Fn(Assessment) -> String,
) -> Vec<Part> {
    let mut parts = verdicts(result, symbol);
    let models: BTreeSet<&str> = result.results.iter().flat_map(votes::models).collect();
    if !models.is_empty() {
        parts.push(Part::new(counted(models.len(), "model")));
    }
    parts.push(Part::new(seconds(elapsed)));
    parts.push(Part::new(format!("{} tokens", thousands(result.token_usage.total_tokens))));
    parts.extend(cost(result).map(Part::new));
    parts
}

fn verdicts(result: &VerifyResponse, symbol: impl Fn(Assessment) -> String) -> Vec<Part> {
    if result.results.is_empty() {
        return vec![Part::new("nothing to verify".to_owned())];
    }
    let kinds =
        [(Assessment::True, "true"), (Assessment::False, "false"), (Assessment::NoConsensus, "no consensus")];
    let mut parts = Vec::new();
    for (kind, word) in kinds {
        let count = result.results.iter().filter(|claim| claim.assessment == kind).count();
        if count == 0 {
            continue;
        }
        let text = format!("{} {count} {word}", symbol(kind));
        let is_first = parts.is_empty();
        let lead =
            if is_first { format!("{}: ", counted(result.results.len(), "claim")) } else { String::new() };
        parts.push(Part { continues: !is_first, text: format!("{lead}{text}") });
    }
    parts
}

/// The cost, where models cost anything and all prices are known.
fn cost(result: &VerifyResponse) -> Option<String> {
    let usage = result.token_usage.model_usage.as_ref()?;
    if usage.is_empty() || result.mode.is_some() {
        return None;
    }
    let sum: Option<f64> = usage.iter().map(|model| model.cost_usd).sum();
    Some(sum.map_or_else(|| "cost unknown".to_owned(), dollars))
}

/// `1 claim`, `4 claims`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
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

/// `$0.0031`, `$12.50`; never zero for something that cost.
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
