//! How many instructions `mk serve` takes for what it does most, held to budgets:
//! `cargo bench --profile counted --bench instructions -- --check`.
//!
//! Times tell little on a machine that is shared, and CI's are. Instructions are nearly the same each time, so that
//! a tenth more of them for a request is seen in the very change that brings it.
//!
//! # Method
//!
//! The server runs in Valgrind's Callgrind, which counts what it executes outside the kernel: all of its threads, those
//! that write the log and the ledger too. Requests go over a few kept connections, one at a time, so that how many
//! are read or woken at once is not a matter of chance; for the same reason an event of a stream is only sent by the
//! provider when its caller has the one before. Other figures than under load, where work is done in batches,
//! are the consequence, and that system calls count as nothing: `cargo bench --bench gateway` measures those.
//! Counting is switched on when connections are open, caches are warm, and the database of keys has been left alone for
//! some seconds (`site.rs` says why). Every answer is checked; the first wrong one ends the bench.
//!
//! A frame of a verification is what a verification that tells of each model takes more than one that does not, divided
//! by the frames it has more: those of single models, and what claims that are done have more to say. A difference of
//! two large counts, it varies by a few percent; the others by a fraction of one.
//!
//! # Budgets
//!
//! They stand in `plan.rs`, as counted when they were set. `--check` fails when a figure is more than a tenth above its
//! budget, or more than a tenth below, as a budget that nobody lowers guards nothing. They belong to the profile
//! `counted`, which is the release profile without what makes that slow to build (one unit, and link-time optimisation
//! over all crates), and to x86-64; so real releases take somewhat less. The margin has to cover, beside small changes,
//! what differs between machines: libraries choose by the processor's features how they copy and hash (Valgrind hides the
//! newest of them), the system's C library is another, and a machine so slow that the twice-a-second writing of the
//! ledger happens for fewer requests at a time.
//!
//! # Where they go
//!
//! The counts by function are left in `target/tmp/instructions`:
//!
//! ```text
//! callgrind_annotate target/tmp/instructions/chat.out | less
//! callgrind_annotate --inclusive=yes --tree=both target/tmp/instructions/chat.out | less
//! ```
//!
//! Source lines too, when it is built with `CARGO_PROFILE_COUNTED_DEBUG=line-tables-only`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints its table, and tells how far it is"
)]

#[path = "../support/caller.rs"]
mod caller;
#[path = "../support/completions.rs"]
mod completions;
#[path = "../support/limits.rs"]
mod limits;
mod plan;
#[expect(dead_code, reason = "what it tells of time and memory is not asked for here")]
#[path = "../support/process.rs"]
mod process;
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

use plan::{Ask, FIGURES};
use report::{Line, Verdict};
use run::{Bench, Count};

/// The profile that budgets are for.
const PROFILE: &str = "counted";
/// Where counts by function are left.
const COUNTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/instructions");
/// Answers of each kind in a rehearsal.
const REHEARSAL: u32 = 4;

/// Counts the instructions of `mk serve` for each thing it does most, and prints a table.
#[derive(Parser)]
#[command(name = "cargo bench --profile counted --bench instructions --")]
struct Options {
    /// Exit code 1 when a figure is not within a tenth of its budget, or cannot be counted
    #[arg(long)]
    check: bool,

    /// Cargo says this when it measures; without it, as in `cargo test --benches`, this is a rehearsal
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
        eprintln!(
            "budgets are for another build; on Linux on x86-64, run: \
             cargo bench --profile {PROFILE} --bench instructions -- --check"
        );
        return Ok(ExitCode::FAILURE);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counts = runtime.block_on(all(is_rehearsal))?;

    println!("{}", report::head());
    let mut holds = true;
    for figure in &FIGURES {
        let value = report::value(figure, &counts)?;
        let verdict = has_budgets.then(|| Verdict::of(value, figure.budget));
        println!("{}", Line { figure, value, verdict });
        holds &= verdict == Some(Verdict::Within);
    }
    if is_rehearsal {
        println!("This is a rehearsal: its figures mean nothing.");
    } else if !has_budgets {
        println!("Budgets are for the profile `{PROFILE}` on x86-64; this is another build.");
    }
    println!("Counts by function: {COUNTS}");
    Ok(ExitCode::from(u8::from(options.check && !holds)))
}

/// Counts of everything that a figure is made from.
async fn all(is_rehearsal: bool) -> anyhow::Result<Vec<(Ask, Count)>> {
    let mut bench = Bench::start(Path::new(COUNTS)).await?;
    let mut counts = Vec::new();
    for ask in Ask::ALL {
        eprintln!("counting: {}", ask.name());
        let times = if is_rehearsal { REHEARSAL } else { ask.times() };
        counts.push((ask, bench.count(ask, times).await?));
    }
    Ok(counts)
}

/// Whether this build is what budgets are for. Cargo puts what it builds into a folder with the profile's name.
fn has_budgets() -> bool {
    let folder = Path::new(serve::MK).parent();
    cfg!(all(target_os = "linux", target_arch = "x86_64")) && folder.is_some_and(|it| it.ends_with(PROFILE))
}
