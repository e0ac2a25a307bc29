//! The load: callers on one thread, whose requests use the keys in rotation. The first wrong response ends the bench.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use tokio::time::timeout;

use crate::caller::Caller;
use crate::requests::{CHAT, WHOLE, completion, post};
use crate::site::MODEL;

/// The number of callers.
const CONNECTIONS: usize = 32;
/// How long a response may take; one that takes longer will never come.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Callers that are connected and have had their first response.
pub(crate) struct Ready<'a> {
    callers: Vec<KeyedCaller<'a>>,
}

/// The result of a load.
pub(crate) struct Tally {
    /// The time from the first request to the last response.
    pub(crate) took: Duration,
    /// The number of correct responses.
    pub(crate) answers: u32,
}

/// A caller with one request, in which only the key changes: to build a request for each call, or to keep one for each
/// key, would cost the caller more the more keys there are.
struct KeyedCaller<'a> {
    caller: Caller,
    request: Vec<u8>,
    key_at: usize,
    rotation: &'a KeyRotation<'a>,
}

/// Hands out keys in rotation; all have the same length.
pub(crate) struct KeyRotation<'a> {
    keys: &'a [String],
    taken: Cell<usize>,
}

impl<'a> KeyRotation<'a> {
    /// Starts with the first key.
    pub(crate) const fn new(keys: &'a [String]) -> Self {
        Self { keys, taken: Cell::new(0) }
    }

    fn take(&self) -> &'a str {
        let taken = self.taken.get();
        self.taken.set(taken + 1);
        &self.keys[taken % self.keys.len()]
    }

    /// Whether each key has been used.
    pub(crate) const fn has_come_around(&self) -> bool {
        self.taken.get() >= self.keys.len()
    }
}

impl<'a> Ready<'a> {
    /// Connects the callers and lets each send one request.
    pub(crate) async fn open(address: SocketAddr, rotation: &'a KeyRotation<'a>) -> anyhow::Result<Self> {
        let first = async || {
            let mut caller = KeyedCaller::connect(address, rotation).await?;
            caller.ask().await?;
            anyhow::Ok(caller)
        };
        let all = try_join_all((0..CONNECTIONS).map(|_| first()));
        Ok(Self { callers: timeout(TIMEOUT, all).await.context("no answer")?? })
    }

    /// Sends requests for `span`, and waits for the last responses.
    pub(crate) async fn run(self, span: Duration) -> anyhow::Result<Tally> {
        let begin = Instant::now();
        let run_caller = async |mut caller: KeyedCaller<'a>| {
            let mut answers = 0;
            while begin.elapsed() < span {
                caller.ask().await?;
                answers += 1;
            }
            anyhow::Ok(answers)
        };
        let all = try_join_all(self.callers.into_iter().map(run_caller));
        let answers: Vec<u32> = timeout(span + TIMEOUT, all).await.context("no answer")??;
        let answers = answers.into_iter().sum();
        ensure!(answers > 0, "there was no time for a single request");
        Ok(Tally { took: begin.elapsed(), answers })
    }
}

impl<'a> KeyedCaller<'a> {
    async fn connect(address: SocketAddr, rotation: &'a KeyRotation<'a>) -> anyhow::Result<Self> {
        let key = rotation.take();
        let request = post(address, CHAT, key, &completion(MODEL, false));
        let found = request.windows(key.len()).position(|window| window == key.as_bytes());
        let key_at = found.context("the request has no key")?;
        Ok(Self { caller: Caller::connect(address).await?, request, key_at, rotation })
    }

    async fn ask(&mut self) -> anyhow::Result<()> {
        let key = self.rotation.take();
        self.request[self.key_at..][..key.len()].copy_from_slice(key.as_bytes());
        self.caller.ask(&self.request, &WHOLE, |_| ()).await
    }
}
