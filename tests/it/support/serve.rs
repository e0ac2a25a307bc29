//! `mk serve` as a process of its own, for what only a process can suffer: signals, `kill -9`, a log that is read.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::mk::Mk;
use super::panel;

/// A running `mk serve`; killed when dropped.
pub struct Serve {
    /// Its base address, as its log tells it.
    pub base: String,
    child: Child,
    log: Option<JoinHandle<String>>,
}

/// A call of `mk serve` on a free port, with the usual panel at `provider`; `more` are further top-level settings.
pub fn call(provider: &str, more: &str) -> Mk {
    let mk = Mk::new();
    let (file, data) = (mk.home().join("server.toml"), mk.home().join("data"));
    std::fs::write(&file, format!("{more}\n{}", panel::server_file(provider, &data))).unwrap();
    mk.args(["serve"]).env("MK_CONFIG", file.to_str().unwrap())
}

impl Serve {
    /// Starts it and waits until it serves.
    pub fn start(mk: &Mk) -> Self {
        let mut child =
            mk.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (serving, is_serving) = mpsc::channel();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some(address) = address(&line) {
                    // A second such line would have nobody to tell.
                    let _ = serving.send(address);
                }
                log.extend([&line, "\n"]);
            }
            log
        });
        let Ok(base) = is_serving.recv_timeout(Duration::from_secs(20)) else {
            let _ = child.kill();
            panic!("it does not serve: {}", log.join().unwrap());
        };
        Self { base, child, log: Some(log) }
    }

    /// Its process id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// `kill -9`, as a machine that runs out of memory would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end: how, and what it has logged.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let log = self.log.take().map(|log| log.join().unwrap());
        (status, log.unwrap_or_default())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a process a signal by its name.
pub fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
    assert!(sent.success());
}

/// The data directory of a [`call`].
pub fn data_dir(home: &Path) -> std::path::PathBuf {
    home.join("data")
}

/// The address of a server whose log is this, which is closed once it has told it.
pub fn first_address(log: impl std::io::Read) -> String {
    BufReader::new(log)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| address(&line))
        .expect("it does not serve")
}

fn address(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line["message"] == "serving").then(|| line["address"].as_str().unwrap().to_owned())
}
