//! `mk verify`: texts in, verdicts out.
//!
//! ```text
//! args + configuration ─ Plan ─┬─ single ─┐             ┌─ display  (stderr, while it runs)
//!                              └─ batch  ─┴─ verifier ─ observe
//!                                                       ├─ page | table | plain | json  (stdout)
//!                                                       └─ verdict ─ gate  (exit code; stderr)
//! ```
//!
//! Results go to standard output only, in document order except in `--jsonl`. A verification is sent once, and again
//! only after a 429, which started nothing. The exit code says what was found.

pub(in crate::cli) mod args;
pub(in crate::cli) mod gate;
pub(in crate::cli) mod input;
pub(in crate::cli) mod output;
pub(in crate::cli) mod run;
mod value_source;
pub(in crate::cli) mod verdict;

use args::InputArgs;
pub(crate) use args::{EXAMPLES, NOTES, VerifyArgs};

use std::time::Duration;

use futures_util::stream;
use serde_json::Value;

use crate::api::Service;
use crate::api::verify::Event;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend::{self, Backend, Chosen, Need};
use crate::cli::target::remote;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::progress::Mode;
use crate::cli::terminal::sanitize;
use crate::cli::terminal::term::Terminal;
use crate::config::{ClientConfig, DEFAULT_JOBS, FailOn, View};
use input::place::Places;
use input::source::{self, Input, Source};
use output::json::{self, Finished};
use output::page::Page;
use output::receipt_file::ReceiptFile;
use output::summary::{self, Totals};
use run::batch;
use run::observe::Update;
use run::rate_limit::RateLimitWait;
use run::single::{self, Found};
use run::verifier::Verifier;

/// The default of `--max-wait` for each of several statements.
pub(in crate::cli) const BATCH_MAX_WAIT: Duration = Duration::from_mins(5);

/// How many models are asked about a claim unless that is said.
const USUAL_MODELS: u32 = 3;

/// The format of results on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Format {
    List,
    Table,
    Plain,
    Json,
    JsonLines,
}

/// Everything that is decided before anything is sent, here and by `mk extract`.
pub(in crate::cli) struct Plan {
    pub(in crate::cli) printer: Printer,
    pub(in crate::cli) format: Format,
    pub(in crate::cli) progress: Mode,
    pub(in crate::cli) verifier: Verifier,
    fail_on: Vec<FailOn>,
    pub(in crate::cli) jobs: usize,
    pub(in crate::cli) max_wait: Option<Duration>,
    /// Whether models are asked in spite of the server's cache.
    fresh: bool,
}

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, session: &mut Session) -> Outcome {
    source::check_given(&args.input, "verify", &session.printer)?;
    let config = session.client_config(args.how.subject.timeout.as_deref(), args.output.view)?;
    let plan = plan(args, &config, session)?;
    let receipts = args.output.receipt.as_deref().map(ReceiptFile::create).transpose()?;
    let (chosen, input) = backend::choose_and_read(
        || backend::choose(args.backend, &config, session, need("mk verify --sandbox \"…\"")),
        source::reads_stdin(&args.input),
        || source::resolve(&args.input, "verify", &plan.printer),
    )?;
    let chosen = if receipts.is_some() { chosen.signing_receipts() } else { chosen };
    let mut kept = Kept::default();
    let outcome = runtime::run(&plan.printer, execute(&plan, chosen, input, receipts, &mut kept));
    outcome.map_err(|failure| kept.add_to(failure))
}

/// What was found for one document, kept outside of the work, as a signal drops that.
#[derive(Default)]
struct Kept {
    /// Of one statement.
    found: Found,
    /// Those of several statements that are done.
    entries: Vec<Value>,
}

impl Kept {
    /// The failure with what was found before it: that has been paid for.
    fn add_to(self, failure: Failure) -> Failure {
        let code = failure.kind.code();
        if !self.found.claims.is_empty() {
            return failure.with_partial(json::partial(&self.found, code));
        }
        if failure.kind != Kind::ClosedPipe && !self.entries.is_empty() {
            return failure.with_partial(json::batch(&self.entries, None, code));
        }
        failure
    }
}

/// Verifies the input; what is printed as one document is also `kept`.
async fn execute(
    plan: &Plan,
    chosen: Chosen,
    input: Input,
    receipts: Option<ReceiptFile>,
    kept: &mut Kept,
) -> Outcome {
    let mut backend = chosen.open(&plan.printer).await?;
    if plan.fresh {
        backend.client = backend.client.asking_afresh();
    }
    match input {
        Input::One(source, text) => {
            single::run(plan, &backend, source.as_ref(), text, receipts, &mut kept.found).await
        }
        Input::Several(statements) => {
            let all = Some(statements.len());
            batch::run(plan, &backend, all, stream::iter(statements), receipts, &mut kept.entries).await
        }
        Input::Lines(file) => {
            let mut lines = source::lines(file);
            let statements = stream::poll_fn(move |context| lines.poll_recv(context));
            batch::run(plan, &backend, None, statements, receipts, &mut kept.entries).await
        }
    }
}

fn plan(args: &VerifyArgs, config: &ClientConfig, session: &Session) -> Result<Plan, Failure> {
    let format = format(args, config, &session.printer);
    let fail_on = fail_on(args, config)?;
    note_weakened(args, config, &fail_on, &session.printer);
    let verifier = Verifier::new(&args.how, args.explain, config)?;
    let verifier = verifier.with_receipts(args.output.receipt.is_some());
    let plan = Plan::new(format, verifier, &args.input, config, session);
    Ok(Plan { fail_on, fresh: args.fresh, ..plan })
}

/// What makes the command fail. A list in a file was checked when it was read.
fn fail_on(args: &VerifyArgs, config: &ClientConfig) -> Result<Vec<FailOn>, Failure> {
    if args.output.fail_on.as_deref().is_some_and(FailOn::contradict) {
        return Err(Failure::usage("--fail-on: `never` cannot be combined")
            .hint("use either `never` or the other values"));
    }
    let given = args.output.fail_on.as_ref().or(config.verify.fail_on.as_ref());
    Ok(given.cloned().unwrap_or_else(|| FailOn::DEFAULT.to_vec()))
}

/// Says so, even with `-q`, where a project's file lets pass what fails by default: it may be part of what is checked.
fn note_weakened(args: &VerifyArgs, config: &ClientConfig, fail_on: &[FailOn], printer: &Printer) {
    let origin = config.origin("verify.fail_on");
    let passes = |trigger: &FailOn| match trigger {
        FailOn::Unchecked => !fail_on.contains(&FailOn::Unchecked) && !fail_on.contains(&FailOn::Skipped),
        other => !fail_on.contains(other),
    };
    if args.output.fail_on.is_none() && origin.is_of_project() && FailOn::DEFAULT.iter().any(passes) {
        let list: Vec<String> = fail_on.iter().map(ToString::to_string).collect();
        let note = format!("note: fail_on = {}, from {origin}", list.join(","));
        printer.alert(&sanitize::line(&note));
    }
}

fn format(args: &VerifyArgs, config: &ClientConfig, printer: &Printer) -> Format {
    if args.output.json {
        return Format::Json;
    }
    if args.output.jsonl {
        return Format::JsonLines;
    }
    // A project asks for its view as the command line does: also where the output is no terminal.
    let is_view_asked_for = args.output.view.is_some() || config.origin("output.view").is_of_project();
    let is_for_people = is_view_asked_for || printer.terminal.out.is_terminal;
    match config.view {
        _ if !is_for_people => Format::Plain,
        View::List => Format::List,
        View::Table => Format::Table,
    }
}

/// What a verifying command needs from a server; `keyless_command` is the variant that works without a key.
pub(in crate::cli) const fn need(keyless_command: &'static str) -> Need {
    Need { service: Service::Verify, idle_timeout: remote::IDLE_TIMEOUT, keyless_command }
}

/// How many statements are verified at a time.
pub(in crate::cli) fn jobs(flag: Option<u16>, config: &ClientConfig) -> usize {
    flag.map(usize::from).or(config.verify.jobs).unwrap_or(DEFAULT_JOBS).max(1)
}

impl Format {
    /// Whether it is laid out for people.
    pub(in crate::cli) const fn is_for_people(self) -> bool {
        matches!(self, Self::List | Self::Table)
    }
}

impl Plan {
    pub(in crate::cli) fn new(
        format: Format,
        verifier: Verifier,
        input: &InputArgs,
        config: &ClientConfig,
        session: &Session,
    ) -> Self {
        let printer = session.printer.clone();
        let shares_terminal = format == Format::JsonLines && printer.terminal.out.is_terminal;
        Self {
            format,
            progress: if shares_terminal { Mode::None } else { session.progress(config) },
            verifier: verifier.with_markup(input.format),
            fail_on: FailOn::DEFAULT.to_vec(),
            jobs: jobs(input.jobs, config),
            max_wait: input.max_wait,
            fresh: false,
            printer,
        }
    }

    /// The page on which results for people are laid out, on a terminal as wide as it is now.
    fn page<'t>(&self, terminal: &'t Terminal, places: Option<&'t Places>) -> Page<'t> {
        Page { terminal, explain: self.verifier.request.explain == Some(true), places }
    }

    /// Warns of what a result leaves open, unless a person reads just that on the same terminal.
    fn warn(&self, totals: &Totals) {
        for warning in totals.warnings(
            &self.fail_on,
            gate::is_read_on_one_terminal(&self.printer, self.format.is_for_people()),
        ) {
            self.printer.warning(&warning);
        }
    }

    /// Runs one verification, again after each 429 that may be waited out.
    async fn verify(
        &self,
        backend: &Backend,
        source: Option<&Source>,
        fact: String,
        rate_limit_wait: &RateLimitWait,
        announce: &dyn Fn(&str),
        observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
    ) -> Result<Finished, Failure> {
        let models = self.verifier.request.total_models.unwrap_or(USUAL_MODELS);
        if let Some(forecast) = summary::forecast(&fact, models, backend.is_sandbox) {
            announce(&forecast);
        }
        let request = self.verifier.request_for(source, fact);
        let (result, elapsed) =
            self.verifier.verify(backend, &request, rate_limit_wait, announce, observe).await?;
        let exit = verdict::exit_code(&verdict::faults(&result, &self.fail_on));
        Ok(Finished { places: Places::new(source, &request.fact), result, elapsed, exit })
    }
}

/// Whether an event says that simulated models take part.
fn announces_sandbox(event: &Event) -> bool {
    matches!(event, Event::Starting(starting) if starting.mode.as_deref() == Some("sandbox"))
}
