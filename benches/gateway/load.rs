//! Load: callers on raw keep-alive connections, each with one request at a time, all on one thread.
//!
//! A caller costs as little as it can, because it shares the machine with what it measures: the request is put
//! together once, the answer is read by `wire`, and the runtime does the rest. Every answer is checked; the first that
//! is not what was asked for ends the bench, so that whatever fails fast never looks fast.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use crate::wire::Answer;

/// How long an answer may take in all; no answer here is that slow unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 32 << 10;
/// How much of a wrong answer is shown.
const SHOWN: usize = 400;

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

/// What a right answer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Its status.
    pub(crate) status: u16,
    /// What stands in its body.
    pub(crate) text: &'static str,
    /// Events in its body, `[DONE]` the last of them; zero for an answer that is no stream.
    pub(crate) events: usize,
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
            caller.ask(&load).await?;
            anyhow::Ok(caller)
        };
        let all = try_join_all((0..load.connections).map(|_| first(Arc::clone(&load))));
        let callers = timeout(PATIENCE, all).await.context("no answer")??;
        Ok(Ready { load, callers })
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
            tasks.spawn(caller.go_on(Arc::clone(&self.load), at, begin + span));
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

/// One connection.
struct Caller {
    stream: TcpStream,
    answer: Answer,
    buffer: Box<[u8]>,
}

impl Caller {
    async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Answer::default(), buffer: vec![0; READ_BYTES].into() })
    }

    async fn go_on(mut self, load: Arc<Load>, begin: Instant, end: Instant) -> anyhow::Result<Vec<Times>> {
        let mut times = Vec::new();
        let mut due = begin;
        sleep_until(due.into()).await;
        while Instant::now() < end {
            times.push(self.ask(&load).await?);
            due += load.every;
            if !load.every.is_zero() {
                sleep_until(due.into()).await;
            }
        }
        Ok(times)
    }

    async fn ask(&mut self, load: &Load) -> anyhow::Result<Times> {
        self.answer.clear();
        let begin = Instant::now();
        self.stream.write_all(&load.request).await?;
        let mut first = None;
        loop {
            let count = self.stream.read(&mut self.buffer).await?;
            ensure!(count > 0, "the connection was closed in the midst of an answer: {}", self.shown());
            let has_ended = self.answer.read(&self.buffer[..count])?;
            if first.is_none() && !self.answer.body.is_empty() {
                first = Some(begin.elapsed());
            }
            if has_ended {
                break;
            }
        }
        let whole = begin.elapsed();
        if !load.expected.is_met(&self.answer) {
            bail!("a wrong answer: {}", self.shown());
        }
        Ok(Times { first: first.unwrap_or(whole), whole })
    }

    fn shown(&self) -> String {
        let body = &self.answer.body;
        let (start, tail) = body.split_at(body.len().min(SHOWN));
        let tail = &tail[tail.len().saturating_sub(SHOWN)..];
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        format!("status {}, {} bytes: {} … {}", self.answer.status, body.len(), text(start), text(tail))
    }
}

impl Expected {
    fn is_met(&self, answer: &Answer) -> bool {
        let is_stream = self.events > 0;
        answer.status == self.status
            && std::str::from_utf8(&answer.body).is_ok_and(|body| body.contains(self.text))
            && (!is_stream || answer.body.ends_with(b"\n\ndata: [DONE]\n\n"))
            && (!is_stream || events(&answer.body) == self.events)
    }
}

/// Events end with an empty line.
fn events(body: &[u8]) -> usize {
    body.windows(2).filter(|pair| pair == b"\n\n").count()
}
