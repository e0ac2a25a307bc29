//! How many instructions `mk serve` executes for its most frequent work, compared with budgets:
//! `cargo instructions -- --check`.
//!
//! Times say little on a shared machine, and CI machines are shared. Instruction counts are nearly the same each time,
//! so that a tenth more of them for a request is noticed in the very change that causes it.
//!
//! # Method
//!
//! The server runs in Valgrind's Callgrind, which counts what it executes outside the kernel, in all of its threads,
//! including those that write the log and the ledger. Requests are sent over a few keep-alive connections, one at a
//! time, so that it is not a matter of chance how many are read or woken at once; for the same reason the provider
//! sends an event of a stream only once the caller has received the previous one. The consequence is that figures
//! differ from those under load, where work is done in batches, and that system calls count as nothing: `cargo bench
//! --bench gateway` measures those. Counting is switched on once connections are open, caches are warm, and nothing has
//! been written to the database of keys for some seconds (`site.rs` says why). Every response is checked; the first
//! wrong one ends the bench.
//!
//! The figure for a frame of a verification is the difference between a verification that reports the progress of each
//! model and one that does not, divided by the additional frames: those of single models, and those of finished claims,
//! which contain more. As a difference of two large counts it varies by a few percent; the other figures vary by a
//! fraction of one.
//!
//! # Budgets
//!
//! They are in `plan.rs`, as counted when they were set. `--check` fails when a figure is more than a tenth above its
//! budget, or more than a tenth below, as a budget that nobody lowers guards nothing. They are for x86-64 and for a build
//! of its own (`profile.toml`), which is close to a release and built much sooner; so real releases execute somewhat less.
//! Besides small changes, the margin has to cover differences between machines: libraries choose by the processor's
//! features how they copy and hash (Valgrind hides the newest of them), the system's C library differs, and on a very slow
//! machine the ledger, which is written twice a second, is written for fewer requests at a time.
//!
//! # Where the instructions are spent
//!
//! The counts by function are left in `target/counted/tmp/instructions`:
//!
//! ```text
//! callgrind_annotate target/counted/tmp/instructions/chat.out | less
//! callgrind_annotate --inclusive=yes --tree=both target/counted/tmp/instructions/chat.out | less
//! ```
//!
//! Source lines are shown as well with `debug = "line-tables-only"` in `profile.toml`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its table and its progress")]

#[path = "../support/caller.rs"]
mod caller;
#[path = "../support/completions.rs"]
mod completions;
#[path = "../support/limits.rs"]
mod limits;
mod plan;
#[expect(dead_code, reason = "time and memory are not measured here")]
#[path = "../support/process.rs"]
mod process;
#[path = "../support/protocols.rs"]
mod protocols;
mod report;
#[path = "../support/requests.rs"]
mod requests;
mod run;
#[path = "../support/serve.rs"]
mod serve;
mod site;
mod valgrind;
#[path = "../support/wire.rs"]
mod wire;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use plan::Ask;
use report::{Line, Verdict};
use run::{Bench, Count};

/// The folder of the build that the budgets are for (`.cargo/config.toml`).
const COUNTED: &str = "counted/debug";
/// Where counts by function are left.
const COUNTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/instructions");
/// Requests of each kind in a rehearsal.
const REHEARSAL: u32 = 4;

/// Counts the instructions of `mk serve` for its most frequent work, and prints a table.
#[derive(Parser)]
#[command(name = "cargo instructions --")]
struct Options {
    /// Exit code 1 when a figure is not within a tenth of its budget, or cannot be counted
    #[arg(long)]
    check: bool,

    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    count(&Options::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn count(options: &Options) -> anyhow::Result<ExitCode> {
    if !valgrind::is_installed() {
        eprintln!("{}", valgrind::MISSING);
        return Ok(ExitCode::from(u8::from(options.check)));
    }
    let is_rehearsal = !options.bench;
    let has_budgets = !is_rehearsal && has_budgets();
    if options.check && !has_budgets {
        eprintln!("budgets are for another build; on Linux on x86-64, run: cargo instructions -- --check");
        return Ok(ExitCode::FAILURE);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counts = runtime.block_on(all(is_rehearsal))?;

    println!("{}", report::head());
    let mut holds = true;
    for figure in &plan::figures() {
        let value = report::value(figure, &counts)?;
        let verdict = if has_budgets { Some(Verdict::of(value, figure.bound, &counts)?) } else { None };
        println!("{}", Line { figure, value, verdict });
        holds &= verdict.is_some_and(|(_, verdict)| verdict == Verdict::Within);
    }
    if is_rehearsal {
        println!("This is a rehearsal: its figures mean nothing.");
    } else if !has_budgets {
        println!("Budgets are for another build; on Linux on x86-64, run: cargo instructions");
    }
    println!("Counts by function: {COUNTS}");
    Ok(ExitCode::from(u8::from(options.check && !holds)))
}

/// The counts from which all figures are computed.
async fn all(is_rehearsal: bool) -> anyhow::Result<Vec<(Ask, Count)>> {
    let mut bench = Bench::start(Path::new(COUNTS)).await?;
    let mut counts = Vec::new();
    for ask in Ask::all() {
        eprintln!("counting: {}", ask.name());
        let times = if is_rehearsal { REHEARSAL } else { ask.times() };
        counts.push((ask, bench.count(ask, times).await?));
    }
    Ok(counts)
}

/// Whether the budgets are for this build.
fn has_budgets() -> bool {
    let folder = Path::new(serve::MK).parent();
    cfg!(all(target_os = "linux", target_arch = "x86_64")) && folder.is_some_and(|it| it.ends_with(COUNTED))
}
