//! Whether `mk serve` endures: `cargo bench --bench soak` puts half an hour of mixed load on the release binary and
//! then checks its records; `-- --help` shows the options.
//!
//! # The load
//!
//! Callers request verifications and completions, whole and streamed, of models of three dialects; some leave before
//! the response is complete, send invalid requests, or use keys that are unknown, over their limit, or revoked while
//! one of their streams is open. Others read the console, the metrics and the open pages. The provider is a fake on a
//! real socket (`provider/`), and fails as providers do: 429 with and without `Retry-After`, 500, connections reset or
//! closed before the head, silence, slow first tokens, streams that are cut, stall, contain a malformed chunk or lack
//! their end mark, responses in no format, responses without usage. At the end, streams are open when the server gets
//! its SIGTERM. Now and then it gets a SIGHUP and reloads its configuration, which changes nothing.
//!
//! # What has to hold
//!
//! Each request has a number, which is its `X-Request-Id` and part of its text. So callers, log, ledger and provider
//! are compared request by request, not by sums:
//!
//! - Every response has a documented status and format, and every stream that is read to its end has exactly one end.
//! - A request whose caller saw a status is in the log once, with that status. **Exception:** if the caller left before any
//!   status, the log has one line or none, as it may have left before the request was read. Malformed HTTP has none of the
//!   bench's numbers; it is found by the id of its response.
//! - The metrics count by route, method and status exactly what the log says.
//! - Each call that reached the provider is one row of the ledger, with the outcome and the tokens that follow from what
//!   the provider did (`provider/called.rs` says how). **Exceptions:** where the caller left or its key was revoked, the
//!   row may instead be `cancelled`, with a prompt and at most the completion of the whole response; and there may be
//!   additional rows without a call that are `cancelled` and without a completion: cancelled before they reached the
//!   provider. Where a stream broke, the server requests a response that resumes it, and cancels one that says less than
//!   the caller already has; that row may be `cancelled` too. A model that limits its rate is asked again, and given up
//!   once its vote could not change the outcome: if it is answering at that moment, the row is `cancelled`. That is rare
//!   (2 of 25,844 calls), and no more than one call in a thousand may be like that.
//! - The log's totals of each request are those of its rows; the metrics' counts of calls and tokens by model, and the
//!   costs, are those of the ledger; costs are prices times tokens; the sums that reports are computed from are the same.
//! - At rest no stream is open, no row is waiting or was lost, and descriptors and threads are what they were at the start,
//!   except for some that are kept on purpose.
//! - Memory is flat: its mean over the last third of the run is at most 5 % above that over the second.
//! - After SIGTERM open streams end properly and the server exits with 0 within its grace period. Both databases pass
//!   SQLite's integrity check, and the log has no line of level ERROR and no line that is not a log record.
//!
//! Random choices follow from `--seed`; the timing does not, so that the same seed gives a similar run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its report and its progress")]

mod accounts;
mod book;
mod callers;
mod dice;
#[path = "../support/process.rs"]
mod process;
mod provider;
mod report;
mod run;
#[path = "../support/serve.rs"]
mod serve;
mod site;
mod token;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// How often the server reloads its configuration.
pub(crate) const RELOADS: Duration = Duration::from_secs(20);

/// The length of a run with `cargo bench` and without `--minutes`.
const SOAK: Duration = Duration::from_mins(30);
/// Just long enough to check that everything works.
const REHEARSAL: Duration = Duration::from_secs(5);

/// Puts a long mixed load on `mk serve` and checks its records.
#[derive(Parser)]
#[command(name = "cargo bench --bench soak --")]
struct Options {
    /// How long the load lasts [default: 30]
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    minutes: Option<Duration>,

    /// Concurrent callers
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Exit code 1 when a condition does not hold or cannot be checked
    #[arg(long)]
    check: bool,

    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    soak(&options).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn soak(options: &Options) -> anyhow::Result<ExitCode> {
    let default = if options.bench { SOAK } else { REHEARSAL };
    let plan = run::Plan {
        span: options.minutes.unwrap_or(default),
        connections: options.connections,
        seed: options.seed,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let conditions = runtime.block_on(run::run(&plan))?;
    for condition in &conditions {
        for line in condition.lines() {
            println!("{line}");
        }
    }
    let holds = conditions.iter().all(report::Condition::is_ok);
    Ok(ExitCode::from(u8::from(options.check && !holds)))
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.05..=1440.0).contains(minutes));
    minutes
        .map(|minutes: f64| Duration::from_secs_f64(minutes * 60.0))
        .ok_or_else(|| "give minutes from 0.05 to 1440".to_owned())
}
