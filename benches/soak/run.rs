//! The course of a soak: load, rest, goodbye, accounts.

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

/// For what has just ended to be logged and booked: the ledger is written twice a second.
const SETTLE: Duration = Duration::from_secs(3);
/// Callers at the end.
const GUESTS: u64 = 64;
/// The server is asked to end when so many of their streams have begun and not ended.
const FEWEST: usize = 16;
const SOON: Duration = Duration::from_millis(2);
/// A server's grace is 20 s, and 2 s for last words.
const GRACE: Duration = Duration::from_secs(25);
const LOOK: Duration = Duration::from_millis(50);

/// How it is soaked.
pub(crate) struct Plan {
    /// How long the load lasts.
    pub(crate) span: Duration,
    /// Callers at once.
    pub(crate) connections: u32,
    /// What chance follows from.
    pub(crate) seed: u64,
}

/// Runs it; what became of the conditions.
///
/// # Errors
/// If it cannot be run, or nothing can be read of it.
pub(crate) async fn run(plan: &Plan) -> anyhow::Result<Vec<Condition>> {
    let provider = Provider::start(plan.seed).await?;
    let mut site = Site::start(provider.address)?;
    let book = Arc::new(Book::default());
    let first = Place::new(&site.base, &site.keys, &book)?;
    // The first one opens what is opened once.
    callers::scrape(&first).await.1.context("there is no page of metrics")?;
    sleep(SETTLE).await;
    let start = watch::held(&site.process);

    eprintln!("load for {} s", plan.span.as_secs());
    let cpu = site.process.cpu_time();
    let looks = load(plan, &site, &book).await?;
    let cpu = site.process.cpu_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
    tell(&book, &provider, cpu.unwrap_or_default());

    eprintln!("rest");
    let last = Place::new(&site.base, &site.keys, &book)?;
    drop(first);
    let returned = watch::returned(&site.process, start).await;
    sleep(SETTLE).await;
    let (token, page) = callers::scrape(&last).await;
    let rest = Rest::new(token, &page.context("there is no page of metrics")?, &site.data)?;
    drop(last);

    eprintln!("goodbye");
    let goodbye = say_goodbye(plan, &mut site, &book).await?;
    let mut conditions = vec![watch::flat(&looks), returned, goodbye];
    conditions.extend(accounts::conditions(&book, &provider.calls(), &rest, &site.log, &site.data)?);
    Ok(conditions)
}

/// Tells how much there was of everything.
fn tell(book: &Book, provider: &Provider, cpu: Duration) {
    let calls = provider.calls();
    let faults = calls.iter().filter(|call| call.turn != Turn::Answer).count();
    eprintln!(
        "{} requests and {} calls of models, {faults} of them with a fault; {:.1} s of processor time",
        book.sent().len(),
        calls.len(),
        cpu.as_secs_f64()
    );
}

/// Puts the load on; what was resident meanwhile.
async fn load(plan: &Plan, site: &Site, book: &Arc<Book>) -> anyhow::Result<Vec<u32>> {
    let place = Place::new(&site.base, &site.keys, book)?;
    let end = Instant::now() + plan.span;
    let mut callers = JoinSet::new();
    for caller in 0..plan.connections {
        callers.spawn(callers::go_on(place.clone(), Dice::new(plan.seed, u64::from(caller)), end));
    }
    let looks = tokio::select! {
        looks = watch::memory(&site.process, end) => looks,
        () = hang_up(&site.process) => bail!("hanging up has an end"),
    };
    while let Some(ended) = callers.join_next().await {
        ended?;
    }
    Ok(looks)
}

/// Has the server reload now and then; never returns.
async fn hang_up(process: &Process) {
    let mut turns = interval_at(tokio::time::Instant::now() + RELOADS, RELOADS);
    loop {
        turns.tick().await;
        process::signal("HUP", &process.pids()[..1]);
    }
}

/// Ends the server while streams are under way. They have to come to their ends; who has not begun may be turned away.
async fn say_goodbye(plan: &Plan, site: &mut Site, book: &Arc<Book>) -> anyhow::Result<Condition> {
    let before = book.sent().len();
    let mut guests = JoinSet::new();
    for guest in 0..GUESTS {
        let place = Place::new(&site.base, &site.keys, book)?;
        guests.spawn(callers::say_goodbye(place, Dice::new(plan.seed, u64::MAX - 1 - guest)));
    }
    let late = Instant::now() + GRACE;
    let mut under_way = 0;
    while under_way < FEWEST && Instant::now() < late {
        sleep(SOON).await;
        let guests = &book.sent()[before..];
        under_way = guests.iter().filter(|sent| matches!(sent.seen, Seen::Begun(_))).count();
        if guests.iter().all(|sent| matches!(sent.seen, Seen::Whole(_))) && !guests.is_empty() {
            break;
        }
    }
    process::signal("TERM", &site.process.pids()[..1]);
    let begun = Instant::now();
    let status = loop {
        match site.process.ended()? {
            Some(status) => break Some(status),
            None if begun.elapsed() > GRACE => break None,
            None => sleep(LOOK).await,
        }
    };
    let took = begun.elapsed();
    while let Some(ended) = guests.join_next().await {
        ended?;
    }
    let how = status.map_or_else(|| "not at all".to_owned(), |status| status.to_string());
    let found = format!("{how} after {:.1} s, with {under_way} streams under way", took.as_secs_f64());
    let is_clean = under_way > 0 && status.is_some_and(|status| status.code() == Some(0));
    Ok(Condition::holds("the server ends cleanly", found, is_clean))
}
