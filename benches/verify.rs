//! What a verification costs beside its models: `cargo bench --bench verify` prints a table.
//!
//! A fake provider in this process answers every call after 200 ms; the program under test is the release binary, as a
//! user runs it, with keys, limits (raised), ledger and log. Figures are times of one machine, so each is shown beside
//! its bound and as a ratio to what the provider alone takes (extraction + slowest model = 400 ms); only ratios compare
//! across machines. Memory is the resident size of the server's process.
//!
//! What an idle stream takes was 66 KB (extractor thinking) and 123 KB (three models thinking). Counting allocations
//! with heaptrack, in the order of what helped: parking provider calls (hyper's client holds 27 KB per connection from
//! the request on), requests given away instead of kept for a second try, instructions shared instead of copied,
//! events boxed in their channel (it makes room for 32), large futures in boxes of their own. That brought it to 30 and
//! 51 KB. Of what is left, 16 KB are hyper's two buffers of the caller's connection, whose size cannot be set. Other
//! allocators (jemalloc, mimalloc) and settings of glibc's changed nothing.
//!
//! `QUICK=1` runs fewer rounds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a bench fails by panicking, prints its table, and shares the tests' fake provider"
)]

#[path = "../tests/it/support/formats.rs"]
mod formats;
#[path = "../tests/it/support/provider.rs"]
mod provider;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use provider::{FakeProvider, Turn, claim, claims};
use serde_json::{Value, json};

const MK: &str = env!("CARGO_BIN_EXE_mk");
const MODEL_MS: u64 = 200;
const CLAIMS: usize = 10;

fn main() {
    let quick = std::env::var_os("QUICK").is_some();
    allow_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    println!("{:<52} {:>12} {:>12} {:>8}", "measured", "result", "bound", "ratio");
    runtime.block_on(verifications(quick));
    runtime.block_on(memory());
    programs(quick);
}

/// Thousands of streams are opened from here, and as many calls arrive here; the server inherits the limit.
fn allow_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

fn row(what: &str, result: &str, bound: &str, ratio: Option<f64>) {
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
    println!("{what:<52} {result:>12} {bound:>12} {ratio:>8}");
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = ((times.len() - 1) as f64 * share).round() as usize;
    times[index]
}

async fn verifications(quick: bool) {
    let provider = slow_provider(Duration::from_millis(MODEL_MS)).await;
    let server = Server::start(&provider.base_url, 4096);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    verify(&client, &server).await;

    let rounds = if quick { 3 } else { 15 };
    let (mut totals, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (start, total) = verify(&client, &server).await;
        starts.push(start);
        totals.push(total);
    }
    let models = Duration::from_millis(2 * MODEL_MS);
    let total = percentile(&mut totals, 0.5);
    let ratio = |time: Duration| Some(time.as_secs_f64() / models.as_secs_f64());
    row("10 claims x 3 models of 200 ms, median", &format!("{:.1} ms", ms(total)), "<= 415 ms", ratio(total));
    let start = percentile(&mut starts, 0.99);
    row("`starting` on the wire, slowest", &format!("{:.1} ms", ms(start)), "<= 50 ms", None);

    // A first wave opens the connections to provider and server, as a busy server has them.
    let mut waves = Vec::new();
    let mut cpu = Duration::ZERO;
    for round in 0..if quick { 2 } else { 4 } {
        let before = server.cpu_time();
        let wave = join_all((0..100).map(|_| verify(&client, &server))).await;
        if round > 0 {
            waves.extend(wave.into_iter().map(|(_, total)| total));
            cpu = server.cpu_time().saturating_sub(before);
        }
    }
    let slowest = percentile(&mut waves, 1.0);
    row(
        "100 such verifications at once, slowest",
        &format!("{:.1} ms", ms(slowest)),
        "<= 622 ms",
        ratio(slowest),
    );
    row("CPU of the server for each of them", &format!("{:.2} ms", ms(cpu) / 100.0), "", None);
}

async fn memory() {
    let provider = slow_provider(Duration::from_hours(1)).await;
    let server = Server::start(&provider.base_url, 4096);
    row("resident memory, idle", &format!("{:.1} MB", server.resident_mb()), "<= 25 MB", None);

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut open = Vec::new();
    for _ in 0..1000 {
        let response = request(&client, &server).send().await.unwrap();
        let mut stream = response.bytes_stream();
        stream.next().await.unwrap().unwrap();
        open.push(stream);
    }
    row(
        "resident memory, 1000 verifications open",
        &format!("{:.1} MB", server.resident_mb()),
        "<= 150 MB",
        None,
    );
    drop(open);
    idle_streams("a stream whose extractor thinks", 5_000, slow_provider(Duration::from_hours(1)).await, 1)
        .await;
    idle_streams("a stream whose 3 models think, 1 claim", 3_000, thinking_panel().await, 3).await;
}

/// What a stream takes while no model answers: the growth of the resident size by `count` of them, on a fresh server,
/// once all their `calls` have reached the provider.
async fn idle_streams(what: &str, count: usize, provider: FakeProvider, calls: usize) {
    let server = Server::start(&provider.base_url, 10_000);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let before = server.resident_mb();
    let mut open = Vec::new();
    for _ in 0..count {
        let mut stream = request(&client, &server).send().await.unwrap().bytes_stream();
        stream.next().await.unwrap().unwrap();
        open.push(stream);
    }
    let limit = Instant::now() + Duration::from_mins(1);
    while provider.in_flight() < calls * count {
        assert!(Instant::now() < limit, "{} calls of {}", provider.in_flight(), calls * count);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let each = (server.resident_mb() - before) * 1024.0 / count as f64;
    row(&format!("memory of {what}, {count} open"), &format!("{each:.1} KB"), "<= 20 KB", None);
}

/// One claim from the extractor at once, nothing from everybody else.
async fn thinking_panel() -> FakeProvider {
    FakeProvider::start(|ask| {
        if ask.task == "claims" {
            return claims(&[claim("Claim.", "What is it?", "yes", &["no", "perhaps"])]);
        }
        Turn::Hang
    })
    .await
}

fn programs(quick: bool) {
    let rounds = if quick { 5 } else { 25 };
    let time = |arguments: &[&str]| {
        let mut times: Vec<Duration> = (0..rounds)
            .map(|_| {
                let started = Instant::now();
                let home = tempfile::tempdir().unwrap();
                let status = Command::new(MK)
                    .args(arguments)
                    .env_clear()
                    .env("HOME", home.path())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()
                    .unwrap();
                assert!(status.code().is_some(), "{status}");
                started.elapsed()
            })
            .collect();
        percentile(&mut times, 0.5)
    };
    let nothing = time(&["--version"]);
    row("mk --version", &format!("{:.1} ms", ms(nothing)), "<= 10 ms", None);
    let two = time(&["verify", "--sandbox", "Gold has the symbol Au. The capital of Australia is Canberra."]);
    row("mk verify --sandbox, two claims", &format!("{:.1} ms", ms(two)), "<= 150 ms", None);
}

/// Ten claims from the extractor, the first option from everybody else, each call after `wait`.
async fn slow_provider(wait: Duration) -> FakeProvider {
    FakeProvider::start(move |ask| {
        let turn = if ask.task == "claims" {
            let all: Vec<Value> = (0..CLAIMS)
                .map(|n| claim(&format!("Claim {n}."), &format!("What is {n}?"), "yes", &["no", "perhaps"]))
                .collect();
            claims(&all)
        } else {
            Turn::json(&json!({"answer": "A"}))
        };
        turn.after(wait)
    })
    .await
}

fn request(client: &reqwest::Client, server: &Server) -> reqwest::RequestBuilder {
    client
        .post(format!("{}/verify/v1/stream", server.base))
        .bearer_auth(&server.key)
        .json(&json!({"fact": "Ten claims."}))
}

/// Times of the first frame and of the whole.
async fn verify(client: &reqwest::Client, server: &Server) -> (Duration, Duration) {
    let started = Instant::now();
    let response = request(client, server).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut stream = response.bytes_stream();
    let mut body = stream.next().await.unwrap().unwrap().to_vec();
    let first = started.elapsed();
    while let Some(piece) = stream.next().await {
        body.extend_from_slice(&piece.unwrap());
    }
    let total = started.elapsed();
    assert!(String::from_utf8_lossy(&body).contains("event: completed\n"), "no result");
    (first, total)
}

/// The real binary, serving a configuration of its own.
struct Server {
    process: Child,
    base: String,
    key: String,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start(provider: &str, max_concurrent: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = dir.path().join("server.toml");
        write!(
            std::fs::File::create(&config).unwrap(),
            r#"
listen = "127.0.0.1:{port}"
data_dir = "{data}"
[limits]
per_minute = 0
per_day = 0
[providers.fake]
kind = "openai"
base_url = "{provider}"
max_concurrent = {max_concurrent}
[verify]
extractor = "fake/extractor"
panel = ["fake/one", "fake/two", "fake/three"]
max_concurrent = {max_concurrent}
deadline = "3600s"
model_timeout = "3600s"
"#,
            data = dir.path().join("data").display(),
        )
        .unwrap();
        let mk = |arguments: &[&str]| {
            let mut command = Command::new(MK);
            command.args(arguments).env_clear().env("HOME", dir.path()).env("MK_CONFIG", &config);
            command
        };
        let made = mk(&["keys", "create", "--service", "verify"]).output().unwrap();
        let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        assert!(key.starts_with("mk_verify_"), "{}", String::from_utf8_lossy(&made.stderr));
        let mut process = mk(&["serve"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The first line of the log says that it serves; the rest must be read on, or the pipe fills up.
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server ended");
        }
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { process, base: format!("http://127.0.0.1:{port}"), key, _dir: dir }
    }

    /// User and system time of the process; the kernel counts in hundredths of a second.
    fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    fn resident_mb(&self) -> f64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(Path::new(&path)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
