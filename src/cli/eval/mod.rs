//! `mk eval`: measures how often the panel is right about statements with known answers.
//!
//! ```text
//! dataset (all of it read and checked first) ─ verify::verifier, several at a time ─ score ─ report
//! ```
//!
//! Nothing is sent before every line of the dataset has been parsed. A failed statement counts as failed and never as
//! wrong. Results so far are shown, whatever ends the rest. Every share is shown with its total.

mod dataset;
mod report;
mod score;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::{StreamExt, stream};

use super::backend::{self, Backend, BackendArgs, Chosen};
use super::embedded::SANDBOX_BANNER;
use super::exit::{Failure, Kind, Outcome};
use super::globals::Session;
use super::number::within;
use super::printer::Printer;
use super::progress::Mode;
use super::runtime;
use super::verify::args::How;
use super::verify::batch_display::BatchDisplay;
use super::verify::input;
use super::verify::observe::Update;
use super::verify::rate_limit::RateLimitWait;
use super::verify::verifier::Verifier;
use super::verify::{self, BATCH_MAX_WAIT};
use crate::api::verify::{VerifyRequest, VerifyResponse};
use crate::keys::expiry;
use dataset::Item;
use report::Report;

/// Examples of `mk eval`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk eval facts.jsonl                          how often your panel is right
  mk eval facts.jsonl --limit 20               to see what it costs
  mk eval facts.jsonl --min-accuracy 90        for CI: exit code 1 below 90 %
  mk eval facts.jsonl --json | jq .models      each model by itself
  mk eval facts.jsonl | awk -F'\\t' '$2 == \"WRONG\"'   what it was wrong about";

/// The text below the options in `mk eval --help`.
pub(crate) const NOTES: &str = "\
A line of a dataset is a JSON object with a `fact` and what is `expected`: TRUE,
FALSE, NO CONSENSUS or NOTHING (to verify). `id`, `domain`, `context` and `asOf`
may stand beside them; the last three take precedence over the flags. Other
fields are ignored. FEVER's `claim` and `label` are understood.

A statement counts as FALSE if one of its claims is, else NO CONSENSUS if
one of them is, and TRUE if all are. A model is judged by its votes in the same
way, on statements that are TRUE or FALSE. What failed counts neither as right
nor as wrong; tokens and cost are those of the others. Shares come with their
95 % confidence interval (Wilson).

In a pipe each statement is a line of tab-separated fields: line, RIGHT, WRONG
or ERROR, what is expected, what was said (or the kind of the error), id, text.
The figures go to standard error.

A refused key, a used-up budget or a server that cannot be reached ends it, with
the figures so far, and so do Ctrl-C and SIGTERM.

Exit codes: 0 all were verified; 1 fewer were right than --min-accuracy; else
the worst of what failed: 2 usage; 4 no key, or refused; 5 server or provider
failed; 6 cannot reach, or --timeout; 7 refused for now; 8 incomplete.";

/// The arguments of `mk eval`.
#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    /// Statements with known answers, as lines of JSON; `-` for standard input. Repeat it for several
    #[arg(value_name = "DATASET", required = true)]
    files: Vec<PathBuf>,

    /// Take only the first N statements
    #[arg(long, value_name = "N", value_parser = within(1..=100_000_u32), allow_negative_numbers = true)]
    limit: Option<u32>,

    /// How many statements are verified at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = within(1..=64_u16), allow_negative_numbers = true)]
    jobs: Option<u16>,

    /// How long to wait out the server's rate limit, per statement [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = expiry::parse_span)]
    max_wait: Option<Duration>,

    /// Fail if fewer than this many percent are right
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    min_accuracy: Option<f64>,

    #[command(flatten)]
    backend: BackendArgs,

    #[command(flatten)]
    how: How,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// How many statements in a row may fail to reach the server before the rest is given up.
const MAX_FUTILE: usize = 5;

/// Value parser for a percentage, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "it must be from 0 to 100".to_owned())
}

/// Everything that is decided before anything is sent.
struct Plan {
    printer: Printer,
    progress: Mode,
    json: bool,
    verifier: Verifier,
    jobs: usize,
    max_wait: Duration,
    min_accuracy: Option<f64>,
}

/// The outcome of a statement.
struct StatementOutcome {
    /// Its index in the dataset.
    index: usize,
    item: Item,
    /// `None` for a statement that was no longer asked.
    outcome: Option<Result<(VerifyResponse, Duration), Failure>>,
    /// Whether it is the reason why the rest is not asked.
    ends_evaluation: bool,
}

/// Runs the command.
pub(crate) fn run(args: &EvalArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(args.how.timeout.as_deref(), None)?;
    let plan = Plan {
        progress: session.progress(&config),
        json: args.json,
        verifier: Verifier::new(&args.how, false, &config)?,
        jobs: verify::jobs(args.jobs, &config),
        max_wait: args.max_wait.unwrap_or(BATCH_MAX_WAIT),
        min_accuracy: args.min_accuracy,
        printer: session.printer.clone(),
    };
    let need = verify::need("mk eval --sandbox facts.jsonl");
    let limit = args.limit.and_then(|limit| usize::try_from(limit).ok());
    let (chosen, items) = backend::choose_and_read(
        || backend::choose(args.backend, &config, session, need),
        args.files.iter().any(|path| input::is_stdin(path)),
        || dataset::read(&args.files, limit, &plan.printer),
    )?;
    let (begun, mut report) = (Instant::now(), Report::new(&plan, items.len()));
    match runtime::run(&session.printer, execute(&plan, chosen, items, &mut report)) {
        Ok(()) => report.finish(begun.elapsed()),
        // What was found so far has been paid for, and is printed.
        Err(stopped) if stopped.kind.stop_signal().is_some() => {
            Err(report.break_off(stopped, begun.elapsed())?)
        }
        Err(failure) => Err(failure),
    }
}

async fn execute(
    plan: &Plan,
    chosen: Chosen,
    items: Vec<Item>,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let backend = chosen.open(&plan.printer).await?;
    let display = BatchDisplay::begin(&plan.printer, plan.progress, Some(items.len()), backend.is_sandbox);
    let evaluation = Evaluation {
        plan,
        backend: &backend,
        rate_limit_wait: RateLimitWait::new(plan.max_wait),
        display: RefCell::new(display),
        futile_in_a_row: Cell::new(0),
        is_over: Cell::new(false),
    };
    let running =
        stream::iter(items.into_iter().enumerate()).map(|(index, item)| evaluation.run_one(index, item));
    let mut running = std::pin::pin!(running.buffer_unordered(plan.jobs));
    while let Some(done) = running.next().await {
        report.take(done, &evaluation.display)?;
    }
    evaluation.display.borrow_mut().end();
    Ok(())
}

/// An evaluation in progress.
struct Evaluation<'a> {
    plan: &'a Plan,
    backend: &'a Backend,
    rate_limit_wait: RateLimitWait,
    display: RefCell<BatchDisplay<'a>>,
    /// How many statements in a row failed to reach the server.
    futile_in_a_row: Cell<usize>,
    /// Whether further statements are pointless. Those already running continue, as they may be paid for.
    is_over: Cell<bool>,
}

impl Evaluation<'_> {
    async fn run_one(&self, index: usize, item: Item) -> StatementOutcome {
        if self.is_over.get() {
            return StatementOutcome { index, item, outcome: None, ends_evaluation: false };
        }
        let announce = |text: &str| self.display.borrow().notice(text);
        let mut observe = |update: Update<'_>| {
            match update {
                Update::Tick => self.display.borrow_mut().tick(),
                Update::Event(event) => {
                    if verify::announces_sandbox(event) && self.display.borrow_mut().note_sandbox() {
                        announce(SANDBOX_BANNER);
                    }
                }
            }
            Ok(())
        };
        let general = &self.plan.verifier.request;
        let request = VerifyRequest {
            fact: item.fact.clone(),
            domain: item.domain.or(general.domain),
            as_of: item.as_of.clone().or_else(|| general.as_of.clone()),
            context: item.context.clone().or_else(|| general.context.clone()),
            ..general.clone()
        };
        let verifier = &self.plan.verifier;
        let outcome =
            verifier.verify(self.backend, &request, &self.rate_limit_wait, &announce, &mut observe).await;
        let ends_evaluation = self.is_futile(&outcome) && !self.is_over.replace(true);
        StatementOutcome { index, item, outcome: Some(outcome), ends_evaluation }
    }

    /// Whether further statements are pointless.
    fn is_futile<T>(&self, outcome: &Result<T, Failure>) -> bool {
        let kind = outcome.as_ref().err().map(|failure| failure.kind);
        // The server is unreachable, or a limit is reached that would take too long to wait out.
        let has_not_begun = matches!(kind, Some(Kind::Unreachable | Kind::Busy));
        self.futile_in_a_row.set(if has_not_begun { self.futile_in_a_row.get() + 1 } else { 0 });
        // The key is refused, or its budget is used up.
        kind == Some(Kind::Unauthorized) || self.futile_in_a_row.get() >= MAX_FUTILE
    }
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
