//! `mk eval`: statements with known answers go in, how often the panel is right comes out.
//!
//! ```text
//! dataset (all of it read and checked first) ─ verify::asking, some at a time ─ score ─ report
//! ```
//!
//! What must hold: nothing is sent before every line of the dataset has been understood; a statement that failed is
//! counted as failed and never as wrong; every share is shown with what it is a share of.

mod dataset;
mod report;
mod score;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::{StreamExt, stream};

use super::embedded::SANDBOX_BANNER;
use super::exit::{Failure, Outcome};
use super::globals::Session;
use super::number::within;
use super::printer::Printer;
use super::progress::Mode;
use super::runtime;
use super::verify::args::{How, Place as Where};
use super::verify::asking::{self, Asking};
use super::verify::batch_display::BatchDisplay;
use super::verify::patience::Patience;
use super::verify::place::{Open, Place};
use super::verify::watch::Moment;
use super::verify::{self, BATCH_PATIENCE};
use crate::api::verify::{VerifyRequest, VerifyResponse};
use crate::keys::expiry;
use dataset::Item;
use report::Report;

/// Examples of `mk eval`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk eval facts.jsonl                          how often your server's panel is right
  mk eval facts.jsonl --limit 20               the first 20, to see what it costs
  mk eval facts.jsonl --min-accuracy 90        for CI: exit code 1 below 90 %
  mk eval facts.jsonl --json | jq .models      each model by itself
  mk eval facts.jsonl | grep WRONG             the ones it was wrong about";

/// What stands below the options of `mk eval --help`.
pub(crate) const NOTES: &str = "\
A line of a dataset is a JSON object with a `fact` and what is `expected`: TRUE,
FALSE, NO CONSENSUS or NOTHING (to verify). `id`, `domain`, `context` and `asOf`
may stand beside them; the last three outrank the flags. Other fields are left
alone. FEVER's `claim` and `label` are understood.

A statement is FALSE if one of its claims is, TRUE if all of them are. What
failed counts neither as right nor as wrong; a refused key or a used-up budget
ends it. Behind a share stands where that of all such statements lies with a
probability of 95 %.

In a pipe each statement is a line of tab-separated fields: line, RIGHT, WRONG
or ERROR, what it is, what was said (or the kind of the error), id, text.

Exit codes: 0 all were verified; 1 fewer were right than --min-accuracy; else
the worst of what failed, as of `mk verify`.";

/// The arguments of `mk eval`.
#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    /// Statements with what they are, as lines of JSON; `-` for standard input. Repeat it for several
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
    place: Where,

    #[command(flatten)]
    how: How,

    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// A share in hundredths, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "it must be from 0 to 100".to_owned())
}

/// Everything that is settled before anything is sent.
struct Plan {
    printer: Printer,
    progress: Mode,
    json: bool,
    asking: Asking,
    jobs: usize,
    max_wait: Duration,
    min_accuracy: Option<f64>,
}

/// What became of a statement.
struct Done {
    item: Item,
    outcome: Result<(VerifyResponse, Duration), Failure>,
}

/// Runs the command.
pub(crate) fn run(args: &EvalArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(args.how.timeout.as_deref(), None)?;
    let plan = Plan {
        progress: session.progress(&config),
        json: args.json,
        asking: Asking::of(&args.how, false, &config)?,
        jobs: verify::jobs(args.jobs, &config),
        max_wait: args.max_wait.unwrap_or(BATCH_PATIENCE),
        min_accuracy: args.min_accuracy,
        printer: session.printer.clone(),
    };
    let try_without = "mk eval --sandbox facts.jsonl";
    let place = Place::settle(&args.place, &config, session, asking::limit(&config), try_without)?;
    let limit = args.limit.and_then(|limit| usize::try_from(limit).ok());
    let items = dataset::read(&args.files, limit, &plan.printer)?;
    runtime::run(&session.printer, execute(&plan, place, items))
}

async fn execute(plan: &Plan, place: Place, items: Vec<Item>) -> Outcome {
    let open = place.open().await?;
    if open.is_sandbox {
        plan.printer.notice(SANDBOX_BANNER);
    }
    let display = BatchDisplay::begin(&plan.printer, plan.progress, Some(items.len()), open.is_sandbox);
    let display = RefCell::new(display);
    let patience = Patience::new(plan.max_wait);
    let begun = Instant::now();
    let mut report = Report::new(plan, &display, items.len());
    let one = |item| one(plan, &open, &patience, &display, item);
    let running = stream::iter(items).map(one).buffered(plan.jobs);
    let mut running = std::pin::pin!(running);
    while let Some(done) = running.next().await {
        if report.take(done)?.is_break() {
            break;
        }
    }
    report.finish(begun.elapsed())
}

async fn one(
    plan: &Plan,
    open: &Open,
    patience: &Patience,
    display: &RefCell<BatchDisplay<'_>>,
    item: Item,
) -> Done {
    let tell = |text: &str| display.borrow().notice(text);
    let mut observe = |moment: Moment<'_>| {
        match moment {
            Moment::Tick => display.borrow_mut().tick(),
            Moment::Event(event) => {
                if verify::tells_sandbox(event) && display.borrow_mut().learn_sandbox() {
                    tell(SANDBOX_BANNER);
                }
            }
        }
        Ok(())
    };
    let general = &plan.asking.request;
    let request = VerifyRequest {
        fact: item.fact.clone(),
        domain: item.domain.or(general.domain),
        as_of: item.as_of.clone().or_else(|| general.as_of.clone()),
        context: item.context.clone().or_else(|| general.context.clone()),
        ..general.clone()
    };
    let outcome = plan.asking.verify(&open.target, &request, patience, &tell, &mut observe).await;
    Done { item, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_from_0_to_100() {
        assert_eq!(percent("90"), Ok(90.0));
        assert_eq!(percent("87.5%"), Ok(87.5));
        for wrong in ["", "-1", "100.1", "NaN", "inf", "many", "%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
