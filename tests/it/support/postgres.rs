//! A real PostgreSQL for tests of shared storage: each test starts its own temporary cluster, which ends with the test.
//! The processes to kill or freeze are found in Linux's `/proc`.
//!
//! PostgreSQL refuses to run as root. If the tests do, it runs as the user `postgres` that its package creates.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use super::tls::Identity;

/// The role that owns the database `mk`, and its password over TCP. It has no superuser rights.
pub const USER: &str = "mk";
pub const PASSWORD: &str = "hunter2";

/// The time limit for a cluster to start or stop.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running cluster with the database `mk`.
pub struct Postgres {
    dir: TempDir,
    port: u16,
    postmaster: Option<Child>,
}

impl Postgres {
    /// Starts a cluster.
    pub fn start() -> Self {
        Self::start_with("", "host")
    }

    /// Starts a cluster that accepts TCP connections only with TLS and uses this certificate.
    pub fn start_tls(identity: &Identity) -> Self {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        Self::start_from("ssl = on\n", "hostssl", |data| {
            std::fs::write(data.join("server.crt"), text(&identity.files.cert)).unwrap();
            std::fs::write(data.join("server.key"), text(&identity.files.key)).unwrap();
            mode(&data.join("server.key"), 0o600);
        })
    }

    /// Starts a cluster with further settings; `host` is the record type of `pg_hba.conf` for TCP connections.
    fn start_with(settings: &str, host: &str) -> Self {
        Self::start_from(settings, host, |_| {})
    }

    fn start_from(settings: &str, host: &str, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = Self { dir, port: free_port(), postmaster: None };
        give(cluster.dir.path());
        let made = cluster
            .program("initdb")
            .args(["-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let data = cluster.dir.path().join("data");
        let port = cluster.port;
        let socket = cluster.dir.path().display();
        // Acknowledged commits survive `kill -9` even without `fsync`, because the operating system keeps running.
        let all = format!(
            "{settings}port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{socket}'\n\
             fsync = off\nshared_buffers = 16MB\njit = off\n"
        );
        std::fs::write(data.join("postgresql.auto.conf"), all).unwrap();
        let rules = format!("local all all trust\n{host} all all 127.0.0.1/32 scram-sha-256\n");
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        prepare(&data);
        for entry in std::fs::read_dir(&data).unwrap() {
            give(&entry.unwrap().path());
        }
        cluster.begin();
        cluster.sql("postgres", &format!("CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'"));
        cluster.new_database(USER, "");
        cluster
    }

    /// Starts it, keeping its data, and waits until it answers.
    pub fn begin(&mut self) {
        let limit = Instant::now() + PATIENCE;
        loop {
            // PostgreSQL refuses to start until the last process of a killed predecessor is gone.
            if !self.is_running() {
                self.postmaster = Some(self.spawn());
            }
            if self.query("postgres", "SELECT 1").is_ok() {
                return;
            }
            assert!(Instant::now() < limit, "PostgreSQL does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Shuts it down in order and disconnects all clients.
    pub fn stop(&mut self) {
        self.end(Signal::INT);
    }

    /// Kills all its processes at once, like a power failure.
    pub fn kill(&mut self) {
        self.freeze();
        for process in self.processes() {
            let _ = kill_process(process, Signal::KILL);
        }
        self.postmaster.take().unwrap().wait().unwrap();
    }

    /// Stops all its processes: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        let limit = Instant::now() + PATIENCE;
        // A process may still fork before the signal reaches it.
        while !self.processes().into_iter().all(is_stopped) {
            for process in self.processes() {
                let _ = kill_process(process, Signal::STOP);
            }
            assert!(Instant::now() < limit, "PostgreSQL does not stop");
        }
    }

    /// Continues the stopped processes.
    pub fn thaw(&self) {
        for process in self.processes() {
            let _ = kill_process(process, Signal::CONT);
        }
    }

    /// The URL of the database `mk`, over TCP with a password.
    pub fn url(&self) -> String {
        self.url_of(USER)
    }

    /// As [`Self::url`], for another database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of the database `mk` over the Unix socket, without a password.
    pub fn socket_url(&self) -> String {
        let dir = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{dir}:{}/{USER}", self.port)
    }

    /// Its TCP port on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates a database owned by the role `mk`.
    pub fn new_database(&self, name: &str, options: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {USER} {options}"));
    }

    /// Executes statements as superuser.
    pub fn sql(&self, database: &str, statements: &str) {
        self.query(database, statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// The rows of a query run as superuser, as text; NULL is empty.
    pub fn rows(&self, database: &str, query: &str) -> Vec<Vec<String>> {
        self.query(database, query).unwrap_or_else(|error| panic!("{query}: {error:?}"))
    }

    /// The single number that a query returns.
    pub fn number(&self, database: &str, query: &str) -> i64 {
        self.rows(database, query)[0][0].parse().unwrap()
    }

    fn query(&self, database: &str, query: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
        let mut config = Config::new();
        config.host_path(self.dir.path()).port(self.port).user("postgres").dbname(database);
        config.connect_timeout(Duration::from_secs(5));
        let asked = async move {
            let (client, connection) = config.connect(NoTls).await?;
            let driver = tokio::spawn(connection);
            let found = client.simple_query(query).await;
            drop(client);
            let _ = driver.await;
            found
        };
        // Tests call this from within an async runtime, which cannot block on another one.
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(asked)
        };
        let found = std::thread::scope(|scope| scope.spawn(run).join().unwrap())?;
        let rows = found.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let texts = |row: tokio_postgres::SimpleQueryRow| {
            (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
        };
        Ok(rows.map(texts).collect())
    }

    fn spawn(&self) -> Child {
        let log = self.dir.path().join("log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut program = self.program("postgres");
        program.args(["-D", "data"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        program.spawn().unwrap()
    }

    /// One of its programs, run as a user other than root.
    fn program(&self, name: &str) -> Command {
        let program = programs().join(name);
        let mut command = if getuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.dir.path()).env("LC_ALL", "C");
        command
    }

    fn is_running(&mut self) -> bool {
        self.postmaster.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        let _ = kill_process(Pid::from_child(&postmaster), signal);
        let limit = Instant::now() + PATIENCE;
        while postmaster.try_wait().unwrap().is_none() {
            if Instant::now() > limit {
                let _ = postmaster.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Its processes, the postmaster first.
    fn processes(&self) -> Vec<Pid> {
        let first = Pid::from_child(self.postmaster.as_ref().unwrap());
        let others = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid = Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?)?;
            let parent = status(pid)?.1;
            (parent == first.as_raw_nonzero().get()).then_some(pid)
        });
        std::iter::once(first).chain(others).collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.is_running() {
            self.thaw();
            // An immediate shutdown still frees shared memory and other system resources.
            self.end(Signal::QUIT);
        }
    }
}

/// The directory of its programs: on the path, or where Debian puts them, latest version first.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let mut of_debian: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    of_debian.sort_by_key(|dir| {
        let version = dir.iter().rev().nth(1).and_then(|name| name.to_str()?.parse::<u32>().ok());
        std::cmp::Reverse(version)
    });
    let all = in_path.into_iter().chain(of_debian);
    let found =
        all.into_iter().find(|dir| ["initdb", "postgres"].iter().all(|name| dir.join(name).is_file()));
    found.expect("PostgreSQL's initdb and postgres must be installed for this test")
}

/// State and parent of a process, if it exists.
fn status(process: Pid) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // After the program's name, which may contain anything.
    let (state, parent) = stat.rsplit_once(") ")?.1.split_once(' ')?;
    Some((state.chars().next()?, parent.split(' ').next()?.parse().ok()?))
}

/// Whether a process is stopped or has ended.
fn is_stopped(process: Pid) -> bool {
    status(process).is_none_or(|(state, _)| ['T', 'Z', 'X'].contains(&state))
}

/// A free port, below the ephemeral range so that it is still free when PostgreSQL is restarted.
fn free_port() -> u16 {
    let mut random = [0; 2];
    loop {
        getrandom::fill(&mut random).unwrap();
        let port = 20_000 + u16::from_ne_bytes(random) % 12_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Makes `postgres` the owner if the tests run as root.
fn give(path: &Path) {
    if getuid().is_root() {
        let given = Command::new("chown").arg("postgres:postgres").arg(path).status().unwrap();
        assert!(given.success(), "chown failed; is there a user `postgres`?");
    }
}

fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
