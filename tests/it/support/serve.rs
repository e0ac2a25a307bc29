//! `mk serve` as a separate process, for tests of signals, `kill -9` and the log on stderr.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::mk::Mk;
use super::panel;

/// A running `mk serve`, killed when dropped.
pub struct Serve {
    /// Its base URL, taken from its log.
    pub base: String,
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// An `mk serve` command on a free port, with the usual panel at `provider`; `more` adds top-level settings.
pub fn call(provider: &str, more: &str) -> Mk {
    let mk = Mk::new();
    let (file, data) = (mk.home().join("server.toml"), mk.home().join("data"));
    std::fs::write(&file, format!("{more}\n{}", panel::server_file(provider, &data))).unwrap();
    mk.args(["serve"]).env("MK_CONFIG", file.to_str().unwrap())
}

impl Serve {
    /// Starts it and waits until it is serving.
    pub fn start(mk: &Mk) -> Self {
        let mut child =
            mk.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (serving, is_serving) = mpsc::channel();
        let log = Arc::new(Mutex::new(String::new()));
        let written = log.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(address) = address(&line) {
                    // Only the first such line has a receiver.
                    let _ = serving.send(address);
                }
                written.lock().unwrap().extend([&line, "\n"]);
            }
        });
        let Ok(base) = is_serving.recv_timeout(Duration::from_secs(20)) else {
            let _ = child.kill();
            reader.join().unwrap();
            panic!("the server did not start: {}", log.lock().unwrap());
        };
        Self { base, child, log, reader: Some(reader) }
    }

    /// As [`Self::start`], without blocking a provider in this runtime.
    pub async fn start_beside(mk: &Mk) -> Self {
        let mk = mk.clone();
        tokio::task::spawn_blocking(move || Self::start(&mk)).await.unwrap()
    }

    /// Its process id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory in KB, from Linux's `/proc`.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Its current number of threads, from Linux's `/proc`.
    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.process())).unwrap().count()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// What it has logged so far.
    pub fn logged(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has logged `count` lines that satisfy `holds`, and returns them.
    pub async fn until_logged(&self, count: usize, holds: impl Fn(&str) -> bool) -> Vec<String> {
        let limit = Instant::now() + Duration::from_mins(1);
        loop {
            let log = self.logged();
            let found: Vec<String> = log.lines().filter(|line| holds(line)).map(str::to_owned).collect();
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < limit, "not logged: {log}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills it with SIGKILL, as the OOM killer would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for it to exit; returns the exit status and the log.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let log = self.log.lock().unwrap().clone();
        (status, log)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have exited already.
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

/// The data directory of a command made by [`call`].
pub fn data_dir(home: &Path) -> std::path::PathBuf {
    home.join("data")
}

/// The address in a server's log. Closes the log once it has been read.
pub fn first_address(log: impl std::io::Read) -> String {
    BufReader::new(log)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| address(&line))
        .expect("the server did not start")
}

fn address(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line["message"] == "serving").then(|| line["address"].as_str().unwrap().to_owned())
}
