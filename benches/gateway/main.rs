//! What `mk` costs as a gateway: `cargo bench --bench gateway` prints a table; `-- --help` shows the options.
//!
//! # Method
//!
//! A fake provider that answers at once, in its own process, is called in three ways: directly, through nginx as a
//! plain reverse proxy, and through the release binary of `mk serve` as a user runs it, with key check, both limit
//! windows, ledger and log enabled. Callers are raw keep-alive connections on one thread of this process. nginx shows
//! what relaying alone costs on the machine at hand, so `mk` is compared with it, and only the columns `to nginx` and
//! `to direct` are comparable across machines. Even they are so only roughly: nginx spends nearly all its time in the
//! kernel, `mk` up to half of it or more outside, so that one build reached 0.65 of nginx where the kernel was slow
//! (nginx 18 µs per request) and 0.53 where it was fast (5 µs), and a later one 0.80 on a third machine (14 µs).
//!
//! Each caller gets one response before the clock starts. Every response is checked: status, framing, text, and for
//! streams the number of events and `[DONE]`. The first wrong one ends the bench.
//!
//! # Noise
//!
//! All processes share the machine, with each other and with whatever else runs on it. So within a round each load is
//! put on the targets one right after another, in an order that changes from round to round; comparisons are made
//! between figures of the same round, and the table shows their medians (so `to nginx` is not exactly the quotient of
//! two columns). nginx and `mk` are restarted in each round, because a process can be lucky with its memory for its
//! whole lifetime. Processor time is that of the process (for nginx of all its workers) in hundredths of a second:
//! under load accurate to a percent or two, and much steadier than requests per second where other load on the machine
//! is heavy; with one connection that mostly waits it is a rough figure.
//!
//! # How to read it
//!
//! - Requests per second are those of a saturated machine: provider, callers and proxy together use all cores. With
//!   more cores than the three need, they are those of the slowest of the three.
//! - One connection at 100 requests per second shows the latency of a single request, most of it the waking of sleeping
//!   threads: what `mk` adds is the difference of the medians.
//! - Callers of the provider that takes 200 ms start spread over 200 ms, as real callers would.
//! - The column `chat` is `mk` as well, asked for a chat completion of the same shape as the request in another protocol.
//! - Cheap responses are compared with nginx's `return 200` to the same request.
//! - The direct column has no processor time: there is no process in between.
//! - `MISSED` is a bound that does not hold; with `--check` the exit code is then 1.
//!
//! # What was tried
//!
//! Changes made for speed and what they did to this table, including those that were not kept; newest first.
//!
//! - Taken out again on 28 November 2026, as each gave less than 2 % of a completion: attempts inserted sixteen at a time
//!   (1.2 %), identifiers without a system call (0.5 µs), and, without an effect
//!   that could be told from noise, targets of requests joined once, slashes of identifiers found byte by byte, the buffer
//!   of a log line kept by its thread, and flags that spare an uncontended lock (of circuit breakers, of parked streams).
//! - **Head and body of a response, and of a request to a provider, written in one piece** (`gather`), as a vectored
//!   write goes through the kernel's file layer: 0.15 to 0.2 µs each. **The id of the request in a place that the log
//!   looks at** (`log_scope`) instead of a span, entered and left four times. **Attempts inserted sixteen at a time**:
//!   a row takes a third fewer instructions. **`foldhash` in maps of valid keys and of a bounded number of names**:
//!   1,700 to 250 instructions. Together 93,200 to 86,500 instructions, 5 to 7 % less CPU,
//!   4 to 6 % more requests, by servers that were loaded alternately.
//! - JSON strings scanned 16 bytes at a time, by a loop that the compiler vectorises: 45 instead of 66 instructions for
//!   a name, but twice as many per byte of a long text, and ten times as many after a slight change of the source. The
//!   instructions for it cannot be called without `unsafe`. Not kept.
//! - Where the cycles of a completion go on the newest processors (Zen 5): two per instruction or more, so instructions
//!   count again. One worker instead of two: 0.3 to 0.7 of 10 µs less outside the kernel, so what they share costs no
//!   more than that. Three or four workers on two cores: 0.97 and 0.85 of the requests of two.
//! - The program copied to a file in pieces of 128 KB, for larger pages in the system's cache: no effect.
//! - **The allocator in place of the C library's alone**, not named to Rust as its own as well, for which it was asked
//!   for aligned memory each time: 102,900 to 101,300 instructions.
//! - A build optimised with a profile of this very load, again: no more requests where the kernel is slow.
//! - Sending the head and the body of a response from one place instead of two; workers that do not preempt others when
//!   they wake (`SCHED_BATCH`): no effect. A process that uses more than its share of a core is interrupted for
//!   provider and callers at nearly every write; with a core to itself `mk` takes 21.5 µs per request instead of 23.5,
//!   nginx 11.3 as before. Neither kept.
//! - **SQLite's memory from the program's allocator**: no effect with few keys, a large one with many (`benches/keys`).
//! - **Health pages bypass the filters, and their check of the database is answered like any key lookup** (it read the
//!   database each time): 44,500 to 29,500 instructions, 0.55 to 0.80 of nginx.
//! - **The clock read 21 times per completion instead of 28** (20 ns each: key and limits share a reading, and so do
//!   admission, circuit breaker and account), **no yield after the head of a provider's response** (the one before the
//!   response is written does its work), characters of ASCII text not counted: 94,000 to 91,300 instructions, 0.63 to
//!   0.65 of nginx at 32 connections, in the same minutes.
//! - Code laid out by how often it runs (a symbol order from Callgrind): of 1,000 misses per request in the first-level
//!   instruction TLB 900 remain, 1 to 2 % of the time. The program's text moved to huge pages: 200 remain, 8 to 10 %
//!   less time, 0.57 to 0.61 of nginx in a noisy hour; but this takes memory that is written and then executed, which a
//!   hardened unit forbids, or a copy of the program in a memory file that replaces it, which needs `unsafe` code;
//!   usual kernels are built without the option to do it by themselves. Cold blocks split off by the compiler, version
//!   2 of mimalloc, 4 to 32 events at a time from the system: no effect. None of them kept; version 2 is since, for its
//!   memory (`benches/README.md`).
//! - Where a completion's cycles go (processor counters, 32 callers): 95,000 instructions in 46,000 to 52,000. Half of
//!   the capacity is lost waiting for instructions (1,000 cache lines of them come from the second-level cache, 350 of
//!   these from the third), a quarter waiting for data: 480 lines come from beyond the second-level cache, 31 of them
//!   from memory, where nginx needs 107 and less than one. So what counts is how much memory is touched, and how far
//!   away it is.
//! - **A third yield, right before a whole response is written**: 0.58 to 0.62 of nginx, most of it kernel time. More
//!   yields, after the head of a request or its JSON, change nothing: the same code is no nearer for it.
//! - **Log lines written once there are 64 KB, ledger rows once there are 1,024**, not 20 ms and 4,096 later: 31 cache
//!   lines per request from memory became 8. **Each worker keeps its own counters and its own list of open requests,
//!   one header timer per connection (hyper sets one per request), no timer for a free permit, no notification of
//!   turns**: with these 0.61 to 0.64 of nginx at 32 connections and at 128, in the same minutes.
//! - Optimised for size: a quarter more cycles; level 2: the same as 3. A box around a call, so that the futures around
//!   it are half as large: no effect, as the compiler builds them where they stay. Attempts inserted sixteen at a time:
//!   0.90 to 0.75 µs per row, on another thread. jemalloc: 7 % fewer cycles at 32 connections, none at 128. None of
//!   them kept.
//! - A bare relay on hyper's server, with the call to the provider written by hand: 1.16 of nginx, 1.9 µs outside the
//!   kernel where `mk` takes 9. Everything beyond that is what a gateway does.
//! - **Provider responses read without hyper's client** (`providers::http1`): of 360 locked instructions per completion
//!   80 disappeared, of 44 per streamed event nearly all, and with them half of an event's time outside the kernel
//!   (Callgrind with `--dump-instr=yes` next to a disassembly counts them; a profile of instructions does not show them
//!   at all, one of cycles clearly does: 38 % of the cycles were right after a locked instruction). By `perf/run.sh`
//!   streams from 0.84 to 0.87 of nginx, 1.49 to 1.20 µs of CPU per event, first bytes from 2.1 to 1.4 times nginx's.
//!   What remains of the events' time is the kernel's, as more chunks arrive singly.
//! - **Waiting for a connection's end polled only when woken**, **a request's head without a copy of its provider's
//!   headers, ledger and counters kept by each worker, names of JSON fields in registers**: with the item above 9.4 to
//!   8 µs outside the kernel for a whole response, 0.51 to 0.56 of nginx at 32 connections and 0.53 to 0.63 at 128 in
//!   the same minutes.
//! - **Unknown keys cached like known ones**: a 401 from 8 to 5.8 µs, 0.52 to 0.78 of nginx.
//! - Yielding once or three times before the next chunk of a stream is read: no more events. Waiting a millisecond for
//!   more where chunks arrive within 0.3 ms: 1.09 µs per event, but fewer events, as every stream waits. Not kept.
//! - **A provider's free permit given to a task of the same worker** (`semaphore`): with the default of 64 concurrent
//!   calls, 128 callers woke the other worker for every other request. 72,000 to 78,000 requests per second became
//!   89,000 to 95,000; without a limit it is 96,000.
//! - A build optimised with a profile of this very load: 12 % less time outside the kernel, 7 to 13 % more requests.
//!   Not kept, as a plain `cargo build` does not make it.
//! - The second yield right before a response is written instead of where it arrives: the callers' thread wakes for
//!   four responses out of ten instead of five, and no more requests per second. Not kept.
//! - Where the machine's time goes compared with nginx's (32 callers, fast kernel, provider and callers included): 12.2
//!   µs per request there, 22.3 here. 7.4 are `mk`'s own work outside the kernel; 1.4 inside it, 1.8 in the threads of
//!   provider and callers and 1.3 of idle cores result from their waking more often, as responses are farther apart.
//!   These fall along with the first.
//! - **Request and response of a completion parsed as JSON in one pass** (`providers::json`), where `serde_json` reads
//!   what is kept verbatim again at each level of nesting: 131,000 to 119,000 instructions by Callgrind. Half of that
//!   came only once nothing was read twice; skipping from quote to quote through what was read before gave 2,000.
//! - **The hot route bypasses the filters**, what is known of a completion is passed on by name and not in extensions:
//!   119,000 to 113,000. **What a call needs repeatedly is kept** (facts of a model, the path of a format, the name of
//!   a route): to 110,000. With the item above some 8 % of the time outside the kernel.
//! - No log at all: 0.6 µs per request, and no more requests per second. One worker on one core instead of two on two:
//!   the same CPU per request, so that what sharing between two cores costs is not worth looking for.
//! - A bare relay on the same hyper, tokio and allocator, one single-threaded runtime per core, bodies read whole,
//!   nothing inspected: 28,600 instructions per request, 5.9 µs of CPU, 1.0 of nginx, where `mk` took 134,000, 14.6 µs,
//!   0.53, with the same two sends and two reads. So the HTTP stack is not what takes the time: for 0.75 of nginx,
//!   routes, record, log, JSON, account and booking together may take some 40,000 instructions. A health page, which
//!   has only the first three, takes 45,000.
//! - **Turns of a connection counted by an atomic and a `Notify`** (a `watch` channel takes a lock and looks for
//!   waiters in eight places, four times per request), **a log filter by targets alone** (one that knows spans is
//!   called at each entry and exit of a span), **ledger texts that the previous row had as well bound only once**: 3 to
//!   5 % of the time outside the kernel.
//! - **Ledger rows written as soon as there are 4096, requests within a millisecond kept as one entry of the limit**:
//!   49 to 38 MB at 128 connections with 90,000 requests per second, and 48 instead of 67 MB after a minute of them.
//! - mimalloc returning pages at once (`MIMALLOC_PURGE_DELAY=0`): 30 instead of 38 MB at 128 connections. It can only
//!   be set from outside; not pursued.
//! - **mimalloc, without huge pages**: 4 to 10 % less CPU per request at 32 connections, 3 to 4 % at 128, by two
//!   servers that were loaded alternately second by second, which shows what successive runs did not; 143,000 to
//!   132,000 instructions. With huge pages a small server takes 48 MB instead of 26. jemalloc gives as much, but needs
//!   `make` to be built.
//! - **Requests to a provider in a box, open ones in a slab, span fields written into existing memory**: 42 to 36 KB
//!   copied per request, its future 5.2 to 3.6 KB; 2 to 4 %.
//! - **Checking a provider's connection when it is reused** and not also when it is put back: 8 KB less allocated per
//!   request, no difference in CPU.
//! - Walking through JSON that was read once with custom code that skips from quote to quote, instead of parsing
//!   messages, choices and usage once more: 2,000 instructions less, no difference in CPU. Not kept.
//! - Yielding once instead of twice, looking for events after 16 or 200 polls instead of 61: no difference beyond 2 %
//!   either way. Not yielding at all: 6 % more CPU at 32 connections, as before.
//! - **A streamed chunk that differs from the last one only in its text** treated as such, and line ends found many
//!   bytes at once: 30,700 to 17,600 instructions for an event that arrives alone, 5.1 to 4.6 µs of CPU per event here,
//!   of which 3.2 are the kernel's.
//! - Yielding before a chunk of a stream is read, so that more of them arrive and leave together: 0.7 µs per event
//!   more, as they do not. Not kept.
//! - **Looking at the files of the database once per millisecond**, and waiting as long after every write: two system
//!   calls, 2 µs per request.
//! - **Polling a provider's connection only when it was woken**: two of four polls per event of a stream.
//! - **Texts with many users shared** (identifiers, names of models), rate limit headers written into one text, a body
//!   that arrived with its head read without a timer: 172,500 to 142,500 instructions per request by Callgrind, with
//!   the next two.
//! - **Smaller futures** (12 to 5 KB: what is rare is boxed) and polls with wakers that wake nothing: six to four polls
//!   of a request's task, of which two are yields. With the item above 46 to 42 µs per request.
//! - **One `recv` for each read** of a caller's socket, not a second one that finds nothing: about 1 µs.
//! - mimalloc and jemalloc, again: no difference beyond the noise in CPU, 2 to 5 MB more at 128 connections. Not kept.
//! - **Routes that allocate for their work once they match**, and not for every request that passes by them: health
//!   pages from 0.49 to 0.68 of nginx.
//! - **No index of attempts by request**, which nothing used: recording one from 6.9 to 2.9 µs, on another thread.
//! - **Header names as constants, a request's headers passed on instead of copied, each JSON text parsed once, a log
//!   line written as one text**: 191,000 to 161,000 instructions per request by Callgrind, 50 to 46 µs, of which 20 are
//!   the kernel's. `benches/instructions` counts since then.
//! - **Log lines written to their destination directly**, not built as values first: about 2 µs per request.
//! - **Yielding** before a request is sent and after its response has arrived: 60 to 51 µs per request at 32
//!   connections, nearly all of it system time. Waiting for the next poll of events instead is no better.
//! - **A provider's connection driven by the task that waits for it** instead of a task of its own: streams from 0.39
//!   to 0.86 of nginx, as what one read brings goes out in one write. Whole responses got slower by it until yields
//!   were added: their sends were no longer close together.
//! - **Log lines written by a separate thread**, several at a time: a system call, 2 µs per request.
//! - **A usage object parsed in place**, plain texts written without escaping, identifiers without a system call:
//!   together about 4 µs.
//! - **Key rows cached until the write-ahead log changes**: 4 µs.
//! - Checking ten times a second, not for each request, whether the database is still in its place: 2 µs less. Not
//!   kept: a database that is gone must never admit anybody.
//! - **One single-threaded runtime per core, and hyper's own pool** instead of reqwest's: 106 to 61 µs.
//! - **The hot route first in the chain of routes**, not innermost: eleven boxed futures less, about 1 µs.
//! - mimalloc and jemalloc: 2 µs less, 6 MB more at 128 connections. Not kept.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its table and its progress")]

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
#[path = "../support/protocols.rs"]
mod protocols;
mod provider;
#[path = "../support/requests.rs"]
mod requests;
#[path = "../support/serve.rs"]
mod serve;
mod table;
mod targets;
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
use table::{Rounds, Verdict};
use targets::Targets;

/// The number of rounds, and how long a load is put on each target.
const MEASUREMENT: (u32, Duration) = (5, Duration::from_secs(3));
/// Just long enough to check that everything works.
const REHEARSAL: (u32, Duration) = (1, Duration::from_millis(300));
/// The pause between two loads, as a fraction of a load: connections close, the ledger is written.
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

    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let ended = if std::env::args().nth(1).as_deref() == Some(provider::ROLE) {
        provider::run(protocols::answers).map(|()| ExitCode::SUCCESS)
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
    let scenarios: Vec<Scenario> = scenarios.iter().flat_map(|scenario| scenario.parts()).collect();

    let nginx = nginx::find();
    if nginx.is_none() {
        eprintln!("{NO_NGINX}");
    }
    let measured = measure(&scenarios, rounds, span, nginx.as_deref()).await?;
    let cores = std::thread::available_parallelism()?;
    println!("cores: {cores}; rounds: {rounds}, of which the medians; each load: {} s", span.as_secs_f64());
    if is_rehearsal {
        println!("This is a rehearsal: its figures mean nothing.");
    }
    let verdicts = print(&scenarios, &measured);
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
        let targets = Targets::start(provider.address, nginx).await?;
        for (scenario, samples) in scenarios.iter().zip(&mut measured) {
            eprintln!("round {} of {rounds}: {}", round + 1, scenario.title());
            let mut order = Target::ALL;
            order.rotate_left(round as usize % Target::ALL.len());
            let mut of_round = [None; Target::ALL.len()];
            for target in order {
                let sample = targets.measure(*scenario, target, span * scenario.share()).await;
                of_round[target as usize] =
                    sample.with_context(|| format!("{}: {}", target.name(), scenario.title()))?;
                tokio::time::sleep(span / SETTLE).await;
            }
            samples.push(of_round);
        }
    }
    Ok(measured)
}

/// Prints the table; returns the verdicts on its bounds.
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
