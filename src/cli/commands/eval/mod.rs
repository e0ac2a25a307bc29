//! `mk eval`: measures how often the panel is right about statements with known answers.
//!
//! ```text
//! dataset (all of it read and checked first) ─ evaluation, several at a time ─┬─ answers (kept in a file)
//!                                       (open: without options, if asked for)  └─ score ─ figures ─ report
//! ```
//!
//! Nothing is sent before every line of the dataset has been parsed. A failed statement counts as failed and never as
//! wrong. Results so far are shown, whatever ends the rest. Every share is shown with its total.

mod answers;
mod args;
mod compare;
mod dataset;
mod evaluation;
mod figures;
mod gates;
mod label;
mod open;
mod panel;
mod report;
mod reports;
mod score;
mod settings;
mod target;

use std::time::{Duration, Instant};

use super::verify::input::source;
use super::verify::run::verifier::Verifier;
use super::verify::{self, BATCH_MAX_WAIT};
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::Mode;
use answers::Answers;
use args::{Command, Gates};
pub(crate) use args::{EXAMPLES, EvalArgs, NOTES};
use dataset::{Dataset, Selection};
use report::Report;
use reports::ReportFile;
use settings::Settings;

/// Everything that is decided before anything is sent.
struct Plan {
    printer: Printer,
    progress: Mode,
    json: bool,
    verifier: Verifier,
    jobs: usize,
    max_wait: Duration,
    /// How often each statement is verified.
    repeat: u32,
    /// Whether questions are asked without options as well.
    open: bool,
    /// Whether answers are kept in a file.
    is_kept: bool,
    gates: Gates,
    settings: Settings,
    reports: Vec<ReportFile>,
}

/// Runs the command.
pub(crate) fn run(args: &EvalArgs, session: &mut Session) -> Outcome {
    match &args.command {
        Some(Command::Compare(args)) => compare::run(args, session),
        None => evaluate(args, session),
    }
}

fn evaluate(args: &EvalArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(args.how.subject.timeout.as_deref(), None)?;
    let verifier = Verifier::new(&args.how, false, &config)?;
    let gates = &args.gates;
    if gates.point && gates.min_accuracy.is_none() && gates.max_false_pass.is_none() {
        return Err(Failure::usage("--point needs a limit, and none is given")
            .hint("add --min-accuracy or --max-false-pass"));
    }
    let mut plan = Plan {
        progress: session.progress(&config),
        json: args.json,
        settings: Settings::new(args, &config, &verifier.request),
        verifier,
        jobs: verify::jobs(args.jobs, &config),
        max_wait: args.max_wait.unwrap_or(BATCH_MAX_WAIT),
        repeat: args.repeat,
        open: args.open,
        is_kept: args.resume.is_some(),
        gates: args.gates,
        reports: args.report.clone(),
        printer: session.printer.clone(),
    };
    let need = verify::need("mk eval --sandbox facts.jsonl");
    let selection = Selection {
        limit: args.limit.and_then(|limit| usize::try_from(limit).ok()),
        seed: args.shuffle.then_some(args.seed),
        needs_all: args.resume.is_some(),
    };
    let (chosen, Dataset { items, sha256 }) = backend::choose_and_read(
        || {
            let chosen = backend::choose(args.backend, &config, session, need)?;
            if !args.open {
                return Ok(chosen);
            }
            chosen.with_inference(&config, plan.verifier.limit).map_err(open::named)
        },
        args.files.iter().any(|path| source::is_stdin(path)),
        || dataset::read(&args.files, selection, &plan.printer),
    )?;
    for (at, report) in plan.reports.iter().enumerate() {
        let datasets = args.files.iter().map(|file| ("the dataset", file.as_path()));
        let resume = args.resume.as_deref().map(|file| ("the file of --resume", file));
        let earlier = plan.reports[..at].iter().map(|other| ("another report", other.path()));
        report.check_place(datasets.chain(resume).chain(earlier))?;
    }
    plan.reports.iter().try_for_each(ReportFile::check)?;
    let open = |path| Answers::open(path, &sha256, &plan.settings.pinned);
    let answers = args.resume.as_deref().map(open).transpose()?;
    plan.settings.add("dataset_sha256", sha256.into());
    let (begun, mut report) = (Instant::now(), Report::new(&plan, items.len()));
    match runtime::run(&session.printer, evaluation::run(&plan, chosen, &items, answers, &mut report)) {
        Ok(()) => report.finish(begun.elapsed()),
        // What was found so far has been paid for, and is printed.
        Err(stopped) if stopped.kind.stop_signal().is_some() => {
            Err(report.break_off(stopped, begun.elapsed())?)
        }
        Err(failure) => Err(failure),
    }
}
