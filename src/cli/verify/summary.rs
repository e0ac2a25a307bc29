//! The parts of the summary line.

use std::collections::BTreeSet;
use std::time::Duration;

use super::coverage::Coverage;
use super::page::mark;
use super::votes;
use crate::api::verify::{Assessment, VerifyResponse};
use crate::cli::humanize::{counted, dollars, seconds, thousands};
use crate::cli::term::Terminal;

/// A part of the summary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether it continues a list, so that a comma comes before it.
    pub(crate) continues: bool,
    /// Its text.
    pub(crate) text: String,
}

impl Part {
    fn new(text: String) -> Self {
        Self { continues: false, text }
    }
}

/// The parts of the summary. `symbol` returns an assessment's symbol as it should be printed.
pub(crate) fn parts(
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

/// The summary on one line, without colours.
pub(crate) fn line(terminal: &Terminal, result: &VerifyResponse, elapsed: Duration) -> String {
    let symbol = |assessment| mark(terminal, assessment).0.to_owned();
    let mut line = String::new();
    for part in parts(result, elapsed, symbol) {
        let glue = if part.continues { ", " } else { terminal.symbols.between };
        line.push_str(if line.is_empty() { "" } else { glue });
        line.push_str(&part.text);
    }
    line
}

fn verdicts(result: &VerifyResponse, symbol: impl Fn(Assessment) -> String) -> Vec<Part> {
    let coverage = Coverage::of(result);
    let of = match coverage {
        Some(Coverage { checked, sentences }) => {
            format!("{} of {} checked", thousands(checked as u64), counted(sentences, "sentence"))
        }
        None if result.results.is_empty() => return vec![Part::new("nothing to verify".to_owned())],
        None => counted(result.results.len(), "claim"),
    };
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
        let lead = if is_first { format!("{of}: ") } else { String::new() };
        parts.push(Part { continues: !is_first, text: format!("{lead}{text}") });
    }
    if parts.is_empty() {
        parts.push(Part::new(of));
    }
    if let Some(Coverage { checked, sentences }) = coverage {
        parts.push(Part::new(format!("{} unchecked", thousands((sentences - checked) as u64))));
    }
    parts
}

/// The cost, unless models cost nothing; `cost unknown` if the price of any that used tokens is missing.
fn cost(result: &VerifyResponse) -> Option<String> {
    let usage = result.token_usage.model_usage.as_ref()?;
    if usage.is_empty() || result.mode.is_some() {
        return None;
    }
    Some(result.token_usage.cost_usd().map_or_else(|| "cost unknown".to_owned(), dollars))
}
