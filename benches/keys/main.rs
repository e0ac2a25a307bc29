//! What keys in the database cost: `cargo bench --bench keys` prints a table; `-- --help` shows what can be set.
//!
//! # Method
//!
//! The release binary of `mk serve`, with key check, limits, ledger and log on, in front of a fake provider that answers
//! at once, on databases of 10, 20,000, 100,000, 250,000 and a million keys. 32 callers on kept connections ask for chat
//! completions; each request has the key whose turn it is, of 10, 20,000, 100,000 or 250,000 that are in use. Every
//! answer is checked, and the first wrong one ends the bench.
//!
//! - **10 and 20,000 keys in use**, of as many and of a million: how large the database is must not be seen.
//! - **100,000 keys in use**, of as many and of a million: nor here, where they are all that the server keeps rows of.
//! - **250,000 keys in use**, of as many and of a million, is shown and held to nothing: each request looks its key up in
//!   the database, as none is still kept when its turn comes again, and in a file four times as large less of what is
//!   read lies near the processor (0.88 to 0.90 × the requests).
//! - What many keys in use cost beside 10 is shown, and held to nothing: each of them has a row of its own in what the
//!   server writes twice a second (its day's count, its last use, its sums), so that is more to do, not the same
//!   of more.
//! - Figures are taken when each key has been used: what is kept of keys is kept then. Looking one up for the first time
//!   takes longer the larger the database is, as more of it lies far from the processor.
//!
//! # Noise
//!
//! As in `benches/gateway`: all share the machine. Each round starts the servers anew, puts the loads on them one right
//! after the other in an order that changes from round to round, and compares figures of the same round; the table
//! shows medians. Requests a second are held to 5 %; the processor time that the server takes for each is shown beside
//! them, as it is steadier where neighbours are loud, and as nothing of provider and callers is in it.
//!
//! # What was tried
//!
//! Beside a gateway's own record (`benches/gateway/main.rs`), of what many keys in use take:
//!
//! - **SQLite's memory from the program's allocator**: glibc's gave 32 KB back to the system and took them again with
//!   every row that was summed up, each time with an interrupt to all processors. 15 to 20 % more requests with 20,000 or
//!   100,000 keys in use; nothing with 10.
//! - **Sums, counts and last uses raised where they are, and only added where they are not**, one look into a tree instead
//!   of three: 13 to 10.5 µs a request beside the workers with 20,000 keys in use.
//! - **Twice 100,000 rows of keys kept, not 25,000**: 22,000 to 28,000 requests a second with 100,000 in use, and 20 MB more.
//! - **Counts and last uses written in the order of their tables**: 17.7 to 16.7 µs beside the workers with 100,000 in use.
//! - 1 MB of pages for those who look keys up, which holds the upper levels of a million keys and of the index of their
//!   hashes, not 256 KB: nothing with 100,000 or 250,000 in use. Not kept.
//! - A write-ahead log of 16 MB before its pages go to the ledger, not 4: nothing. Not kept.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench prints its table, and tells how far it is"
)]

#[path = "../support/caller.rs"]
mod caller;
#[path = "../support/completions.rs"]
mod completions;
mod database;
#[path = "../support/interrupt.rs"]
mod interrupt;
mod load;
#[expect(dead_code, reason = "what it tells of memory is not asked for here")]
#[path = "../support/process.rs"]
mod process;
#[path = "../gateway/provider.rs"]
mod provider;
#[expect(dead_code, reason = "only whole answers are asked for here")]
#[path = "../support/requests.rs"]
mod requests;
#[path = "../support/serve.rs"]
mod serve;
mod stand;
mod table;
#[path = "../support/wire.rs"]
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;

use interrupt::or_interrupted;
use load::{Ready, Turn};
use provider::Provider;
use stand::{Server, Site};
use table::Sample;

const FEW: usize = 10;
const SOME: usize = 20_000;
const USED: usize = 100_000;
/// More than a server keeps the rows of: two generations of 100,000 (`src/storage/sqlite/key_cache.rs`).
const BEYOND: usize = 250_000;
/// A build without optimisation would take minutes to make so many, and only rehearses.
const MANY: usize = if cfg!(debug_assertions) { BEYOND } else { 1_000_000 };
/// Rounds, and how long a load is put on.
const MEASUREMENT: (u32, Duration) = (5, Duration::from_secs(3));
/// Long enough to tell that everything works.
const REHEARSAL: (u32, Duration) = (1, Duration::from_millis(300));
/// Of a load before its figures are taken, as often as it takes for each key to be looked up for the first time.
const START: Duration = Duration::from_millis(1500);
/// Between two loads: connections close, and what is booked twice a second is written.
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

    /// Cargo says this when it measures; without it, as in `cargo test --benches`, this is a rehearsal
    #[arg(long, hide = true)]
    bench: bool,
}

/// Keys in use, of keys in the database; each has a server and a database of its own. The order is that of the table.
#[derive(Clone, Copy, Debug)]
enum Load {
    FewOfFew,
    FewOfMany,
    SomeOfThem,
    SomeOfMany,
    ManyOfThem,
    ManyOfMany,
    BeyondOfThem,
    BeyondOfMany,
}

/// All samples: by round, then in the order of [`Load::ALL`].
type Rounds = Vec<[Option<Sample>; Load::ALL.len()]>;

impl Load {
    const ALL: [Self; 8] = [
        Self::FewOfFew,
        Self::FewOfMany,
        Self::SomeOfThem,
        Self::SomeOfMany,
        Self::ManyOfThem,
        Self::ManyOfMany,
        Self::BeyondOfThem,
        Self::BeyondOfMany,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::FewOfFew => "10 keys, all in use",
            Self::FewOfMany => "a million keys, 10 in use",
            Self::SomeOfThem => "20,000 keys, all in use",
            Self::SomeOfMany => "a million keys, 20,000 in use",
            Self::ManyOfThem => "100,000 keys, all in use",
            Self::ManyOfMany => "a million keys, 100,000 in use",
            Self::BeyondOfThem => "250,000 keys, all in use",
            Self::BeyondOfMany => "a million keys, 250,000 in use",
        }
    }
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
    let turn = Turn::new(keys);
    let start = span.min(START);
    loop {
        Ready::open(server.address, &turn).await?.run(start).await?;
        if is_rehearsal || turn.has_come_around() {
            break;
        }
    }
    let ready = Ready::open(server.address, &turn).await?;
    let before = server.process.cpu_time();
    let tally = ready.run(span).await?;
    let cpu = before.zip(server.process.cpu_time()).map(|(before, after)| after.saturating_sub(before));
    Ok(Sample::new(&tally, cpu))
}
