//! What a verification costs in addition to its models: `cargo bench --bench verify` prints a table.
//!
//! A fake provider answers every call after 200 ms; the program under test is the release binary, as a user runs it,
//! with keys, limits (which are never reached), ledger and log. Figures are times on one machine, so each is shown with
//! its bound and as a ratio to what the models alone take (extraction + slowest vote = 400 ms); only ratios are
//! comparable across machines. Memory is the resident size of the server's process.
//!
//! Concurrent verifications all start at the same moment, so that 200 of them make 6,000 calls at another; their bound
//! of 600 ms is 1.5 times the 400 ms of the models. Provider and callers have one thread each and share the machine
//! with the server. How much of it is theirs is shown in the line above: the same calls from callers to provider, in
//! the same order, without a server in between.
//!
//! An idle stream used to take 66 KB (extractor thinking) and 123 KB (three models thinking). What helped, found by
//! counting allocations with heaptrack, in the order of effect: parking provider calls (hyper's client holds 27 KB per
//! connection from the request on), requests handed over instead of kept for a second attempt, instructions shared
//! instead of copied, events boxed in their channel (it allocates room for 32), large futures in separate boxes. That
//! reduced it to 30 and 45 KB. Then the callers' connections were parked as well (`src/net/inbound/parking/mod.rs`:
//! hyper's two buffers of 8 KB, whose size cannot be set, and its own state), TLS was moved out of every future that
//! may hold a connection (a provider's connection was stored twice in a call, 1.1 KB each, a caller's twice in its
//! task), and waiting calls keep none of what they were built from (`-Zprint-type-sizes` shows what a future keeps).
//! That reduced it to 10 and 20 KB.
//!
//! Of those 20 KB, 18 were live: 2.7 per waiting call (1.3 its future, 0.6 its slot in the panel's set, 0.3 each for
//! prompt, parked request and socket), 1.8 the task of the connection, 2.2 that of the run, 4 small parts of both
//! (channel, claims, record, span, socket) and of the database's cache. The rest was fragmentation. mimalloc has size
//! classes instead, by which a slot in the panel's set took 640 bytes and not 568: keeping the arguments of a call only
//! once made that 512, and a call 0.2 KB smaller, so that it is 19 KB now. Since responses are read without hyper's
//! client, every call waits as a parked one did. A call of 1,312 bytes takes 1,536 in such a class: since a failure
//! that a retry remembers is boxed and no argument is kept twice, it takes 1,280. Waiting for money and turns by
//! provider made a stream 20.6 KB; with the rare waits in separate boxes and nothing kept twice anywhere, a call takes
//! 896 and its slot in the panel's set 512, which two unit tests check: 19.5 KB. The journal of calls under way
//! (`usage::journal`) takes 128 bytes a call; pages of the database's cache are given back after many calls were
//! written:
//! 20.1 KB. With the future of the extraction in a box, and the job kept once, the task of a run takes 1,664 bytes
//! instead of 2,048: 19.8 KB. Since claims have quotes and are reviewed while the extraction goes on, it was 24.4 KB;
//! with a list in place of a channel between extraction and panel, the terms of a connection kept once, and each claim
//! kept once: 20.2 KB. With room for one where lists of one claim had room for four, and the place of a call in the
//! journal as two numbers: 19.7 KB. Since prompts are written when they are sent: 19.5 KB.
//!
//! `QUICK=1` runs fewer rounds, and `-- --check` exits with 1 when a bound is missed or cannot be checked.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its table and its errors")]

mod anchoring;
#[path = "../support/caller.rs"]
mod caller;
#[allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared with the tests, and only partly used here"
)]
#[path = "../../tests/it/support/formats.rs"]
mod formats;
#[path = "../support/interrupt.rs"]
mod interrupt;
mod long;
mod memory;
mod panel;
#[path = "../support/process.rs"]
mod process;
mod programs;
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared with the tests, and only partly used here"
)]
#[path = "../../tests/it/support/provider.rs"]
mod provider;
#[path = "../support/serve.rs"]
mod serve;
mod server;
mod table;
mod waves;
#[path = "../support/wire.rs"]
mod wire;

use std::process::ExitCode;

use mimalloc::MiMalloc;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use interrupt::or_interrupted;
use table::Table;

/// That of the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let ended = if std::env::args().nth(1).as_deref() == Some(panel::ROLE) {
        panel::run().map(|()| ExitCode::SUCCESS)
    } else {
        bench()
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn bench() -> anyhow::Result<ExitCode> {
    let is_quick = std::env::var_os("QUICK").is_some();
    allow_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(or_interrupted(async {
        let mut table = Table::begin();
        anchoring::measure(&mut table, is_quick)?;
        waves::measure(&mut table, is_quick).await?;
        long::measure(&mut table, is_quick).await?;
        memory::measure(&mut table).await?;
        programs::measure(&mut table, is_quick)?;
        let is_checked = std::env::args().any(|argument| argument == "--check");
        Ok(ExitCode::from(u8::from(is_checked && !table.is_kept())))
    }))
}

/// This process opens thousands of connections, and accepts as many calls.
fn allow_files() -> anyhow::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(())
}
