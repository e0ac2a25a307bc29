//! The targets of one round: nginx and `mk serve`, both started anew, in front of the same provider.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use tokio::time::sleep;

use crate::figures::{Sample, Target, Usage};
use crate::mk::Mk;
use crate::nginx::Nginx;
use crate::plan::{self, Scenario};
use crate::process::Process;

/// Key rows are cached only if the last write to the database was more than 3 s ago; until then, each request reads it.
const SETTLED: Duration = Duration::from_millis(3500);
/// How often the memory of a process is sampled.
const SAMPLING: Duration = Duration::from_millis(100);

/// The targets of one round.
pub(crate) struct Targets {
    /// The provider's address.
    pub(crate) provider: SocketAddr,
    /// Missing if nginx is not installed.
    pub(crate) nginx: Option<Nginx>,
    /// The program under test.
    pub(crate) mk: Mk,
}

impl Targets {
    /// Starts both and waits until they serve.
    pub(crate) async fn start(provider: SocketAddr, nginx: Option<&Path>) -> anyhow::Result<Self> {
        let nginx = nginx.map(|file| Nginx::start(file, provider)).transpose()?;
        let mk = Mk::start(provider)?;
        plan::only_one(&mk).open().await.context("the first answer of mk")?;
        sleep(SETTLED).await;
        Ok(Self { provider, nginx, mk })
    }

    /// Puts a load on a target for `span`; `None` if the target is not part of the scenario.
    pub(crate) async fn measure(
        &self,
        scenario: Scenario,
        target: Target,
        span: Duration,
    ) -> anyhow::Result<Option<Sample>> {
        let Some(load) = scenario.load(target, self) else { return Ok(None) };
        let events = load.expected.events;
        let process = match target {
            Target::Direct => None,
            Target::Nginx => self.nginx.as_ref().map(|nginx| &nginx.process),
            Target::Mk | Target::Chat => Some(&self.mk.process),
        };
        let ready = load.open().await?;
        let before = process.and_then(Process::cpu_time);
        let mut resident_kb = None;
        let mut run = pin!(ready.run(span));
        let tally = loop {
            tokio::select! {
                tally = &mut run => break tally?,
                () = sleep(SAMPLING) => resident_kb = resident_kb.max(process.and_then(Process::resident_kb)),
            }
        };
        let after = process.and_then(Process::cpu_time);
        let cpu = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        let used = cpu.zip(resident_kb).map(|(cpu, resident_kb)| Usage { cpu, resident_kb });
        Ok(Some(Sample::new(&tally, events, used)))
    }
}
