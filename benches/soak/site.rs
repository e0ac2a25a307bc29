//! The server under test and its keys: `mk serve` in front of the fake provider, as an operator would set it up.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::process::{self, Process};
use crate::serve;

/// The price of a prompt token in nano-dollars, for every model but one.
pub(crate) const PROMPT_PRICE: u64 = 250;
/// The price of a completion token.
pub(crate) const COMPLETION_PRICE: u64 = 2000;
/// The model without a known price.
pub(crate) const UNPRICED: &str = "gemini/free";
/// The limit per minute of the key that exceeds it.
pub(crate) const SCARCE: u32 = 30;

/// A running server.
pub(crate) struct Site {
    /// Its base address.
    pub(crate) base: String,
    /// Its keys.
    pub(crate) keys: Keys,
    /// Its log.
    pub(crate) log: PathBuf,
    /// Its data directory.
    pub(crate) data: PathBuf,
    /// The server.
    pub(crate) process: Process,
    _dir: tempfile::TempDir,
}

/// The keys of a server.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) verify: String,
    pub(crate) inference: String,
    pub(crate) console: String,
    /// For chat, limited to [`SCARCE`] requests per minute.
    pub(crate) scarce: String,
    /// A well-formed key of another server.
    pub(crate) foreign: String,
}

impl Site {
    /// Starts it in front of `provider` and waits until it serves.
    pub(crate) fn start(provider: SocketAddr) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (home, data) = (dir.path(), dir.path().join("data"));
        let config = home.join("server.toml");
        fs::write(&config, configuration(&data, provider))?;
        let elsewhere = home.join("elsewhere.toml");
        fs::write(&elsewhere, configuration(&home.join("elsewhere"), provider))?;
        let key = |service: &str| serve::create_key(home, &config, &["--service", service]);
        let scarce = SCARCE.to_string();
        let keys = Keys {
            verify: key("verify")?,
            inference: key("inference")?,
            console: key("console")?,
            scarce: serve::create_key(home, &config, &["--service", "inference", "--per-minute", &scarce])?,
            foreign: serve::create_key(home, &elsewhere, &["--service", "inference"])?,
        };
        let log = home.join("log");
        let (process, address): (Process, SocketAddr) =
            serve::start(process::program(Path::new(serve::MK)), home, &config, &log)?;
        Ok(Self { base: format!("http://{address}"), keys, log, data, process, _dir: dir })
    }
}

/// Timeouts are short, so that silent calls are soon abandoned, but far longer than what the others take.
const TIMEOUT: &str = "first_byte_timeout = \"8s\"\nidle_timeout = \"8s\"\nmax_concurrent = 1024\n";
/// Configured by name, so that it has its own label in the metrics even while it fails.
const UNPRICED_MODEL: &str = "[providers.gemini.models.free]\nretries = 2";

fn configuration(data: &Path, provider: SocketAddr) -> String {
    let data = data.display();
    let mut providers = String::new();
    for (name, kind, path) in [
        ("plain", "openai", "/v1"),
        ("messages", "anthropic", "/anthropic/v1"),
        ("gemini", "google", "/google/v1beta"),
    ] {
        let base_url = format!("http://{provider}{path}");
        let provider = format!("\n[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\n");
        providers.extend([provider.as_str(), TIMEOUT]);
        for model in ["extractor", "one", "two", "three", "four", "fast"] {
            providers.extend(["[providers.", name, ".models.", model, "]\n", &prices()]);
        }
    }
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data}"
[limits]
per_minute = 0
per_day = 0
open_pages_per_minute = 0
failed_auth_per_minute = 0
[verify]
extractor = "plain/extractor"
extractor_fallbacks = ["messages/extractor"]
auditor = "none"
panel = ["plain/one", "messages/two", "gemini/three"]
standby = ["plain/four"]
[inference.fallbacks]
"plain/fast" = ["messages/fast"]
{providers}
{UNPRICED_MODEL}
"#
    )
}

fn prices() -> String {
    let (prompt, completion) = (usd_per_mtok(PROMPT_PRICE), usd_per_mtok(COMPLETION_PRICE));
    format!("input_usd_per_mtok = {prompt}\noutput_usd_per_mtok = {completion}\n")
}

/// Nano-dollars per token are thousandths of a dollar per million.
fn usd_per_mtok(nano: u64) -> String {
    format!("{}.{:03}", nano / 1000, nano % 1000)
}
