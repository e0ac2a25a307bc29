//! Load: many callers, all on one thread. The first wrong answer ends the bench.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::caller::{Caller, Expected};
use crate::wire::Answer;

/// How long an answer may take in all; no answer here is that slow unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked, of whom, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Who is asked.
    pub(crate) address: SocketAddr,
    /// A whole HTTP/1.1 request.
    pub(crate) request: Vec<u8>,
    /// What a right answer is.
    pub(crate) expected: Expected,
    /// Callers.
    pub(crate) connections: usize,
    /// The time from one request of a caller to its next; zero means at once.
    pub(crate) every: Duration,
    /// The time over which callers begin, so that they do not all wait for the same moment.
    pub(crate) spread: Duration,
}

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Tally {
    /// From the first request to the last answer.
    pub(crate) took: Duration,
    /// One for each answer.
    pub(crate) times: Vec<Times>,
}

/// How long one answer took, from the sending of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// To the first byte of the body.
    pub(crate) first: Duration,
    /// To the end.
    pub(crate) whole: Duration,
}

/// Callers that are connected and have had a first answer each.
pub(crate) struct Ready {
    load: Arc<Load>,
    callers: Vec<Caller>,
}

impl Load {
    /// Connects the callers and lets each ask once, so that what follows meets open connections on both sides.
    pub(crate) async fn open(self) -> anyhow::Result<Ready> {
        let load = Arc::new(self);
        let first = async |load: Arc<Load>| {
            let mut caller = Caller::connect(load.address).await?;
            load.ask(&mut caller).await?;
            anyhow::Ok(caller)
        };
        let all = try_join_all((0..load.connections).map(|_| first(Arc::clone(&load))));
        let callers = timeout(PATIENCE, all).await.context("no answer")??;
        Ok(Ready { load, callers })
    }

    async fn ask(&self, caller: &mut Caller) -> anyhow::Result<Times> {
        let begin = Instant::now();
        let mut first = None;
        let seen = |answer: &Answer| {
            if first.is_none() && !answer.body.is_empty() {
                first = Some(begin.elapsed());
            }
        };
        caller.ask(&self.request, &self.expected, seen).await?;
        let whole = begin.elapsed();
        Ok(Times { first: first.unwrap_or(whole), whole })
    }
}

impl Ready {
    /// Asks for as long as `span`, and waits for the answers under way.
    pub(crate) async fn run(self, span: Duration) -> anyhow::Result<Tally> {
        let begin = Instant::now();
        let gap = self.load.spread / u32::try_from(self.callers.len())?.max(1);
        let mut tasks = JoinSet::new();
        let mut at = begin;
        for caller in self.callers {
            tasks.spawn(go_on(caller, Arc::clone(&self.load), at, begin + span));
            at += gap;
        }
        let mut times = Vec::new();
        let all = async {
            while let Some(task) = tasks.join_next().await {
                times.append(&mut task??);
            }
            anyhow::Ok(())
        };
        timeout(span + PATIENCE, all).await.context("no answer")??;
        ensure!(!times.is_empty(), "there was no time for a single request");
        Ok(Tally { took: begin.elapsed(), times })
    }
}

async fn go_on(
    mut caller: Caller,
    load: Arc<Load>,
    begin: Instant,
    end: Instant,
) -> anyhow::Result<Vec<Times>> {
    let mut times = Vec::new();
    let mut due = begin;
    sleep_until(due.into()).await;
    while Instant::now() < end {
        times.push(load.ask(&mut caller).await?);
        due += load.every;
        if !load.every.is_zero() {
            sleep_until(due.into()).await;
        }
    }
    Ok(times)
}
