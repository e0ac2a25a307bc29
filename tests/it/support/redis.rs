//! A real Redis or Valkey for tests of shared limits. It listens on a Unix socket in a temporary directory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mk::limits::LimitsStore;
use redis::{Client, Connection};
use tempfile::TempDir;

/// A running store, killed when dropped.
pub struct Redis {
    process: Option<Child>,
    settings: &'static [&'static str],
    dir: TempDir,
}

impl Redis {
    /// Starts a store.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a store with these settings.
    pub fn start_with(settings: &'static [&'static str]) -> Self {
        let mut redis = Self { process: None, settings, dir: tempfile::tempdir().unwrap() };
        redis.begin();
        redis
    }

    /// Starts it, empty, and waits until it answers.
    pub fn begin(&mut self) {
        let program = ["redis-server", "valkey-server"].into_iter().find_map(in_path);
        let program = program.expect("redis-server or valkey-server must be installed for this test");
        let started = Command::new(program)
            .current_dir(self.dir.path())
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(self.socket())
            .args(self.settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(started.unwrap());
        for _ in 0..1000 {
            if self
                .client()
                .get_connection()
                .is_ok_and(|mut there| redis::cmd("PING").exec(&mut there).is_ok())
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the store does not start");
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        std::fs::remove_file(self.socket()).unwrap();
    }

    /// Its URL, as `limits_url` takes it.
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The parsed URL.
    pub fn store(&self) -> LimitsStore {
        LimitsStore::parse(&self.url()).unwrap()
    }

    /// Executes a command.
    pub fn command(&self, command: &[&str]) {
        let mut named = redis::cmd(command[0]);
        named.arg(&command[1..]).exec(&mut self.connection()).unwrap();
    }

    /// Lets time pass for all per-minute windows by moving their entries into the past, or ahead if negative.
    pub fn let_pass(&self, seconds: i64) {
        let mut connection = self.connection();
        let minutes: Vec<String> = redis::cmd("KEYS").arg("*:minute").query(&mut connection).unwrap();
        for minute in minutes {
            let admitted: Vec<i64> =
                redis::cmd("ZRANGE").arg(&minute).arg(0).arg(-1).query(&mut connection).unwrap();
            redis::cmd("DEL").arg(&minute).exec(&mut connection).unwrap();
            for at in admitted {
                let moved = at - seconds * 1_000_000;
                redis::cmd("ZADD").arg(&minute).arg(moved).arg(moved).exec(&mut connection).unwrap();
            }
        }
    }

    fn connection(&self) -> Connection {
        self.client().get_connection().unwrap()
    }

    fn client(&self) -> Client {
        Client::open(self.url()).unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn in_path(program: &str) -> Option<OsString> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())?;
    Some(found.into_os_string())
}
