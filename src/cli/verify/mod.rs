//! `mk verify`: texts in, verdicts out.
//!
//! ```text
//! args + configuration ─ Plan ─┬─ single ─┐              ┌─ display  (stderr, while it runs)
//!                              └─ batch  ─┴─ patience ─ watch
//!                                                        └─ human | table | plain | json  (stdout)
//! ```
//!
//! What must hold: results on standard output only, in document order except in `--jsonl`; a verification is posted
//! once, and again only after a 429, which began nothing; the exit code says what was found.

mod args;
mod batch;
mod batch_display;
mod display;
mod figures;
mod human;
mod input;
mod json;
mod patience;
mod plain;
mod set_by;
mod single;
mod table;
mod verdict;
mod votes;
mod watch;

pub(crate) use args::{EXAMPLES, NOTES, VerifyArgs};

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::stream;

use crate::api::Service;
use crate::api::verify::{Event, VerifyRequest, VerifyResponse};
use crate::cli::embedded::{Embedded, SANDBOX_BANNER};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::globals::Session;
use crate::cli::printer::Printer;
use crate::cli::progress::Mode;
use crate::cli::{remote, runtime};
use crate::clock::Time;
use crate::config::{ClientConfig, FailOn, ServerArgs, ServerConfig, View, load_server};
use human::Page;
use input::Input;
use json::Finished;
use patience::{Patience, Waited};
use set_by::{MIN_REQUIRED, SetBy, TOTAL_MODELS};
use watch::{Moment, Target};

/// How long several statements wait for the rate limit, each, unless `--max-wait` says otherwise.
const BATCH_PATIENCE: Duration = Duration::from_mins(5);

/// How many statements are verified at a time, unless somebody says otherwise.
const JOBS: usize = 4;

/// How long a verification may take in all, unless somebody says otherwise: above what servers allow themselves.
const LIMIT: Duration = Duration::from_mins(10);

/// What comes out on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    List,
    Table,
    Plain,
    Json,
    JsonLines,
}

/// Everything that is settled before anything is sent.
struct Plan {
    printer: Printer,
    format: Format,
    progress: Mode,
    /// All but the statement.
    request: VerifyRequest,
    set_by: SetBy,
    fail_on: Vec<FailOn>,
    jobs: usize,
    limit: Duration,
    max_wait: Option<Duration>,
}

/// Where verifications run.
enum Place {
    /// A server that is there.
    Server(Target),
    /// One of our own, for this command.
    Embedded {
        /// What it is to be.
        config: Box<ServerConfig>,
        /// Whether its models are simulated.
        is_sandbox: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, session: &mut Session) -> Outcome {
    input::check_given(args)?;
    let config = session.client_config(args.how.timeout.as_deref(), args.output.view)?;
    let plan = plan(args, &config, session)?;
    let place = place(args, &config, session)?;
    let input = input::resolve(args.text.as_deref(), &args.file, args.lines.as_deref(), &plan.printer)?;
    let printer = plan.printer.clone();
    runtime::run(&printer, execute(plan, place, input))
}

async fn execute(plan: Plan, place: Place, input: Input) -> Outcome {
    let (target, is_sandbox, _embedded) = match place {
        Place::Server(target) => (target, false, None),
        Place::Embedded { config, is_sandbox } => {
            let embedded = Embedded::start(*config, Service::Verify).await?;
            let client =
                remote::embedded_client(&embedded.address, embedded.key.clone(), remote::IDLE_TIMEOUT)?;
            let target = Target { client, server: embedded.address.clone(), limit: plan.limit };
            (target, is_sandbox, Some(embedded))
        }
    };
    if is_sandbox {
        plan.printer.notice(SANDBOX_BANNER);
    }
    match input {
        Input::One(text) => single::run(&plan, &target, text, is_sandbox).await,
        Input::Files(statements) => {
            let statements = statements.into_iter().map(|(source, text)| (source, Ok(text)));
            batch::run(&plan, &target, stream::iter(statements), is_sandbox).await
        }
        Input::Lines(path) => {
            let mut lines = input::lines(&path)?;
            let statements = stream::poll_fn(move |context| lines.poll_recv(context));
            batch::run(&plan, &target, statements, is_sandbox).await
        }
    }
}

fn plan(args: &VerifyArgs, config: &ClientConfig, session: &Session) -> Result<Plan, Failure> {
    let printer = session.printer.clone();
    let format = format(args, config, &printer);
    let shares_terminal = format == Format::JsonLines && printer.terminal.out.is_terminal;
    let progress = if shares_terminal { Mode::None } else { session.progress(config) };
    let set_by = SetBy::of(args, config);
    Ok(Plan {
        format,
        progress,
        request: request(args, config, &set_by)?,
        set_by,
        fail_on: args
            .output
            .fail_on
            .clone()
            .or_else(|| config.verify.fail_on.clone())
            .unwrap_or_else(|| verdict::DEFAULT.to_vec()),
        jobs: args.jobs.map(usize::from).or(config.verify.jobs).unwrap_or(JOBS).max(1),
        limit: config.timeout.unwrap_or(LIMIT),
        max_wait: args.max_wait,
        printer,
    })
}

fn format(args: &VerifyArgs, config: &ClientConfig, printer: &Printer) -> Format {
    if args.output.json {
        return Format::Json;
    }
    if args.output.jsonl {
        return Format::JsonLines;
    }
    let is_for_people = args.output.view.is_some() || printer.terminal.out.is_terminal;
    match config.view {
        _ if !is_for_people => Format::Plain,
        View::List => Format::List,
        View::Table => Format::Table,
    }
}

fn request(args: &VerifyArgs, config: &ClientConfig, set_by: &SetBy) -> Result<VerifyRequest, Failure> {
    let how = &args.how;
    if let Some(date) = &how.as_of
        && Time::parse(date).is_none()
    {
        return Err(Failure::usage(format!("--as-of: `{date}` is no date")).hint("write it as 2026-11-20"));
    }
    let min_required = how.min_required.or(config.verify.min_required);
    let total_models = how.total_models.or(config.verify.total_models);
    if let (Some(needed), Some(asked)) = (min_required, total_models)
        && asked < needed
    {
        let (asks, needs) = (set_by.with_value(TOTAL_MODELS, asked), set_by.with_value(MIN_REQUIRED, needed));
        let failure = Failure::usage(format!("{asks} asks fewer models than {needs} needs"));
        let way_out = set_by.way_out(&[TOTAL_MODELS, MIN_REQUIRED]);
        return Err(way_out.into_iter().fold(failure, Failure::hint));
    }
    Ok(VerifyRequest {
        fact: String::new(),
        domain: how.domain.map(Into::into).or(config.verify.domain),
        min_required,
        total_models,
        as_of: how.as_of.clone(),
        explain: how.explain.then_some(true),
        context: how.context.as_deref().map(context).transpose()?,
    })
}

fn context(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|cause| {
        Failure::usage(format!("--context: cannot read {}: {cause}", path.display())).caused_by(cause)
    })
}

fn place(args: &VerifyArgs, config: &ClientConfig, session: &Session) -> Result<Place, Failure> {
    if args.place.sandbox || args.place.local {
        let server_args = ServerArgs { sandbox: args.place.sandbox, ..ServerArgs::default() };
        let server = load_server(&server_args, &session.env)?;
        return Ok(Place::Embedded { config: Box::new(server), is_sandbox: args.place.sandbox });
    }
    let Some(key) = config.key_for(Service::Verify) else {
        return Err(remote::no_key(config, Service::Verify, Some("mk verify --sandbox \"…\"")));
    };
    let client = remote::client(config, Some(key))?;
    Ok(Place::Server(Target {
        client,
        server: config.server.clone(),
        limit: config.timeout.unwrap_or(LIMIT),
    }))
}

impl Plan {
    fn request(&self, fact: String) -> VerifyRequest {
        VerifyRequest { fact, ..self.request.clone() }
    }

    /// What results for people are set on.
    fn page(&self) -> Page<'_> {
        Page { terminal: &self.printer.terminal, explain: self.request.explain == Some(true) }
    }

    /// Runs one verification, and again after each 429 that may be waited out.
    async fn verify(
        &self,
        target: &Target,
        fact: String,
        patience: &Patience,
        tell: &dyn Fn(&str),
        observe: &mut (dyn FnMut(Moment<'_>) -> Result<(), Failure> + '_),
    ) -> Result<Finished, Failure> {
        let request = self.request(fact);
        let mut waited = Waited::default();
        loop {
            patience.pause().await;
            match watch::watch(target, &request, observe).await {
                Ok((result, elapsed)) => return Ok(self.finished(result, elapsed)),
                Err(failure) if patience.allows(&failure, &mut waited, tell) => {}
                Err(mut failure) => {
                    failure.message = self.set_by.told(failure.message);
                    return Err(failure);
                }
            }
        }
    }

    fn finished(&self, result: VerifyResponse, elapsed: Duration) -> Finished {
        let exit = verdict::exit_code(&result, &self.fail_on);
        Finished { result, elapsed, exit }
    }
}

/// Whether an event tells that simulated models take part.
fn tells_sandbox(event: &Event) -> bool {
    matches!(event, Event::Starting(starting) if starting.mode.as_deref() == Some("sandbox"))
}
