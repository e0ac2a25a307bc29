//! `mk serve` as a user runs it, with a key for verifications and without limits.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use crate::process::{self, Process};
use crate::serve;

/// As large as can be set, so that calls do not queue.
const MAX_CONCURRENT: usize = 10_000;

/// A running server.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its key.
    pub(crate) key: String,
    /// The server.
    pub(crate) process: Process,
    _dir: tempfile::TempDir,
}

impl Server {
    /// Starts it in front of models whose base address is `provider`, without an auditor.
    pub(crate) fn start(provider: &str) -> anyhow::Result<Self> {
        Self::start_with(provider, "none")
    }

    /// Starts it with an auditor, which is a model of the same provider.
    pub(crate) fn start_audited(provider: &str) -> anyhow::Result<Self> {
        Self::start_with(provider, "fake/auditor")
    }

    fn start_with(provider: &str, auditor: &str) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let config = dir.path().join("server.toml");
        fs::write(&config, configuration(&dir.path().join("data"), provider, auditor))?;
        let key = serve::create_key(dir.path(), &config, &["--service", "verify"])?;
        let launch = process::program(Path::new(serve::MK));
        let (process, address) = serve::start(launch, dir.path(), &config, &dir.path().join("log"))?;
        Ok(Self { address, key, process, _dir: dir })
    }

    /// Its resident memory, where the system reports it.
    pub(crate) fn resident_mb(&self) -> Option<f64> {
        self.process.resident_kb().map(|kb| f64::from(kb) / 1024.0)
    }
}

fn configuration(data: &Path, provider: &str, auditor: &str) -> String {
    let data = data.display();
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
[limits]
per_minute = 0
per_day = 0
[providers.fake]
kind = "openai"
base_url = "{provider}"
max_concurrent = {MAX_CONCURRENT}
[verify]
extractor = "fake/extractor"
auditor = "{auditor}"
panel = ["fake/one", "fake/two", "fake/three"]
max_concurrent = {MAX_CONCURRENT}
deadline = "3600s"
model_timeout = "3600s"
"#
    )
}
