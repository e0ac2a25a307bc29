//! The course of a soak: load, rest, shutdown, checks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::task::JoinSet;
use tokio::time::{interval_at, sleep};

use crate::accounts::{self, Rest};
use crate::book::{Book, Seen};
use crate::callers::{self, Place};
use crate::dice::Dice;
use crate::process::{self, Process};
use crate::provider::{Provider, Turn};
use crate::report::Condition;
use crate::site::Site;
use crate::{RELOADS, watch};

/// Time for what has just ended to be logged and recorded: the ledger is written twice a second.
const SETTLE: Duration = Duration::from_secs(3);
/// The number of callers during the shutdown.
const LAST_CALLERS: u64 = 64;
/// The server is told to shut down once this many of their streams are open.
const FEWEST: usize = 16;
const SOON: Duration = Duration::from_millis(2);
/// A server's grace period is 20 s, plus 2 s for its last events.
const GRACE: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(50);

/// The parameters of a soak.
pub(crate) struct Plan {
    /// How long the load lasts.
    pub(crate) span: Duration,
    /// The number of concurrent callers.
    pub(crate) connections: u32,
    /// The seed of all random choices.
    pub(crate) seed: u64,
}

/// Runs the soak; returns the checked conditions.
///
/// # Errors
/// If it cannot be run, or its records cannot be read.
pub(crate) async fn run(plan: &Plan) -> anyhow::Result<Vec<Condition>> {
    let provider = Provider::start(plan.seed).await?;
    let mut site = Site::start(provider.address)?;
    let book = Arc::new(Book::default());
    let first = Place::new(&site.base, &site.keys, &book)?;
    // The first request makes the server open what it opens only once.
    callers::scrape(&first).await.1.context("there is no page of metrics")?;
    sleep(SETTLE).await;
    let start = watch::held(&site.process);

    eprintln!("load for {} s", plan.span.as_secs());
    let cpu = site.process.cpu_time();
    let samples = load(plan, &site, &book).await?;
    let cpu = site.process.cpu_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    print_counts(&book, &provider, cpu.unwrap_or_default());

    eprintln!("rest");
    let last = Place::new(&site.base, &site.keys, &book)?;
    drop(first);
    let returned = watch::returned(&site.process, start).await;
    sleep(SETTLE).await;
    let (token, page) = callers::scrape(&last).await;
    let rest = Rest::new(token, &page.context("there is no page of metrics")?, &site.data)?;
    drop(last);

    eprintln!("shutdown");
    let shutdown = shut_down(plan, &mut site, &book).await?;
    let mut conditions = vec![watch::flat(&samples), returned, shutdown];
    conditions.extend(accounts::conditions(&book, &provider.calls(), &rest, &site.log, &site.data)?);
    Ok(conditions)
}

/// Prints how many requests, calls and faults there were.
fn print_counts(book: &Book, provider: &Provider, cpu: Duration) {
    let calls = provider.calls();
    let faults = calls.iter().filter(|call| call.turn != Turn::Answer).count();
    eprintln!(
        "{} requests and {} calls of models, {faults} of them with a fault; {:.1} s of processor time",
        book.sent().len(),
        calls.len(),
        cpu.as_secs_f64()
    );
}

/// Applies the load; returns samples of the resident memory meanwhile.
async fn load(plan: &Plan, site: &Site, book: &Arc<Book>) -> anyhow::Result<Vec<u32>> {
    let place = Place::new(&site.base, &site.keys, book)?;
    let end = Instant::now() + plan.span;
    let mut callers = JoinSet::new();
    for caller in 0..plan.connections {
        callers.spawn(callers::run_caller(place.clone(), Dice::new(plan.seed, u64::from(caller)), end));
    }
    let samples = tokio::select! {
        samples = watch::memory(&site.process, end) => samples,
        () = reload_regularly(&site.process) => bail!("the reloads ended"),
    };
    while let Some(ended) = callers.join_next().await {
        ended?;
    }
    Ok(samples)
}

/// Makes the server reload regularly; never returns.
async fn reload_regularly(process: &Process) {
    let mut turns = interval_at(tokio::time::Instant::now() + RELOADS, RELOADS);
    loop {
        turns.tick().await;
        process::signal("HUP", &process.pids()[..1]);
    }
}

/// Shuts the server down while streams are open. They have to end properly; requests that have not started may be
/// refused.
async fn shut_down(plan: &Plan, site: &mut Site, book: &Arc<Book>) -> anyhow::Result<Condition> {
    let before = book.sent().len();
    let mut last_callers = JoinSet::new();
    for caller in 0..LAST_CALLERS {
        let place = Place::new(&site.base, &site.keys, book)?;
        last_callers
            .spawn(callers::stream_through_shutdown(place, Dice::new(plan.seed, u64::MAX - 1 - caller)));
    }
    let deadline = Instant::now() + GRACE;
    let mut open = 0;
    while open < FEWEST && Instant::now() < deadline {
        sleep(SOON).await;
        let last_callers = &book.sent()[before..];
        open = last_callers.iter().filter(|sent| matches!(sent.seen, Seen::Partly(_))).count();
        if last_callers.iter().all(|sent| matches!(sent.seen, Seen::Whole(_))) && !last_callers.is_empty() {
            break;
        }
    }
    process::signal("TERM", &site.process.pids()[..1]);
    let started = Instant::now();
    let status = loop {
        match site.process.ended()? {
            Some(status) => break Some(status),
            None if started.elapsed() > GRACE => break None,
            None => sleep(POLL).await,
        }
    };
    let took = started.elapsed();
    while let Some(ended) = last_callers.join_next().await {
        ended?;
    }
    let how = status.map_or_else(|| "not at all".to_owned(), |status| status.to_string());
    let found = format!("{how} after {:.1} s, with {open} streams under way", took.as_secs_f64());
    let is_clean = open > 0 && status.is_some_and(|status| status.code() == Some(0));
    Ok(Condition::holds("the server ends cleanly", found, is_clean))
}
