//! Whether `mk serve` holds out: `cargo bench --bench soak` puts half an hour of mixed load on the release binary and
//! then does the accounts; `-- --help` shows what can be set.
//!
//! # The load
//!
//! Callers ask for verifications and completions, whole and streamed, of models of three dialects; some leave before
//! the answer is there, send what is wrong, or come with keys that are unknown, used too much, or revoked while a
//! stream of theirs runs. Others read the console, the metrics and the open pages. The provider is a fake on a real
//! socket (`provider/`), and fails as providers do: 429 with and without `Retry-After`, 500, connections reset or ended
//! before the head, silence, slow first tokens, streams that are cut, stall, hold a malformed chunk or have no end
//! mark, answers in no format, answers that do not tell what they took. At the end, streams are under way when the
//! server gets its SIGTERM. Now and then it gets a SIGHUP and reads its configuration
//! anew, which changes nothing.
//!
//! # What has to hold
//!
//! Each request has a number, which is its `X-Request-Id` and stands in what is asked. So callers, log, ledger and
//! provider are held against each other request by request, not by sums:
//!
//! - Every answer is of a documented status and shape, and every stream that is read to its end has exactly one.
//! - A request of which its caller saw a status is in the log once, with that status. **Bound:** of a caller who left
//!   before any status, the log has one line or none, as it may have left before the request was read. What is no
//!   HTTP has no number of ours; it is found by the id that its answer has.
//! - The metrics count by route, method and status exactly what the log says.
//! - Each call that the provider had is one row of the ledger, with the outcome and the tokens that follow from what
//!   the provider did (`provider/called.rs` says how). **Bounds:** where the caller left or its key was revoked, the
//!   row may instead be `cancelled`, with a prompt and at most the completion of the whole answer; and rows without a
//!   call are allowed there that are `cancelled` and without a completion: given up before the provider had them.
//!   Where a stream broke in its middle, the server looks for an answer that goes on from there, and stops one that says
//!   less than the caller has; that row may be `cancelled` too.
//! - The log's sums of each request are those of its rows; the metrics' counts of calls and tokens by model, and the
//!   costs, are those of the ledger; costs are prices times tokens; the sums that reports are made from are the same.
//! - At rest no stream is open, no row waits or was lost, and descriptors and threads are what they were at the start,
//!   but for some that are kept on purpose.
//! - Memory is flat: its mean over the last third of the run is at most 5 % above that over the second.
//! - After SIGTERM streams under way come to their ends and the server exits with 0 within its grace. Both databases
//!   pass SQLite's integrity check, and the log has no line of the level ERROR and nothing that is no line of a log.
//!
//! Chance follows from `--seed`; when things happen does not, so that the same seed gives a similar run.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints its report, and tells how far it is"
)]

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

/// How often the server reads its configuration anew.
pub(crate) const RELOADS: Duration = Duration::from_secs(20);

/// Without `--minutes`, when cargo measures.
const SOAK: Duration = Duration::from_mins(30);
/// Long enough to tell that everything works.
const REHEARSAL: Duration = Duration::from_secs(5);

/// Puts a long mixed load on `mk serve` and does the accounts.
#[derive(Parser)]
#[command(name = "cargo bench --bench soak --")]
struct Options {
    /// How long the load lasts [default: 30]
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    minutes: Option<Duration>,

    /// Callers at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// What chance follows from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Exit code 1 when a condition does not hold or cannot be checked
    #[arg(long)]
    check: bool,

    /// Cargo says this when it measures; without it, as in `cargo test --benches`, this is a rehearsal
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
    let usual = if options.bench { SOAK } else { REHEARSAL };
    let plan = run::Plan {
        span: options.minutes.unwrap_or(usual),
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
