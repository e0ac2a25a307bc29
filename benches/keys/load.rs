//! Load: callers on one thread, each of whose requests has the key whose turn it is. The first wrong answer ends the
//! bench.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use tokio::time::timeout;

use crate::caller::Caller;
use crate::requests::{CHAT, WHOLE, completion, post};
use crate::stand::MODEL;

/// Callers.
const CONNECTIONS: usize = 32;
/// How long an answer may take; none does unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Callers that are connected and have had a first answer each.
pub(crate) struct Ready<'a> {
    callers: Vec<OneOf<'a>>,
}

/// What came of a load.
pub(crate) struct Tally {
    /// From the first request to the last answer.
    pub(crate) took: Duration,
    /// Right answers.
    pub(crate) answers: u32,
}

/// A caller with a request of its own, in which only the key changes: putting one together for each call, or keeping
/// one for each of many keys, would cost the caller more the more keys there are.
struct OneOf<'a> {
    caller: Caller,
    request: Vec<u8>,
    key_at: usize,
    turn: &'a Turn<'a>,
}

/// Whose turn it is among keys that all have the same length.
pub(crate) struct Turn<'a> {
    keys: &'a [String],
    taken: Cell<usize>,
}

impl<'a> Turn<'a> {
    /// Begins with the first.
    pub(crate) const fn new(keys: &'a [String]) -> Self {
        Self { keys, taken: Cell::new(0) }
    }

    fn take(&self) -> &'a str {
        let taken = self.taken.get();
        self.taken.set(taken + 1);
        &self.keys[taken % self.keys.len()]
    }

    /// Whether each has had its turn.
    pub(crate) const fn has_come_around(&self) -> bool {
        self.taken.get() >= self.keys.len()
    }
}

impl<'a> Ready<'a> {
    /// Connects the callers and lets each ask once.
    pub(crate) async fn open(address: SocketAddr, turn: &'a Turn<'a>) -> anyhow::Result<Self> {
        let first = async || {
            let mut caller = OneOf::connect(address, turn).await?;
            caller.ask().await?;
            anyhow::Ok(caller)
        };
        let all = try_join_all((0..CONNECTIONS).map(|_| first()));
        Ok(Self { callers: timeout(PATIENCE, all).await.context("no answer")?? })
    }

    /// Asks for as long as `span`, and waits for the answers under way.
    pub(crate) async fn run(self, span: Duration) -> anyhow::Result<Tally> {
        let begin = Instant::now();
        let go_on = async |mut caller: OneOf<'a>| {
            let mut answers = 0;
            while begin.elapsed() < span {
                caller.ask().await?;
                answers += 1;
            }
            anyhow::Ok(answers)
        };
        let all = try_join_all(self.callers.into_iter().map(go_on));
        let answers: Vec<u32> = timeout(span + PATIENCE, all).await.context("no answer")??;
        let answers = answers.into_iter().sum();
        ensure!(answers > 0, "there was no time for a single request");
        Ok(Tally { took: begin.elapsed(), answers })
    }
}

impl<'a> OneOf<'a> {
    async fn connect(address: SocketAddr, turn: &'a Turn<'a>) -> anyhow::Result<Self> {
        let key = turn.take();
        let request = post(address, CHAT, key, &completion(MODEL, false));
        let found = request.windows(key.len()).position(|window| window == key.as_bytes());
        let key_at = found.context("the request has no key")?;
        Ok(Self { caller: Caller::connect(address).await?, request, key_at, turn })
    }

    async fn ask(&mut self) -> anyhow::Result<()> {
        let key = self.turn.take();
        self.request[self.key_at..][..key.len()].copy_from_slice(key.as_bytes());
        self.caller.ask(&self.request, &WHOLE, |_| ()).await
    }
}
