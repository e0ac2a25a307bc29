//! The real binary, with a clean environment and a temporary home directory.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

/// A server that nobody can reach, whatever runs on this machine: nothing can listen on port 0.
pub const NOBODY: &str = "http://127.0.0.1:0";

/// Well-formed keys that no server knows.
pub const VERIFY_KEY: &str = "mk_verify_000000000000000000000000004ANCeP";
pub const INFERENCE_KEY: &str = "mk_inference_000000000000000000000000002QDDfN";
pub const CONSOLE_KEY: &str = "mk_console_000000000000000000000000003k9SGo";

/// A command line of the binary under construction.
#[derive(Clone)]
pub struct Mk {
    home: Arc<TempDir>,
    launcher: Vec<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
}

/// The output of a finished command.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// The exit code; fails if a signal ended the process.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// The one JSON document on stdout.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A command on this data directory, run as a separate process.
pub fn operator(data: &Path, arguments: &[&str]) -> Mk {
    Mk::new().args(arguments.iter().copied()).env("MK_DATA_DIR", data.to_str().unwrap())
}

impl Mk {
    /// A command of a user who has never run `mk` before.
    pub fn new() -> Self {
        let home = Arc::new(tempfile::tempdir().unwrap());
        Self { home, launcher: Vec::new(), arguments: Vec::new(), variables: Vec::new(), stdin: None }
    }

    /// Appends arguments.
    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// Starts it from a shell that first runs these commands, such as `ulimit` or `mount`.
    pub fn after(mut self, commands: &str) -> Self {
        let script = format!("{commands} && exec \"$0\" \"$@\"");
        self.launcher = ["sh", "-c", &script].map(str::to_owned).to_vec();
        self
    }

    /// Starts it through a program that takes the command line as arguments.
    pub fn through(mut self, launcher: &[&str]) -> Self {
        self.launcher = launcher.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets its stdin, which is empty by default.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Its home directory.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The command, for tests that start it themselves.
    pub fn command(&self) -> Command {
        let mk = [env!("CARGO_BIN_EXE_mk").to_owned()];
        let mut words = self.launcher.iter().chain(&mk).chain(&self.arguments);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home.path())
            .env("LANG", "C.UTF-8")
            .env("COLUMNS", "100")
            .env("OLLAMA_HOST", NOBODY)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path());
        command
    }

    /// Runs it to completion.
    pub fn run(&self) -> CommandOutput {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        if let Some(text) = &self.stdin {
            // A program that does not read its input may exit before all of it is written.
            let _ = stdin.write_all(text);
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        CommandOutput {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it without blocking a server in this runtime.
    pub async fn run_beside(&self) -> CommandOutput {
        let call = self.clone();
        tokio::task::spawn_blocking(move || call.run()).await.unwrap()
    }
}
