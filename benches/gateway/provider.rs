//! The fake provider, in its own process and on one thread.
//!
//! It is the bench's own binary, started with [`ROLE`]: it prints its address and serves until its standard input
//! closes, so that it cannot outlive the bench. Its responses are in `completions`.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::completions::{self, Answers};
use crate::process::{self, Process};

/// The argument that makes this binary the provider.
pub(crate) const ROLE: &str = "provider";

/// The running provider, as the bench sees it.
pub(crate) struct Provider {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl Provider {
    /// Starts it and waits for its address.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut command = process::program(&std::env::current_exe()?);
        command.arg(ROLE).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::start(&mut command)?;
        let stdout = child.stdout.take().context("the provider has no standard output")?;
        let process = Process::of(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the provider does not start: {line}"))?;
        Ok(Self { address, _process: process })
    }
}

/// Runs the provider until standard input closes. `others` has the answers at paths of other protocols.
pub(crate) fn run(others: fn(&str) -> Option<Answers>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
        tokio::spawn(completions::accept(listener, None, others));
        let mut rest = tokio::io::stdin();
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        Ok(())
    })
}
