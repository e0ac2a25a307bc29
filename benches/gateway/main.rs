//! What `mk` costs as a gateway: `cargo bench --bench gateway` prints a table; `-- --help` shows what can be set.
//!
//! # Method
//!
//! A fake provider that answers at once, in a process of its own, is asked in three ways: directly, through nginx as a
//! plain reverse proxy, and through the release binary of `mk serve` as a user runs it, with key check, both windows of
//! the limits, ledger and log on. Callers are raw connections that are kept alive, on one thread of this process.
//! nginx says what relaying alone costs on the machine at hand, so `mk` is held against it, and only the columns `to
//! nginx` and `to direct` compare across machines. They do so roughly: nginx spends nearly all its time in the kernel, `mk`
//! half of it or more outside, so that the same build comes to 0.65 of nginx where the kernel is slow (nginx 18 µs a
//! request) and to 0.53 where it is quick (5 µs).
//!
//! Each caller has one answer before the clock starts. Every answer is checked: status, framing, text, for streams the
//! number of events and `[DONE]`. The first wrong one ends the bench.
//!
//! # Noise
//!
//! All share the machine, with each other and with whoever else is on it. So within a round each load is put on the
//! targets one right after the other, in an order that changes from round to round; comparisons are made between
//! figures of the same round, and the table shows their medians (so `to nginx` is not exactly the quotient of two
//! columns). nginx and `mk` are new in each round, because a process can be lucky with its memory for all its life.
//! Processor time is that of the process (of nginx all its workers) in hundredths of a second: under load good to a
//! percent or two, and much steadier than requests a second where neighbours are loud; with one connection that mostly
//! waits it is a rough figure.
//!
//! # How to read it
//!
//! - Requests a second are those of a saturated machine: provider, callers and proxy together use all cores. With more
//!   cores than the three need, they are those of the slowest of the three.
//! - One connection at 100 requests a second shows the way of a single request, most of it the waking of sleeping
//!   threads: what `mk` adds is the difference of the medians.
//! - Callers of the provider that takes 200 ms begin spread over 200 ms, as callers do.
//! - Cheap answers are held against nginx's `return 200` to the same request.
//! - The direct column has no processor time: nothing stands between.
//! - `MISSED` is a bound that did not hold; with `--check` that is exit code 1.
//!
//! # What was tried
//!
//! Changes for the sake of speed and what they did to this table, those that were not kept included; newest first.
//!
//! - An answer's head and body sent from one place instead of two, workers that do not wake before others (`SCHED_BATCH`):
//!   nothing. A process that takes more than its share of a core is interrupted for provider and callers with nearly each
//!   piece it sends; with a core for itself `mk` takes 21.5 µs a request instead of 23.5, nginx 11.3 as before. Neither kept.
//! - **SQLite's memory from the program's allocator**: nothing with few keys, much with many (`benches/keys`).
//! - **Health pages past the filters, and their look at the database answered as any look-up of a key is** (it read each
//!   time): 44,500 to 29,500 instructions, 0.55 to 0.80 of nginx.
//! - **The clock asked 21 times for a completion instead of 28** (20 ns each: key and limits share a reading, and so do
//!   admission, circuit breaker and account), **no turn behind the head of a provider's answer** (the one before the answer
//!   is written does its work), characters of ASCII not counted: 94,000 to 91,300 instructions, 0.63 to 0.65 of nginx at 32
//!   connections, in the same minutes.
//! - Code laid out by how often it runs (a symbol order by Callgrind): of 1,000 misses a request of the first level that
//!   translates code's addresses 900 stay, 1 to 2 % of the time. The program's text moved to huge pages: 200 stay, 8 to 10 %
//!   less time, 0.57 to 0.61 of nginx in a noisy hour; but it takes memory that is written and then run, which a hardened
//!   unit forbids, or a copy of the program in a file of memory that takes its place, which needs `unsafe` code; that the
//!   system does it by itself is left out of usual kernels. Cold blocks split off by the compiler, mimalloc of its second version, 4 to 32 events at a time from the
//!   system: nothing. None of them kept.
//! - Where a completion's cycles go (counters of the processor, 32 callers): 95,000 instructions in 46,000 to 52,000. Half
//!   of what could be done waits for instructions (1,000 lines of them come from the second cache, 350 of these from the
//!   third), a quarter for data: 480 lines come from behind the second cache, 31 of them from memory, where nginx needs 107
//!   and less than one. So it is how much is touched that counts, and how far away it lies.
//! - **A third turn, right before a whole answer is written**: 0.58 to 0.62 of nginx, most of it the kernel's time. More
//!   turns, behind the head of a request or its JSON, change nothing: the same code is not nearer for it.
//! - **Lines of the log written when there are 64 KB, rows of the ledger when there are 1,024**, not 20 ms and 4,096 later:
//!   31 lines a request from memory became 8. **Each worker counts for itself and lists what is under way for itself, one
//!   timer a connection for heads (hyper sets one a request), no timer for a free place, none told of turns**: with these
//!   0.61 to 0.64 of nginx at 32 connections and at 128, in the same minutes.
//! - Optimised for size: a quarter more cycles; level 2: the same as 3. A box around a call, so that the futures around it
//!   are half as large: nothing, as the compiler builds them where they stay. Attempts inserted sixteen at a time: 0.90 to
//!   0.75 µs a row, on a thread beside. jemalloc: 7 % fewer cycles at 32 connections, none at 128. None of them kept.
//! - A bare relay on hyper's server, with the call to the provider written by hand: 1.16 of nginx, 1.9 µs outside the
//!   kernel where `mk` takes 9. Everything beyond is what a gateway does.
//! - **Answers of providers read without hyper's client** (`providers::http1`): of 360 locked instructions of a completion
//!   80 went, of 44 of a streamed event nearly all, and with them half of an event's time outside the kernel (Callgrind
//!   with `--dump-instr=yes` beside a disassembly counts them; a profile of instructions shows nothing of it, one of
//!   cycles everything: 38 % of them stood right behind a locked instruction). By `perf/run.sh` streams from 0.84 to 0.87
//!   of nginx, 1.49 to 1.20 µs of CPU an event, first bytes from 2.1 to 1.4 times nginx's. What is left of the events'
//!   time is the kernel's, as more pieces come singly.
//! - **What waits for a connection's end polled only when woken**, **a request's head without a copy of its provider's
//!   headers, ledger and counts held by each worker for itself, names of JSON fields in registers**: with the line above
//!   9.4 to 8 µs outside the kernel for a whole answer, 0.51 to 0.56 of nginx at 32 connections and 0.53 to 0.63 at 128
//!   in the same minutes.
//! - **Unknown keys remembered as known ones are**: a 401 from 8 to 5.8 µs, 0.52 to 0.78 of nginx.
//! - Passing one turn or three before the next piece of a stream is read: no more events. Waiting a millisecond for more
//!   where pieces come within 0.3 ms: 1.09 µs an event, but fewer events, as every stream waits. Not kept.
//! - **A provider's free permit to a task of the same worker** (`semaphore`): with the default of 64 calls at once, 128
//!   callers woke the other worker for every other request. 72,000 to 78,000 requests a second became 89,000 to 95,000;
//!   without a limit it is 96,000.
//! - A build guided by a profile of this very load: 12 % less time outside the kernel, 7 to 13 % more requests. Not kept,
//!   as no plain `cargo build` makes it.
//! - Passing the second turn right before an answer is written instead of where it has come: the callers' thread wakes
//!   for four answers of ten instead of five, and no more requests a second. Not kept.
//! - Where the machine's time goes beside nginx's (32 callers, quick kernel, provider and callers included): 12.2 µs a
//!   request there, 22.3 here. 7.4 are our own work outside the kernel; 1.4 in it, 1.8 at the provider's and the callers'
//!   threads and 1.3 of idle cores come of their waking more often, as answers come farther apart. Those fall with the
//!   first.
//! - **Request and answer of a completion read as JSON in one go** (`providers::json`), where `serde_json` reads what is
//!   kept as it stands anew at each level of nesting: 131,000 to 119,000 instructions by Callgrind. Half of it came only
//!   with reading nothing twice; leaping from quote to quote through what was read before gave 2,000.
//! - **The hot route past the filters**, what is known of a completion handed on by name and not in extensions: 119,000 to
//!   113,000. **What a call needs again kept** (facts of a model, the path of a format, the name of a route): to 110,000.
//!   With the line above some 8 % of the time outside the kernel.
//! - No log at all: 0.6 µs a request, and no more requests a second. One worker on one core instead of two on two: the
//!   same CPU a request, so that what two cores share costs nothing worth looking for.
//! - A bare relay on the same hyper, tokio and allocator, one single-threaded runtime a core, bodies read whole, no look at
//!   anything: 28,600 instructions a request, 5.9 µs of CPU, 1.0 of nginx, where `mk` took 134,000, 14.6 µs, 0.53, with the
//!   same two sends and two reads. So the HTTP stack is not what takes the time: 0.75 of nginx needs routes, record, log,
//!   JSON, account and booking together in some 40,000 instructions. A health page, which has only the first three,
//!   takes 45,000.
//! - **Turns of a connection counted by an atomic and a `Notify`** (a `watch` channel takes a lock and looks for waiters in
//!   eight places, four times a request), **a filter of the log by targets alone** (one that knows spans is asked at each
//!   step into one and out of it), **texts of the ledger that the row before had too bound once**: 3 to 5 % of the time
//!   outside the kernel.
//! - **Rows of the ledger written as soon as there are 4096, requests of a millisecond kept as one entry of the limit**:
//!   49 to 38 MB at 128 connections where 90,000 requests a second come, and 48 instead of 67 MB after a minute of them.
//! - mimalloc that gives pages back at once (`MIMALLOC_PURGE_DELAY=0`): 30 instead of 38 MB at 128 connections. Can only be
//!   set from outside; not looked at further.
//! - **mimalloc, without huge pages**: 4 to 10 % less CPU a request at 32 connections, 3 to 4 % at 128, by two servers
//!   that were loaded second by second in turn, which shows what runs behind each other did not; 143,000 to 132,000
//!   instructions. With huge pages a small server takes 48 MB instead of 26. jemalloc gives as much, but needs `make` to
//!   be built.
//! - **Requests to a provider in a box, those under way in a slab, fields of spans into memory that is there**: 42 to 36 KB
//!   that are copied a request, its future 5.2 to 3.6 KB; 2 to 4 %.
//! - **Looking at a provider's connection when it is used again** and not also when it is kept: 8 KB less allocated a
//!   request, no difference in CPU.
//! - Walking through JSON that was read once by own code that leaps from quote to quote, instead of parsing messages,
//!   choices and usage once more: 2,000 instructions less, no difference in CPU. Not kept.
//! - Passing one turn instead of two, looking for events after 16 or 200 polls instead of 61: no difference beyond 2 %
//!   either way. Passing none: 6 % more CPU at 32 connections, as before.
//! - **A streamed chunk that is like the last one by its text alone**, and line ends found many bytes at once: 30,700 to
//!   17,600 instructions an event that comes alone, 5.1 to 4.6 µs of CPU an event here, of which 3.2 are the kernel's.
//! - Passing the turn before a piece of a stream is read, so that more of them come and go together: 0.7 µs an event more,
//!   as they do not. Not kept.
//! - **Looking at the files of the database once in a millisecond**, and waiting as long behind every write: two system
//!   calls, 2 µs a request.
//! - **Polling a provider's connection only when it was woken**: two of four polls an event of a stream.
//! - **Texts that many hold shared** (identifiers, names of models), rate headers written into one text, a body that came
//!   with its head read without a timer: 172,500 to 142,500 instructions a request by Callgrind, with the next two.
//! - **Smaller futures** (12 to 5 KB: what is rare is boxed) and polls by wakers that wake nobody: six to four polls of a
//!   request's task, of which two are turns that are passed. With the line above 46 to 42 µs a request.
//! - **One `recv` for each read** of a caller's socket, not a second one that finds nothing: about 1 µs.
//! - mimalloc and jemalloc, again: no difference beyond the noise in CPU, 2 to 5 MB more at 128 connections. Not kept.
//! - **Routes that make room for their work once they are asked**, and not for every request that passes by them: health
//!   pages from 0.49 to 0.68 of nginx.
//! - **No index of attempts by request**, which nobody asked: booking one from 6.9 to 2.9 µs, on a thread beside.
//! - **Names of headers as constants, a request's headers handed on instead of copied, each JSON text looked at once, a
//!   line of the log written as one text**: 191,000 to 161,000 instructions a request by Callgrind, 50 to 46 µs, of which
//!   20 are the kernel's. `benches/instructions` counts since then.
//! - **Lines of the log written where they go**, not built as values first: about 2 µs a request.
//! - **Passing the turn** before a request is sent and after its answer has come: 60 to 51 µs a request at 32
//!   connections, nearly all of it system time. Waiting for the next poll of events instead is no better.
//! - **Driving a connection to a provider by whoever waits for it** instead of by a task of its own: streams from 0.39
//!   to 0.86 of nginx, as what one read brings goes out in one write. Whole answers got slower by it until turns were
//!   passed: their sends no longer came in rows.
//! - **Log lines written by a thread of their own**, some at a time: a system call, 2 µs a request.
//! - **A usage object read where it stands**, plain texts written without escaping, identifiers without a system call:
//!   together about 4 µs.
//! - **Rows of keys kept until the write-ahead log changes**: 4 µs.
//! - Looking ten times a second, not at each request, whether the database is still in its place: 2 µs less. Not kept: a
//!   database that is gone must never let anybody pass.
//! - **One single-threaded runtime per core, and hyper's own pool** in the place of reqwest's: 106 to 61 µs.
//! - **The hot route first in the chain of routes**, not innermost: eleven boxed futures less, about 1 µs.
//! - mimalloc and jemalloc: 2 µs less, 6 MB more at 128 connections. Not kept.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints its table, and tells how far it is"
)]

mod bounds;
#[path = "../support/caller.rs"]
mod caller;
#[path = "../support/completions.rs"]
mod completions;
mod figures;
#[path = "../support/interrupt.rs"]
mod interrupt;
#[path = "../support/limits.rs"]
mod limits;
mod load;
mod mk;
mod nginx;
mod plan;
#[path = "../support/process.rs"]
mod process;
mod provider;
#[path = "../support/requests.rs"]
mod requests;
#[path = "../support/serve.rs"]
mod serve;
mod stand;
mod table;
#[path = "../support/wire.rs"]
mod wire;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};

use figures::Target;
use interrupt::or_interrupted;
use plan::Scenario;
use provider::Provider;
use stand::Stand;
use table::{Rounds, Verdict};

/// Rounds, and how long a load is put on each target.
const MEASUREMENT: (u32, Duration) = (5, Duration::from_secs(3));
/// Long enough to tell that everything works.
const REHEARSAL: (u32, Duration) = (1, Duration::from_millis(300));
/// Between two loads the machine rests for this part of a load: connections close, a ledger is written.
const SETTLE: u32 = 6;
const NO_NGINX: &str = "nginx is not installed, so the bounds that compare with it will not be checked. To get it on \
    Debian or Ubuntu: apt-get install nginx-light";

/// Measures `mk serve` beside nginx and a direct connection, and prints a table.
#[derive(Parser)]
#[command(name = "cargo bench --bench gateway --")]
struct Options {
    /// Rounds; the table shows their medians [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// How long each load is put on each target; `paced` takes twice as long [default: 3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// The scenarios to run; several with commas between [default: all]
    #[arg(long, value_name = "SCENARIO", value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,

    /// Exit code 1 when a bound is missed or cannot be checked
    #[arg(long)]
    check: bool,

    /// Cargo says this when it measures; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let ended = if std::env::args().nth(1).as_deref() == Some(provider::ROLE) {
        provider::run().map(|()| ExitCode::SUCCESS)
    } else {
        bench(&Options::parse())
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn bench(options: &Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(or_interrupted(run(options)))
}

async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let is_rehearsal = !options.bench || cfg!(debug_assertions);
    let (rounds, span) = if is_rehearsal { REHEARSAL } else { MEASUREMENT };
    let (rounds, span) = (options.rounds.unwrap_or(rounds), options.seconds.unwrap_or(span));
    let scenarios = if options.only.is_empty() { Scenario::value_variants() } else { &options.only };

    let nginx = nginx::find();
    if nginx.is_none() {
        eprintln!("{NO_NGINX}");
    }
    let measured = measure(scenarios, rounds, span, nginx.as_deref()).await?;
    let cores = std::thread::available_parallelism()?;
    println!("cores: {cores}; rounds: {rounds}, of which the medians; each load: {} s", span.as_secs_f64());
    if is_rehearsal {
        println!("This is a rehearsal: its figures mean nothing.");
    }
    let verdicts = print(scenarios, &measured);
    let holds = verdicts.iter().all(|verdict| *verdict == Verdict::Ok);
    Ok(ExitCode::from(u8::from(options.check && !holds)))
}

/// All samples, by scenario.
async fn measure(
    scenarios: &[Scenario],
    rounds: u32,
    span: Duration,
    nginx: Option<&Path>,
) -> anyhow::Result<Vec<Rounds>> {
    let provider = Provider::start()?;
    let mut measured = vec![Rounds::new(); scenarios.len()];
    for round in 0..rounds {
        let stand = Stand::start(provider.address, nginx).await?;
        for (scenario, samples) in scenarios.iter().zip(&mut measured) {
            eprintln!("round {} of {rounds}: {}", round + 1, scenario.title());
            let mut order = Target::ALL;
            order.rotate_left(round as usize % Target::ALL.len());
            let mut of_round = [None; Target::ALL.len()];
            for target in order {
                let sample = stand.measure(*scenario, target, span * scenario.share()).await;
                of_round[target as usize] =
                    sample.with_context(|| format!("{}: {}", target.name(), scenario.title()))?;
                tokio::time::sleep(span / SETTLE).await;
            }
            samples.push(of_round);
        }
    }
    Ok(measured)
}

/// Prints the table; what became of its bounds.
fn print(scenarios: &[Scenario], measured: &[Rounds]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    println!("\n{}", table::head());
    for (scenario, rounds) in scenarios.iter().zip(measured) {
        println!("{}", scenario.title());
        for row in bounds::rows(*scenario) {
            let (line, verdict) = row.line(rounds);
            println!("{line}");
            verdicts.extend(verdict);
        }
    }
    verdicts
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds from 0.05 to 600".to_owned())
}
