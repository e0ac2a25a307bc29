//! The arguments of `mk eval`, and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::compare::{self, CompareArgs};
use super::reports::ReportFile;
use crate::cli::HELP;
use crate::cli::args::number::within;
use crate::cli::commands::verify::args::How;
use crate::cli::target::backend::BackendArgs;
use crate::keys::expiry;

/// Examples of `mk eval`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk eval facts.jsonl --limit 20               a sample, to see the cost
  mk eval facts.jsonl                          how often your panel is right
  mk eval facts.jsonl --max-false-pass 5       for CI: exit code 1 unless proved
  mk eval facts.jsonl --target-precision 95    find a rule that is so precise
  mk eval facts.jsonl --resume answers.jsonl   continue an interrupted run
  mk eval facts.jsonl --report html=eval.html  a page to show others
  mk eval facts.jsonl --open                   also ask without options
  mk eval compare before.json after.json       two evaluations, paired
  mk eval facts.jsonl | awk -F'\\t' '$2 == \"WRONG\"'   the wrong verdicts";

/// The text below the options in `mk eval --help`.
pub(crate) const NOTES: &str = "\
Each line of a dataset is a JSON object with a `fact` and the `expected`
verdict: TRUE, FALSE, NO CONSENSUS or NOTHING (to verify). Optional: `id`,
`domain`, `context`, `asOf`, `tags`, and `answer` (the right answer, for a fact
that is FALSE). Other fields are ignored. FEVER's `claim` and `label` work too.

A statement counts as FALSE if one of its claims is FALSE, else as NO CONSENSUS
if one has no consensus, else as UNCHECKED if a part was not checked, else as
TRUE. Each model is also judged alone: by verdict (TRUE or FALSE) and by option
(the right answer chosen). Failures count neither as right nor as wrong. Shares
have a 95 % confidence interval, and gates compare its worse end with the limit.

In a pipe, each statement is a line of tab-separated fields: line, RIGHT, WRONG
or ERROR, expected verdict, actual verdict (or the kind of error), id, text.
With --repeat, FLIPPED marks a later verdict that differs from the first. The
figures go to standard error. More: mk help verification

With --open, each model that answered a question is asked it again, once and
without options, through /inference/v1 with an inference key (MK_INFERENCE_KEY).
Code finds the option that matches the answer, or else the auditor does.
Questions with two options are left out.

A refused key, a used-up budget or an unreachable server ends the run with the
figures so far; so do Ctrl-C and SIGTERM.

Exit codes: 0 all were verified; 1 a gate was missed; otherwise the worst
failure: 2 usage; 4 no key, or refused; 5 server or provider failed; 6 cannot
reach, or --timeout; 7 refused for now; 8 incomplete.";

/// The arguments of `mk eval`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    /// Files of statements with known answers, as JSON Lines; `-` for standard input
    #[arg(value_name = "DATASET", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Verify only the first N statements
    #[arg(long, value_name = "N", value_parser = within(1..=100_000_u32), allow_negative_numbers = true)]
    pub(super) limit: Option<u32>,

    /// Shuffle the statements, always alike for the same --seed: with --limit, a fair sample
    #[arg(long)]
    pub(super) shuffle: bool,

    /// Seed of --shuffle
    #[arg(long, value_name = "N", default_value_t = 0, requires = "shuffle")]
    pub(super) seed: u64,

    /// Verify each statement N times, to see which verdicts change; the figures are those of the first run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=100_u32), allow_negative_numbers = true)]
    pub(super) repeat: u32,

    /// Also ask each question without its options, to see what models answer on their own. Needs an inference key too
    #[arg(long)]
    pub(super) open: bool,

    /// Keep the answers in this file; do not ask again what it already answers
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,

    /// How many statements to verify at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = within(1..=64_u16), allow_negative_numbers = true)]
    pub(super) jobs: Option<u16>,

    /// How long to wait for the rate limit, per statement [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = expiry::parse_span)]
    pub(super) max_wait: Option<Duration>,

    #[command(flatten)]
    pub(super) backend: BackendArgs,

    #[command(flatten)]
    pub(super) how: How,

    #[command(flatten)]
    pub(super) gates: Gates,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Also write a report, as html=FILE (one page) or csv=FILE (a row per statement); can be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = ReportFile::parse, help_heading = "Output")]
    pub(super) report: Vec<ReportFile>,
}

/// What else there is to do with evaluations.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Compare two evaluations of the same statements
    #[command(help_template = HELP, before_help = compare::EXAMPLES, after_help = compare::NOTES)]
    Compare(CompareArgs),
}

/// What is asked of the figures; limits in percent.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Gates")]
pub(super) struct Gates {
    /// Fail unless at least this percentage is proved right: by the lower end of the interval
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(super) min_accuracy: Option<f64>,

    /// Fail unless it is proved that at most this percentage of FALSE statements passes as TRUE: by the upper end
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(super) max_false_pass: Option<f64>,

    /// Compare the shares themselves with these limits, not the ends of their intervals
    #[arg(long)]
    pub(super) point: bool,

    /// Find the rule that is right in at least this percentage of its verdicts, and print its settings, or how many
    /// more statements are needed to prove one
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(super) target_precision: Option<f64>,
}

/// Value parser for a percentage, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "it must be from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_from_0_to_100() {
        assert_eq!(percent("90"), Ok(90.0));
        assert_eq!(percent("87.5%"), Ok(87.5));
        for wrong in ["", "-1", "100.1", "NaN", "inf", "many", "%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
