//! The number columns at the end of every line of usage, and the sentence with their totals.

use crate::api::console::{UsageSums, csv};
use crate::cli::process::exit::Failure;
use crate::cli::terminal::humanize::{counted, dollars, thousands};
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::tabular::{self, Column, hidden, number};
use crate::cli::terminal::term::Symbols;
use crate::cli::terminal::wrap::wrap;

/// Shown where a price is unknown.
pub(super) const UNKNOWN: &str = "unknown";

/// The columns. People get the most informative ones.
pub(super) const COLUMNS: [Column; 11] = [
    number("requests"),
    hidden("attempts"),
    number("failed calls"),
    hidden("prompt tokens"),
    hidden("completion tokens"),
    number("tokens"),
    number("cost"),
    hidden("unpriced attempts"),
    hidden("cached tokens"),
    hidden("cache write tokens"),
    hidden("estimated attempts"),
];

/// Indices in [`COLUMNS`] that a narrow terminal drops, the least informative first: failed calls, requests, tokens.
pub(super) const DROPPABLE: [usize; 3] = [2, 0, 5];

/// The cells under [`COLUMNS`]; formatted with symbols for people, raw for programs.
pub(super) fn cells(sums: &UsageSums, for_people: Option<&Symbols>) -> [String; 11] {
    let count = |number: u64| if for_people.is_some() { thousands(number) } else { number.to_string() };
    let cost = match (sums.cost_usd, for_people) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(known), None) => csv::decimal(known),
        (Some(known), Some(symbols)) if sums.unpriced_attempts > 0 => {
            format!("{}{}", symbols.at_least, dollars(known))
        }
        (Some(known), Some(_)) => dollars(known),
    };
    [
        count(sums.requests),
        count(sums.attempts),
        count(sums.errors),
        count(sums.prompt_tokens),
        count(sums.completion_tokens),
        count(sums.total_tokens),
        cost,
        count(sums.unpriced_attempts),
        count(sums.cached_tokens),
        count(sums.cache_write_tokens),
        count(sums.estimated_attempts),
    ]
}

/// Prints a table for people, of whose columns these fit, and below it the totals.
pub(super) fn print_table(
    printer: &Printer,
    all: &[Column],
    fitting: &[Column],
    rows: &[Vec<String>],
    totals: &UsageSums,
) -> Result<(), Failure> {
    tabular::print(printer, fitting, rows)?;
    tabular::separate(printer, fitting, rows)?;
    print_totals(printer, totals)?;
    tabular::report_dropped(printer, all, fitting);
    Ok(())
}

/// Prints the totals for people, and says what is missing from the cost.
fn print_totals(printer: &Printer, totals: &UsageSums) -> Result<(), Failure> {
    let symbols = printer.terminal.symbols;
    let line = format!("total: {}", summary(totals).join(symbols.between));
    for line in wrap(&line, printer.terminal.width) {
        printer.line(&line)?;
    }
    if totals.unpriced_attempts > 0 {
        printer.sentence(&format!(
            "{} of models without a known price; for later calls, set `input_usd_per_mtok` and \
             `output_usd_per_mtok` in server.toml",
            counted(totals.unpriced_attempts, "call")
        ));
    }
    if totals.estimated_attempts > 0 {
        printer.sentence(&format!(
            "{} with an estimated cost: the provider reported no usage, or the caller left before it was known",
            counted(totals.estimated_attempts, "call")
        ));
    }
    Ok(())
}

fn summary(totals: &UsageSums) -> Vec<String> {
    let failed = (totals.errors > 0).then(|| counted(totals.errors, "failed call"));
    let cost = match totals.cost_usd {
        None => format!("cost {UNKNOWN}"),
        Some(known) if totals.unpriced_attempts > 0 => format!("{} + {UNKNOWN}", dollars(known)),
        Some(known) => dollars(known),
    };
    let requests = counted(totals.requests, "request");
    let tokens = counted(totals.total_tokens, "token");
    let cached =
        (totals.cached_tokens > 0).then(|| format!("{} of them cached", thousands(totals.cached_tokens)));
    [Some(requests), failed, Some(tokens), cached, Some(cost)].into_iter().flatten().collect()
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{ASCII, UNICODE};

    #[test]
    fn an_unknown_cost_is_never_zero_and_a_partial_one_never_complete() {
        let shown = |cost_usd, unpriced_attempts| {
            let sums = UsageSums { cost_usd, unpriced_attempts, ..UsageSums::default() };
            let cost = |for_people| cells(&sums, for_people)[6].clone();
            [cost(Some(&UNICODE)), cost(Some(&ASCII)), cost(None), summary(&sums).remove(2)]
        };
        assert_eq!(shown(None, 2), ["unknown", "unknown", "unknown", "cost unknown"]);
        assert_eq!(shown(Some(0.5), 2), ["≥$0.5000", ">=$0.5000", "0.50", "$0.5000 + unknown"]);
        assert_eq!(shown(Some(1e-9), 0), ["<$0.0001", "<$0.0001", "0.000000001", "<$0.0001"]);
    }

    #[test]
    fn failed_calls_are_mentioned_if_there_are_any() {
        let sums = UsageSums { requests: 1, errors: 1234, cost_usd: Some(0.0), ..UsageSums::default() };
        assert_eq!(summary(&sums), ["1 request", "1,234 failed calls", "0 tokens", "$0.0000"]);
    }
}
