//! The release binary as a user runs it: keys created by its own command, and a server whose log goes to a file.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::process::{self, Process};

/// The binary that is measured.
pub(crate) const MK: &str = env!("CARGO_BIN_EXE_mk");
/// Long enough for a server in a simulator on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);

/// Creates a key in the database that `config` names; `options` are those of `mk keys create`.
pub(crate) fn create_key(home: &Path, config: &Path, options: &[&str]) -> anyhow::Result<String> {
    let mut create = at_home(Command::new(MK), home, config);
    let made = create.args(["keys", "create"]).args(options).output()?;
    if !made.status.success() {
        bail!("mk makes no key: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// Starts `mk serve` with its log in the file `log`, and waits until the log contains its address. `launch` runs
/// [`MK`], possibly within another program.
pub(crate) fn start(
    launch: Command,
    home: &Path,
    config: &Path,
    log: &Path,
) -> anyhow::Result<(Process, SocketAddr)> {
    let mut serve = at_home(launch, home, config);
    let mut process = Process::of(process::start(serve.arg("serve").stderr(File::create(log)?))?);
    let address = address(&mut process, log)?;
    Ok((process, address))
}

/// Isolates the command from the environment of the user who runs the bench.
fn at_home(mut command: Command, home: &Path, config: &Path) -> Command {
    command.env_clear().env("HOME", home).env("MK_CONFIG", config).current_dir(home);
    command
}

fn address(process: &mut Process, log: &Path) -> anyhow::Result<SocketAddr> {
    let late = Instant::now() + TIMEOUT;
    loop {
        let has_ended = process.ended()?.is_some();
        let text = fs::read_to_string(log)?;
        if let Some(address) = text.lines().find_map(serving) {
            let address = address.split_once("://").context("its address is no URL")?.1;
            return address.parse().with_context(|| format!("mk serves at {address}"));
        }
        if has_ended || Instant::now() > late {
            bail!("mk does not start: {text}");
        }
        thread::sleep(POLL);
    }
}

fn serving(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_it = line["message"] == "serving";
    is_it.then(|| line["address"].as_str().map(str::to_owned)).flatten()
}
