//! `mk extract`: texts in, the claims that a verification would ask about out.
//!
//! ```text
//! args + configuration ─ Plan ─ statements, several at a time ─ report ─ output (stdout)
//!                                (verify::verifier)                    └─ verify::gate (exit code; stderr)
//! ```
//!
//! Input, server, waiting and gate are those of `mk verify`. Results are printed in input order, each as soon as all
//! before it are printed.

mod args;
mod output;
mod report;

pub(crate) use args::{EXAMPLES, ExtractArgs, NOTES};

use std::cell::RefCell;
use std::time::{Duration, Instant};

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

use super::verify::input::place::Places;
use super::verify::input::source::{self, Input, Source};
use super::verify::output::batch_display::BatchDisplay;
use super::verify::run::observe::Update;
use super::verify::run::rate_limit::RateLimitWait;
use super::verify::run::refusal::Refusal;
use super::verify::run::verifier::Verifier;
use super::verify::{self, BATCH_MAX_WAIT, Format, Plan};
use crate::api::verify::ExtractResponse;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend::{self, Backend, Chosen};
use report::Report;

/// A statement to extract from; one of several has a source, and so has a file.
type Statement = (Option<Source>, Result<String, Failure>);

/// What was extracted from a statement.
struct Finished {
    found: ExtractResponse,
    elapsed: Duration,
    places: Places,
}

/// The outcome of a statement.
struct StatementOutcome {
    source: Option<Source>,
    text: String,
    outcome: Result<Finished, Failure>,
}

/// Runs the command.
pub(crate) fn run(args: &ExtractArgs, session: &mut Session) -> Outcome {
    source::check_given(&args.input, "extract", &session.printer)?;
    let config = session.client_config(args.subject.timeout.as_deref(), None)?;
    let format = match (args.json, args.jsonl) {
        (true, _) => Format::Json,
        (_, true) => Format::JsonLines,
        _ if session.printer.terminal.out.is_terminal => Format::List,
        _ => Format::Plain,
    };
    let verifier = Verifier::of_extractions(&args.subject, &config)?;
    let plan = Plan::new(format, verifier, &args.input, &config, session);
    let (chosen, input) = backend::choose_and_read(
        || backend::choose(args.backend, &config, session, verify::need("mk extract --sandbox \"…\"")),
        source::reads_stdin(&args.input),
        || source::resolve(&args.input, "extract", &plan.printer),
    )?;
    // Kept outside of the work, as a signal drops that.
    let mut entries = Vec::new();
    let outcome = runtime::run(&plan.printer, execute(&plan, chosen, input, &mut entries));
    outcome.map_err(|failure| {
        let is_stopped = failure.kind.stop_signal().is_some() && !entries.is_empty();
        let code = failure.kind.code();
        if is_stopped { failure.with_partial(output::batch(&entries, None, code)) } else { failure }
    })
}

/// Extracts from all statements; the documents of several are also left in `entries`.
async fn execute(plan: &Plan, chosen: Chosen, input: Input, entries: &mut Vec<Value>) -> Outcome {
    let backend = chosen.open(&plan.printer).await?;
    let is_one = matches!(input, Input::One(..));
    let all = match &input {
        Input::One(..) => Some(1),
        Input::Several(statements) => Some(statements.len()),
        Input::Lines(_) => None,
    };
    let named = |(source, text): source::Statement| (Some(source), text);
    let statements: BoxStream<'_, Statement> = match input {
        Input::One(source, text) => stream::once(async { (source, Ok(text)) }).boxed(),
        Input::Several(statements) => stream::iter(statements.into_iter().map(named)).boxed(),
        Input::Lines(file) => {
            let mut lines = source::lines(file);
            stream::poll_fn(move |context| lines.poll_recv(context)).map(named).boxed()
        }
    };
    let display =
        BatchDisplay::begin("Extracting claims", &plan.printer, plan.progress, all, backend.is_sandbox);
    let default_wait = if is_one { Duration::ZERO } else { BATCH_MAX_WAIT };
    let extraction = Extraction {
        plan,
        backend: &backend,
        rate_limit_wait: RateLimitWait::new(plan.max_wait.unwrap_or(default_wait)),
        display: RefCell::new(display),
        refusal: Refusal::default(),
    };
    let mut report = Report::new(plan, &extraction.display, is_one, entries, Instant::now());
    let running = statements.map(|(source, text)| extraction.run_one(source, text).boxed_local());
    let mut running = std::pin::pin!(running.buffered(plan.jobs));
    while let Some(done) = running.next().await {
        report.take(done)?;
    }
    report.finish()
}

/// Extractions in progress.
struct Extraction<'a> {
    plan: &'a Plan,
    backend: &'a Backend,
    rate_limit_wait: RateLimitWait,
    display: RefCell<BatchDisplay<'a>>,
    refusal: Refusal,
}

impl Extraction<'_> {
    async fn run_one(&self, source: Option<Source>, text: Result<String, Failure>) -> StatementOutcome {
        match text {
            Ok(text) => {
                let asked = self.extract(source.as_ref(), text.clone());
                let outcome = self.refusal.unless_refused(asked).await;
                StatementOutcome { source, text, outcome }
            }
            Err(failure) => StatementOutcome { source, text: String::new(), outcome: Err(failure) },
        }
    }

    async fn extract(&self, source: Option<&Source>, fact: String) -> Result<Finished, Failure> {
        let announce = |text: &str| self.display.borrow().live.notice(text);
        let mut observe = |update: Update<'_>| {
            self.display.borrow_mut().observe(&update);
            Ok(())
        };
        let verifier = &self.plan.verifier;
        let request = verifier.request_for(source, fact);
        let (found, elapsed) =
            verifier.extract(self.backend, &request, &self.rate_limit_wait, &announce, &mut observe).await?;
        Ok(Finished { found, elapsed, places: Places::new(source, &request.fact) })
    }
}
