//! What keys in the database cost: `cargo bench --bench keys` prints a table; `-- --help` shows the options.
//!
//! # Method
//!
//! The release binary of `mk serve`, with key check, limits, ledger and log enabled, in front of a fake provider that
//! answers at once, on databases of 10, 20,000, 100,000, 250,000 and a million keys. 32 callers on keep-alive
//! connections request chat completions; the requests use 10, 20,000, 100,000 or 250,000 of the keys in turn. Every
//! response is checked, and the first wrong one ends the bench.
//!
//! - **10 and 20,000 keys in use**, of as many and of a million: the size of the database must make no difference.
//! - **100,000 keys in use**, of as many and of a million: nor here, where they are all the rows that the server
//!   caches.
//! - **250,000 keys in use**, of as many and of a million, is shown without a bound: each request looks its key up in
//!   the
//!   database, as none is still cached when its turn comes again, and in a file four times as large less of what is read
//!   is close to the processor (0.88 to 0.90 × the requests).
//! - What many keys in use cost compared with 10 is shown without a bound: each of them has its own row in what the
//!   server writes twice a second (its daily count, its last use, its sums), so that there is more to do, not just more
//!   of the same.
//! - Figures are taken once each key has been used, and so is cached as far as it ever is. The first lookup of a key
//!   takes
//!   longer the larger the database is, as more of it is far from the processor.
//!
//! # Noise
//!
//! As in `benches/gateway`: all processes share the machine. Each round restarts the servers, puts the loads on them
//! one right after another in an order that changes from round to round, and compares figures of the same round; the
//! table shows medians. The bound on requests per second is 5 %; the processor time that the server takes for each is
//! shown next to them, as it is steadier under other load on the machine, and includes nothing of provider and callers.
//!
//! # What was tried
//!
//! In addition to the gateway's record (`benches/gateway/main.rs`), for many keys in use:
//!
//! - **SQLite's memory from the program's allocator**: glibc's returned 32 KB to the system and took them back with
//!   every
//!   row that was summed up, each time with an interrupt to all processors. 15 to 20 % more requests with 20,000 or
//!   100,000 keys in use; no effect with 10.
//! - **Sums, counts and last uses updated where they exist, and only inserted where they do not**, one tree lookup
//!   instead
//!   of three: 13 to 10.5 µs per request outside the workers with 20,000 keys in use.
//! - **Twice 100,000 key rows cached, not 25,000**: 22,000 to 28,000 requests per second with 100,000 in use, and 20 MB
//!   more.
//! - **Counts and last uses written in the order of their tables**: 17.7 to 16.7 µs outside the workers with 100,000 in
//!   use.
//! - 1 MB of pages for connections that look keys up, which holds the upper levels of a million keys and of the index
//!   of
//!   their hashes, not 256 KB: no effect with 100,000 or 250,000 in use. Not kept.
//! - A write-ahead log of 16 MB before its pages go to the ledger, not 4: no effect. Not kept.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its table and its progress")]

#[path = "../support/caller.rs"]
mod caller;
#[path = "../support/completions.rs"]
mod completions;
mod database;
#[path = "../support/interrupt.rs"]
mod interrupt;
mod load;
#[expect(dead_code, reason = "memory is not measured here")]
#[path = "../support/process.rs"]
mod process;
#[path = "../gateway/provider.rs"]
mod provider;
#[expect(dead_code, reason = "only whole responses are requested here")]
#[path = "../support/requests.rs"]
mod requests;
#[path = "../support/serve.rs"]
mod serve;
mod site;
mod table;
#[path = "../support/wire.rs"]
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;

use interrupt::or_interrupted;
use load::{KeyRotation, Ready};
use provider::Provider;
use site::{Server, Site};
use table::Sample;

const FEW: usize = 10;
const SOME: usize = 20_000;
const USED: usize = 100_000;
/// More rows than a server caches: two generations of 100,000 (`src/storage/sqlite/key_cache/mod.rs`).
const BEYOND: usize = 250_000;
/// An unoptimised build would take minutes to create a million, and only rehearses.
const MANY: usize = if cfg!(debug_assertions) { BEYOND } else { 1_000_000 };
/// The number of rounds, and how long a load is put on each server.
const MEASUREMENT: (u32, Duration) = (5, Duration::from_secs(3));
/// Just long enough to check that everything works.
const REHEARSAL: (u32, Duration) = (1, Duration::from_millis(300));
/// The length of the loads before figures are taken, repeated until each key has been used once.
const START: Duration = Duration::from_millis(1500);
/// The pause between two loads: connections close, and what is written twice a second is written.
const REST: Duration = Duration::from_secs(1);

/// Measures chat completions on databases of 10 and of a million keys, and prints a table.
#[derive(Parser)]
#[command(name = "cargo bench --bench keys --")]
struct Options {
    /// Rounds; the table shows their medians [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// How long each load is put on [default: 3]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,

    /// Exit code 1 when a bound is missed
    #[arg(long)]
    check: bool,

    /// Passed by `cargo bench`; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

/// How many keys are in use, of how many in the database; each load has its own server and database. The order is that
/// of the table.
#[derive(Clone, Copy, Debug)]
enum Load {
    FewOfFew,
    FewOfMany,
    SomeOfAll,
    SomeOfMany,
    ManyOfAll,
    ManyOfMany,
    BeyondOfAll,
    BeyondOfMany,
}

/// All samples: by round, then in the order of [`Load::ALL`].
type Rounds = Vec<[Option<Sample>; Load::ALL.len()]>;

impl Load {
    const ALL: [Self; 8] = [
        Self::FewOfFew,
        Self::FewOfMany,
        Self::SomeOfAll,
        Self::SomeOfMany,
        Self::ManyOfAll,
        Self::ManyOfMany,
        Self::BeyondOfAll,
        Self::BeyondOfMany,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::FewOfFew => "10 keys, all in use",
            Self::FewOfMany => "a million keys, 10 in use",
            Self::SomeOfAll => "20,000 keys, all in use",
            Self::SomeOfMany => "a million keys, 20,000 in use",
            Self::ManyOfAll => "100,000 keys, all in use",
            Self::ManyOfMany => "a million keys, 100,000 in use",
            Self::BeyondOfAll => "250,000 keys, all in use",
            Self::BeyondOfMany => "a million keys, 250,000 in use",
        }
    }
}

fn main() -> ExitCode {
    let ended = if std::env::args().nth(1).as_deref() == Some(provider::ROLE) {
        provider::run(|_| None).map(|()| ExitCode::SUCCESS)
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
    let (rounds, span) =
        (options.rounds.unwrap_or(rounds), options.seconds.map_or(span, Duration::from_secs));
    let measured = measure(rounds, span, is_rehearsal).await?;
    let cores = std::thread::available_parallelism()?;
    println!("cores: {cores}; rounds: {rounds}, of which the medians; each load: {} s", span.as_secs_f64());
    if is_rehearsal {
        println!("This is a rehearsal: its figures mean nothing.");
    }
    let holds = table::print(&measured);
    Ok(ExitCode::from(u8::from(options.check && !holds)))
}

async fn measure(rounds: u32, span: Duration, is_rehearsal: bool) -> anyhow::Result<Rounds> {
    let provider = Provider::start()?;
    eprintln!("making the databases");
    let many = Site::new(provider.address, MANY, BEYOND)?;
    let sites = [
        Site::new(provider.address, FEW, FEW)?,
        Site::like(provider.address, &many, FEW)?,
        Site::new(provider.address, SOME, SOME)?,
        Site::like(provider.address, &many, SOME)?,
        Site::new(provider.address, USED, USED)?,
        Site::like(provider.address, &many, USED)?,
        Site::new(provider.address, BEYOND, BEYOND)?,
        many,
    ];
    let mut measured = Rounds::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let servers = sites.iter().map(Site::serve).collect::<anyhow::Result<Vec<_>>>()?;
        for site in &sites {
            site.settle().await?;
        }
        let mut order = Load::ALL;
        order.rotate_left(round as usize % Load::ALL.len());
        let mut of_round = [None; Load::ALL.len()];
        for load in order {
            let (site, server) = (&sites[load as usize], &servers[load as usize]);
            let sample = one(server, &site.keys, span, is_rehearsal).await.with_context(|| load.title())?;
            of_round[load as usize] = Some(sample);
            tokio::time::sleep(REST).await;
        }
        measured.push(of_round);
    }
    Ok(measured)
}

async fn one(server: &Server, keys: &[String], span: Duration, is_rehearsal: bool) -> anyhow::Result<Sample> {
    let rotation = KeyRotation::new(keys);
    let start = span.min(START);
    loop {
        Ready::open(server.address, &rotation).await?.run(start).await?;
        if is_rehearsal || rotation.has_come_around() {
            break;
        }
    }
    let ready = Ready::open(server.address, &rotation).await?;
    let before = server.process.cpu_time();
    let tally = ready.run(span).await?;
    let cpu = before.zip(server.process.cpu_time()).map(|(before, after)| after.saturating_sub(before));
    Ok(Sample::new(&tally, cpu))
}
