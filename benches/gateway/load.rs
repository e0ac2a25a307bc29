//! The load: many callers, all on one thread. The first wrong response ends the bench.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::caller::{Caller, Expected};
use crate::wire::Answer;

/// How long a response may take; one that takes longer will never come.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Which request is sent, where, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The target's address.
    pub(crate) address: SocketAddr,
    /// A complete HTTP/1.1 request.
    pub(crate) request: Vec<u8>,
    /// What a correct response is.
    pub(crate) expected: Expected,
    /// The number of callers.
    pub(crate) connections: usize,
    /// The interval between two requests of a caller; zero sends the next as soon as the last is answered.
    pub(crate) every: Duration,
    /// The time over which the callers start, so that they are not in step.
    pub(crate) spread: Duration,
}

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The time from the first request to the last response.
    pub(crate) took: Duration,
    /// The times of each response.
    pub(crate) times: Vec<Times>,
}

/// How long a response took, from the sending of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Until the first byte of the body.
    pub(crate) first: Duration,
    /// Until its end.
    pub(crate) whole: Duration,
}

/// Callers that are connected and have had their first response.
pub(crate) struct Ready {
    load: Arc<Load>,
    callers: Vec<Caller>,
}

impl Load {
    /// Connects the callers and lets each send one request, so that connections are open on both sides of the target.
    pub(crate) async fn open(self) -> anyhow::Result<Ready> {
        let load = Arc::new(self);
        let first = async |load: Arc<Load>| {
            let mut caller = Caller::connect(load.address).await?;
            load.ask(&mut caller).await?;
            anyhow::Ok(caller)
        };
        let all = try_join_all((0..load.connections).map(|_| first(Arc::clone(&load))));
        let callers = timeout(TIMEOUT, all).await.context("no answer")??;
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
    /// Sends requests for `span`, and waits for the last responses.
    pub(crate) async fn run(self, span: Duration) -> anyhow::Result<Tally> {
        let begin = Instant::now();
        let gap = self.load.spread / u32::try_from(self.callers.len())?.max(1);
        let mut tasks = JoinSet::new();
        let mut at = begin;
        for caller in self.callers {
            tasks.spawn(run_caller(caller, Arc::clone(&self.load), at, begin + span));
            at += gap;
        }
        let mut times = Vec::new();
        let all = async {
            while let Some(task) = tasks.join_next().await {
                times.append(&mut task??);
            }
            anyhow::Ok(())
        };
        timeout(span + TIMEOUT, all).await.context("no answer")??;
        ensure!(!times.is_empty(), "there was no time for a single request");
        Ok(Tally { took: begin.elapsed(), times })
    }
}

async fn run_caller(
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
