//! `mk serve` as a user runs it, on databases that are created once and served by a new process in each round.
//!
//! Limits are enabled but never reached, and the log goes to a file, one line per request.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use tokio::time::{Instant, sleep};

use crate::process::{self, Process};
use crate::{database, serve};

/// The model that answers at once.
pub(crate) const MODEL: &str = "fast/model";
/// Key rows are cached only if the last write to the database was more than 3 s ago, which is mostly true of a server
/// in use (`src/storage/sqlite/key_cache/mod.rs` says why).
const SETTLED: Duration = Duration::from_millis(3500);
const TIMEOUT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);

/// A database with its configuration.
pub(crate) struct Site {
    /// The keys in use, sorted by their texts.
    pub(crate) keys: Vec<String>,
    dir: tempfile::TempDir,
}

/// A server on a database.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The server.
    pub(crate) process: Process,
}

impl Site {
    /// Creates a database of `count` keys, `used` of which will be used.
    pub(crate) fn new(provider: SocketAddr, count: usize, used: usize) -> anyhow::Result<Self> {
        let mut site = Self::empty(provider)?;
        site.keys = database::fill(site.dir.path(), &site.config(), &site.keys_file(), count, used)?;
        Ok(site)
    }

    /// A copy of another database's keys, without the usage recorded there; uses the first `used` of those in use
    /// there.
    pub(crate) fn like(provider: SocketAddr, other: &Self, used: usize) -> anyhow::Result<Self> {
        let mut site = Self::empty(provider)?;
        fs::create_dir(site.data())?;
        fs::copy(other.keys_file(), site.keys_file())?;
        site.keys = other.keys.iter().take(used).cloned().collect();
        Ok(site)
    }

    fn empty(provider: SocketAddr) -> anyhow::Result<Self> {
        let site = Self { keys: Vec::new(), dir: tempfile::tempdir()? };
        fs::write(site.config(), configuration(&site.data(), provider))?;
        Ok(site)
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("server.toml")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn keys_file(&self) -> PathBuf {
        self.data().join("mk.db")
    }

    /// Starts a server on it.
    pub(crate) fn serve(&self) -> anyhow::Result<Server> {
        let (home, launch) = (self.dir.path(), process::program(Path::new(serve::MK)));
        let (process, address) = serve::start(launch, home, &self.config(), &home.join("log"))?;
        Ok(Server { address, process })
    }

    /// Waits until key rows are cached.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let log = self.data().join("mk.db-wal");
        let late = Instant::now() + TIMEOUT;
        loop {
            let written = fs::metadata(&log)
                .and_then(|file| file.modified())
                .with_context(|| format!("cannot tell when {} was written", log.display()))?;
            if SystemTime::now().duration_since(written).is_ok_and(|age| age > SETTLED) {
                return Ok(());
            }
            ensure!(Instant::now() < late, "{} is written to again and again", log.display());
            sleep(POLL).await;
        }
    }
}

fn configuration(data: &Path, provider: SocketAddr) -> String {
    let data = data.display();
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
[limits]
per_minute = 1000000000
per_day = 1000000000
[providers.fast]
kind = "openai"
base_url = "http://{provider}/v1"
max_concurrent = 4096
"#
    )
}
