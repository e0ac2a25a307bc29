//! A real PostgreSQL, for the tests of storage that servers share: a cluster of its own for each test, in a directory of
//! its own, which ends with the test. What is killed and frozen is found in `/proc`, as Linux has it.
//!
//! PostgreSQL refuses to run as root. Where the tests do, it runs as the user `postgres`, whom its package makes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use super::tls::Identity;

/// The role that owns the database `mk`, and its password over TCP. It may do nothing that a superuser may.
pub const USER: &str = "mk";
pub const PASSWORD: &str = "hunter2";

/// A starting or ending cluster gets so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running cluster with the database `mk`.
pub struct Postgres {
    dir: TempDir,
    port: u16,
    postmaster: Option<Child>,
}

impl Postgres {
    /// Starts one.
    pub fn start() -> Self {
        Self::start_with("", "host")
    }

    /// Starts one that is spoken to over TCP with TLS only, with this certificate.
    pub fn start_tls(identity: &Identity) -> Self {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap();
        Self::start_from("ssl = on\n", "hostssl", |data| {
            std::fs::write(data.join("server.crt"), text(&identity.files.cert)).unwrap();
            std::fs::write(data.join("server.key"), text(&identity.files.key)).unwrap();
            mode(&data.join("server.key"), 0o600);
        })
    }

    /// Starts one with further settings; `host` is the kind of line that lets in over TCP.
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
        // Commits that were acknowledged outlive the death of all its processes without `fsync`: the system lives on.
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

    /// Starts it again, with what it held, and waits until it answers.
    pub fn begin(&mut self) {
        let limit = Instant::now() + PATIENCE;
        loop {
            // Until the last process of a killed one is gone, the next one refuses to start.
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

    /// Ends it in order: whoever is connected is thrown out.
    pub fn stop(&mut self) {
        self.end(Signal::INT);
    }

    /// Kills all its processes at once, as a machine without power would.
    pub fn kill(&mut self) {
        self.freeze();
        for process in self.processes() {
            let _ = kill_process(process, Signal::KILL);
        }
        self.postmaster.take().unwrap().wait().unwrap();
    }

    /// All its processes stand still: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        let limit = Instant::now() + PATIENCE;
        // One that runs when it is told may still make another one.
        while !self.processes().into_iter().all(is_stopped) {
            for process in self.processes() {
                let _ = kill_process(process, Signal::STOP);
            }
            assert!(Instant::now() < limit, "PostgreSQL goes on");
        }
    }

    /// They go on.
    pub fn thaw(&self) {
        for process in self.processes() {
            let _ = kill_process(process, Signal::CONT);
        }
    }

    /// The address of the database `mk`, over TCP and with a password.
    pub fn url(&self) -> String {
        self.url_of(USER)
    }

    /// The same of another database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// The address of the database `mk` by the socket, where no password is asked for.
    pub fn socket_url(&self) -> String {
        let dir = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{dir}:{}/{USER}", self.port)
    }

    /// Where it listens, on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes a database that belongs to the role `mk`.
    pub fn new_database(&self, name: &str, options: &str) {
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER {USER} {options}"));
    }

    /// Has the superuser carry out statements.
    pub fn sql(&self, database: &str, statements: &str) {
        self.query(database, statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// What a query of the superuser finds, as text; NULL is empty.
    pub fn rows(&self, database: &str, query: &str) -> Vec<Vec<String>> {
        self.query(database, query).unwrap_or_else(|error| panic!("{query}: {error:?}"))
    }

    /// The one number that a query finds.
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
        // Tests call it from within their runtimes, which cannot be blocked on.
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

    /// One of its programs, run by somebody who is not root.
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

    /// Its processes, the first one first.
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
            // At once, and what it holds of the system is given back.
            self.end(Signal::QUIT);
        }
    }
}

/// Where its programs are: in the path, or where Debian puts them, the latest version first.
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

/// State and parent of a process, if it is there.
fn status(process: Pid) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // Behind the program's name, which may hold anything.
    let (state, parent) = stat.rsplit_once(") ")?.1.split_once(' ')?;
    Some((state.chars().next()?, parent.split(' ').next()?.parse().ok()?))
}

/// Whether a process stands still for good, or until it is told to go on.
fn is_stopped(process: Pid) -> bool {
    status(process).is_none_or(|(state, _)| ['T', 'Z', 'X'].contains(&state))
}

/// A port that nobody listens on. Below those that the system hands out, so that it is still free when PostgreSQL comes
/// back to it.
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

/// Makes the user `postgres` the owner, where the tests run as root.
fn give(path: &Path) {
    if getuid().is_root() {
        let given = Command::new("chown").arg("postgres:postgres").arg(path).status().unwrap();
        assert!(given.success(), "there is no user `postgres`");
    }
}

fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
