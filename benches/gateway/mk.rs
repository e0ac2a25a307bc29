//! `mk serve` as a user runs it, in its own directory: with keys, both limit windows, ledger and log enabled.
//!
//! The limits are enabled but never reached; the log goes to a file, one line per request.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use crate::limits::OUT_OF_REACH;
use crate::process::{self, Process};
use crate::{completions, protocols, serve};

/// The model that answers at once.
pub(crate) const MODEL: &str = "fast/model";
/// The model that takes some time.
pub(crate) const SLOW_MODEL: &str = "slow/model";

/// A running `mk serve`.
pub(crate) struct Mk {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// A key that may do everything.
    pub(crate) key: String,
    /// A key with one request a day.
    pub(crate) scarce_key: String,
    /// A well-formed key that this server has never seen.
    pub(crate) foreign_key: String,
    /// The server.
    pub(crate) process: Process,
    _dir: tempfile::TempDir,
}

impl Mk {
    /// Starts it in front of `provider` and waits until it serves.
    pub(crate) fn start(provider: SocketAddr) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let config = dir.path().join("server.toml");
        fs::write(&config, configuration(&dir.path().join("data"), provider))?;
        let elsewhere = dir.path().join("elsewhere.toml");
        fs::write(&elsewhere, configuration(&dir.path().join("elsewhere"), provider))?;

        let create = ["--service", "inference"];
        let key = serve::create_key(dir.path(), &config, &create)?;
        let scarce_key =
            serve::create_key(dir.path(), &config, &[&create[..], &["--per-day", "1"]].concat())?;
        let foreign_key = serve::create_key(dir.path(), &elsewhere, &create)?;

        let (process, address) = serve::start(
            process::program(Path::new(serve::MK)),
            dir.path(),
            &config,
            &dir.path().join("log"),
        )?;
        Ok(Self { address, key, scarce_key, foreign_key, process, _dir: dir })
    }
}

fn configuration(data: &Path, provider: SocketAddr) -> String {
    let (data, slow, others) = (data.display(), completions::SLOW, protocols::providers(provider));
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
{OUT_OF_REACH}
[providers.fast]
kind = "openai"
base_url = "http://{provider}/v1"
responses = false
max_concurrent = 4096
[providers.slow]
kind = "openai"
base_url = "http://{provider}{slow}/v1"
max_concurrent = 4096
{others}"#
    )
}
