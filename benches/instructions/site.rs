//! The server whose instructions are counted: `mk serve` as a user runs it, in the simulator, in front of the fake
//! provider.
//!
//! Limits are enabled but never reached, and the log goes to a file, one line per request. Verifications use the
//! sandbox models inside the server, so that they make no calls whose work would hide what is counted.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use tokio::time::{Instant, sleep};

use crate::limits::OUT_OF_REACH;
use crate::process::Process;
use crate::valgrind::Counter;
use crate::{protocols, serve};

/// The model that answers at once.
pub(crate) const MODEL: &str = "fake/model";
/// Key rows are cached only if the last write to the database was more than 3 s ago; until then each lookup reads the
/// database (`src/storage/sqlite/key_cache/mod.rs` says why), which takes some 10,000 instructions more.
const SETTLED: Duration = Duration::from_millis(3500);
const TIMEOUT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);

/// A running server.
pub(crate) struct Site {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// A key for chat.
    pub(crate) chat_key: String,
    /// A key for verifications.
    pub(crate) verify_key: String,
    /// A well-formed key that this server has never seen.
    pub(crate) foreign_key: String,
    /// Counts its instructions.
    pub(crate) counter: Counter,
    keys: PathBuf,
    _process: Process,
    _dir: tempfile::TempDir,
}

impl Site {
    /// Starts it and waits until it serves. Counts are written to files in `counts`.
    pub(crate) fn start(provider: SocketAddr, counts: &Path) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (home, data) = (dir.path(), dir.path().join("data"));
        let config = home.join("server.toml");
        fs::write(&config, configuration(&data, provider))?;
        let elsewhere = home.join("elsewhere.toml");
        fs::write(&elsewhere, configuration(&home.join("elsewhere"), provider))?;
        let key = |config: &Path, service: &str| serve::create_key(home, config, &["--service", service]);
        let (chat_key, verify_key) = (key(&config, "inference")?, key(&config, "verify")?);
        let foreign_key = key(&elsewhere, "inference")?;

        let mut counter = Counter::new(home, counts)?;
        let launch = counter.around(Path::new(serve::MK));
        let (process, address) = serve::start(launch, home, &config, &home.join("log"))?;
        let pid = process.pids().first().copied().context("the server has no number")?;
        counter.started(pid);
        let keys = data.join("mk.db-wal");
        Ok(Self { address, chat_key, verify_key, foreign_key, counter, keys, _process: process, _dir: dir })
    }

    /// Waits until key rows are cached.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let late = Instant::now() + TIMEOUT;
        loop {
            let written = fs::metadata(&self.keys)
                .and_then(|file| file.modified())
                .with_context(|| format!("cannot tell when {} was written", self.keys.display()))?;
            if SystemTime::now().duration_since(written).is_ok_and(|age| age > SETTLED) {
                return Ok(());
            }
            ensure!(Instant::now() < late, "{} is written to again and again", self.keys.display());
            sleep(POLL).await;
        }
    }
}

fn configuration(data: &Path, provider: SocketAddr) -> String {
    let (data, others) = (data.display(), protocols::providers(provider));
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
{OUT_OF_REACH}
[providers.fake]
kind = "openai"
base_url = "http://{provider}/v1"
responses = false
{others}
[providers.sandbox]
kind = "sandbox"
[verify]
extractor = "sandbox/extractor"
panel = ["sandbox/alpha", "sandbox/beta", "sandbox/gamma"]
"#
    )
}
