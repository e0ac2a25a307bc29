//! `mk serve` as a user runs it: keys, both windows of its limits, ledger and log on, in a directory of its own.
//!
//! The limits are on and out of reach; the log goes to a file, a line a request.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::process::{self, Process};
use crate::provider;

/// Where chat completions are asked for.
pub(crate) const CHAT: &str = "/inference/v1/chat/completions";
/// An open page.
pub(crate) const HEALTH: &str = "/inference/v1/health";
/// The model that answers at once.
pub(crate) const MODEL: &str = "fast/model";
/// The model that thinks first.
pub(crate) const SLOW_MODEL: &str = "slow/model";

const MK: &str = env!("CARGO_BIN_EXE_mk");
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

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

        let key = create_key(dir.path(), &config, &[])?;
        let scarce_key = create_key(dir.path(), &config, &["--per-day", "1"])?;
        let foreign_key = create_key(dir.path(), &elsewhere, &[])?;

        let log = dir.path().join("log");
        let mut serve = at_home(process::program(Path::new(MK)), dir.path(), &config);
        let mut process = Process::start(serve.arg("serve").stderr(File::create(&log)?))?;
        let address = address(&mut process, &log)?;
        Ok(Self { address, key, scarce_key, foreign_key, process, _dir: dir })
    }
}

/// Clean surroundings: nothing of whoever runs the bench is seen.
fn at_home(mut command: Command, home: &Path, config: &Path) -> Command {
    command.env_clear().env("HOME", home).env("MK_CONFIG", config).current_dir(home);
    command
}

fn create_key(home: &Path, config: &Path, limits: &[&str]) -> anyhow::Result<String> {
    let mut create = at_home(Command::new(MK), home, config);
    let made = create.args(["keys", "create", "--service", "inference"]).args(limits).output()?;
    if !made.status.success() {
        bail!("mk makes no key: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// Waits until its log tells where it serves.
fn address(process: &mut Process, log: &Path) -> anyhow::Result<SocketAddr> {
    let late = Instant::now() + PATIENCE;
    loop {
        let has_ended = process.has_ended()?;
        let text = fs::read_to_string(log)?;
        if let Some(address) = text.lines().find_map(serving) {
            let address = address.split_once("://").context("its address is no URL")?.1;
            return address.parse().with_context(|| format!("mk serves at {address}"));
        }
        if has_ended || Instant::now() > late {
            bail!("mk does not start: {text}");
        }
        thread::sleep(LOOK);
    }
}

fn serving(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_it = line["message"] == "serving";
    is_it.then(|| line["address"].as_str().map(str::to_owned)).flatten()
}

fn configuration(data: &Path, provider: SocketAddr) -> String {
    let (data, slow) = (data.display(), provider::SLOW);
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
[limits]
per_minute = 1000000000
per_day = 1000000000
open_pages_per_minute = 1000000000
failed_auth_per_minute = 1000000000
[providers.fast]
kind = "openai"
base_url = "http://{provider}/v1"
max_concurrent = 4096
[providers.slow]
kind = "openai"
base_url = "http://{provider}{slow}/v1"
max_concurrent = 4096
"#
    )
}
