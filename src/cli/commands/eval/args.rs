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
  mk eval facts.jsonl --limit 20               to see what it costs
  mk eval facts.jsonl                          how often your panel is right
  mk eval facts.jsonl --max-false-pass 5       for CI: exit code 1 if not proved
  mk eval facts.jsonl --target-precision 95    which rule is that precise
  mk eval facts.jsonl --resume answers.jsonl   goes on where it was broken off
  mk eval facts.jsonl --report html=eval.html  a page to show others
  mk eval facts.jsonl --open                   what models say without options
  mk eval compare before.json after.json       two evaluations, paired
  mk eval facts.jsonl | awk -F'\\t' '$2 == \"WRONG\"'   what it was wrong about";

/// The text below the options in `mk eval --help`.
pub(crate) const NOTES: &str = "\
A line of a dataset is a JSON object with a `fact` and what is `expected`: TRUE,
FALSE, NO CONSENSUS or NOTHING (to verify). `id`, `domain`, `context`, `asOf`,
`answer` (the right one, for a fact that is FALSE) and `tags` may stand beside
them. Other fields are ignored. FEVER's `claim` and `label` are understood.

A statement counts as FALSE if one of its claims is, else NO CONSENSUS if one of
them is, else UNCHECKED if a part was not checked, and TRUE if all are. A model
by itself is judged by verdict (TRUE from FALSE) and by option (the right answer
chosen). What failed counts neither as right nor as wrong. Shares come with
their 95 % confidence interval, and gates hold its worse end against the limit.

In a pipe each statement is a line of tab-separated fields: line, RIGHT, WRONG
or ERROR, what is expected, what was said (or the kind of the error), id, text.
With --repeat, FLIPPED is what a later run said otherwise than the first. The
figures go to standard error. More: mk help verification

With --open, each model that answered a question is asked it again without
options, through /inference/v1 by an inference key (MK_INFERENCE_KEY), once a
statement. Code finds the option that says the same as its words, else the
auditor says which one is meant. Questions with two options are left out.

A refused key, a used-up budget or a server that cannot be reached ends it, with
the figures so far, and so do Ctrl-C and SIGTERM.

Exit codes: 0 all were verified; 1 a gate was missed; else the worst of what
failed: 2 usage; 4 no key, or refused; 5 server or provider failed; 6 cannot
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

    /// Statements with known answers, as lines of JSON; `-` for standard input. Repeat it for several
    #[arg(value_name = "DATASET", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Take only the first N statements
    #[arg(long, value_name = "N", value_parser = within(1..=100_000_u32), allow_negative_numbers = true)]
    pub(super) limit: Option<u32>,

    /// Take the statements in another order, the same for the same --seed: with --limit, a fair sample
    #[arg(long)]
    pub(super) shuffle: bool,

    /// Which order --shuffle takes
    #[arg(long, value_name = "N", default_value_t = 0, requires = "shuffle")]
    pub(super) seed: u64,

    /// Verify each statement N times, to see which verdicts change; the figures are of the first time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=100_u32), allow_negative_numbers = true)]
    pub(super) repeat: u32,

    /// Ask each question without its options as well, which the auditor maps to them: it shows what options hide. Needs
    /// an inference key too
    #[arg(long)]
    pub(super) open: bool,

    /// Keep each answer in this file, and ask nothing again that is answered in it
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,

    /// How many statements are verified at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = within(1..=64_u16), allow_negative_numbers = true)]
    pub(super) jobs: Option<u16>,

    /// How long to wait out the server's rate limit, per statement [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = expiry::parse_span)]
    pub(super) max_wait: Option<Duration>,

    #[command(flatten)]
    pub(super) backend: BackendArgs,

    #[command(flatten)]
    pub(super) how: How,

    #[command(flatten)]
    pub(super) asked: Asked,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Write a report as well, as html=FILE (one page) or csv=FILE (a row a statement); repeat it for both
    #[arg(long, value_name = "FORMAT=FILE", value_parser = ReportFile::parse, help_heading = "Output")]
    pub(super) report: Vec<ReportFile>,
}

impl EvalArgs {
    /// Whether standard output must hold exactly one JSON document.
    pub(crate) const fn wants_json(&self) -> bool {
        match &self.command {
            Some(Command::Compare(args)) => args.json,
            None => self.json,
        }
    }
}

/// What else there is to do with evaluations.
#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Compare two evaluations of the same statements
    #[command(help_template = HELP, before_help = compare::EXAMPLES, after_help = compare::NOTES)]
    Compare(CompareArgs),
}

/// What is asked of the figures.
#[derive(Args, Debug)]
#[command(next_help_heading = "Gates")]
pub(super) struct Asked {
    /// Fail unless it is proved that at least this many percent are right: by the lower end of the interval
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(super) min_accuracy: Option<f64>,

    /// Fail unless it is proved that at most this many percent of the FALSE statements pass as TRUE: by the upper end
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    pub(super) max_false_pass: Option<f64>,

    /// Hold the shares themselves against these limits, and not the ends of their intervals
    #[arg(long)]
    pub(super) point: bool,

    /// Show which rule is right in at least this many percent of its verdicts, as settings, or how many more statements
    /// it takes to prove that
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
