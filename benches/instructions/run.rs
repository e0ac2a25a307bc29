//! Sends requests and counts the instructions that their responses take.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::caller::Caller;
use crate::plan::Ask;
use crate::site::Site;
use crate::wire::Answer;
use crate::{completions, protocols};

/// Connections, which send requests in turn, so that each worker of the server has some.
const CALLERS: u32 = 4;
/// Requests before counting starts: by then connections, caches and lazily created tables exist.
const WARM_UP: u32 = 80;
/// Time for what is written after the responses: the ledger is written twice a second.
const REST: Duration = Duration::from_secs(1);
/// How long a response may take, in a simulator on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The count for one [`Ask`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    /// All instructions.
    pub(crate) instructions: u64,
    /// The number of responses.
    pub(crate) answers: u32,
    /// The events of all responses.
    pub(crate) events: u64,
}

/// A server in the simulator, and callers.
pub(crate) struct Bench {
    site: Site,
    callers: Vec<Caller>,
    turns: Arc<Semaphore>,
}

impl Bench {
    /// Starts server and provider, and connects the callers. Counts by function go to files in `counts`.
    pub(crate) async fn start(counts: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = listener.local_addr()?;
        let turns = Arc::new(Semaphore::new(0));
        tokio::spawn(completions::accept(listener, Some(Arc::clone(&turns)), protocols::answers));
        let site = Site::start(provider, counts)?;
        let mut callers = Vec::new();
        for _ in 0..CALLERS {
            callers.push(Caller::connect(site.address).await?);
        }
        Ok(Self { site, callers, turns })
    }

    /// Counts `times` requests, after others that are not counted.
    pub(crate) async fn count(&mut self, ask: Ask, times: u32) -> anyhow::Result<Count> {
        self.ask(ask, WARM_UP.min(times)).await?;
        sleep(REST).await;
        self.site.settle().await?;
        self.site.counter.begin()?;
        let events = self.ask(ask, times).await?;
        sleep(REST).await;
        let instructions = self.site.counter.end(&ask.name())?;
        ensure!(instructions > 0, "callgrind has counted nothing");
        Ok(Count { instructions, answers: times, events })
    }

    /// Sends requests one after another; returns the number of events received.
    async fn ask(&mut self, ask: Ask, times: u32) -> anyhow::Result<u64> {
        let (request, expected) = ask.of(&self.site);
        let mut events = 0;
        for number in 0..times as usize {
            let place = number % self.callers.len();
            // Permits left over from the last stream.
            self.turns.forget_permits(usize::MAX);
            let (mut received, turns) = (0, &self.turns);
            let seen = |answer: &Answer| {
                let now = answer.body.windows(2).filter(|pair| pair == b"\n\n").count();
                // One at a time, also where several events come together.
                if now > received {
                    turns.forget_permits(usize::MAX);
                    turns.add_permits(1);
                }
                received = now;
            };
            let asked = timeout(TIMEOUT, self.callers[place].ask(&request, &expected, seen));
            asked.await.with_context(|| format!("{}: no answer", ask.name()))??;
            events += received as u64;
        }
        Ok(events)
    }
}
