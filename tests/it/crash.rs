//! Signals, shared data directories, and data directories that cannot be used.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};

use crate::support::database::assert_intact;
use crate::support::events::{Events, read_until};
use crate::support::eventually;
use crate::support::mk::{CommandOutput, Mk, operator};
use crate::support::panel::panel_by;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

const PER_DAY: usize = 1_000_000;

async fn provider() -> FakeProvider {
    panel_by(|_, ask| ask.choose("Paris")).await
}

async fn operate(server: &Mk, arguments: &[&str]) -> CommandOutput {
    operator(&data_dir(server.home()), arguments).run_beside().await
}

/// Creates a key without a limit per minute.
async fn create(server: &Mk) -> CommandOutput {
    let per_day = PER_DAY.to_string();
    let arguments =
        ["keys", "create", "--service", "verify", "--per-minute", "0", "--per-day", &per_day, "--json"];
    operate(server, &arguments).await
}

async fn post(base: &str, key: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    client().post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(body).send().await
}

/// A server on a data directory of its own, and the stream of a verification that has reached this step.
async fn start_verification(
    provider: &FakeProvider,
    step: &str,
) -> (Mk, Serve, impl Stream<Item = reqwest::Result<Bytes>> + Unpin + use<>) {
    let call = serve::call(&provider.base_url, "");
    let server = Serve::start_beside(&call).await;
    let key = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let mut stream = post(&server.base, &key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .await
        .unwrap()
        .bytes_stream();
    read_until(&mut stream, step).await;
    (call, server, stream)
}

/// The events that are left of a stream.
async fn read_to_end(stream: &mut (impl Stream<Item = reqwest::Result<Bytes>> + Unpin)) -> Events {
    let mut rest = String::new();
    while let Some(piece) = stream.next().await {
        rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    Events::parse(rest)
}

/// The number of rows of a table, or of a FROM clause with grouping.
fn count(database: &rusqlite::Connection, of: &str) -> usize {
    let query = format!("SELECT count(*) FROM (SELECT 1 FROM {of})");
    let found: i64 = database.query_row(&query, [], |row| row.get(0)).unwrap();
    usize::try_from(found).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_drains_streams_and_shuts_down_cleanly() {
    let provider = panel_by(|_, ask| ask.choose("Paris").after(Duration::from_millis(500))).await;
    let (call, server, mut stream) = start_verification(&provider, "verifying_claim").await;
    server.signal("TERM");
    read_to_end(&mut stream).await.end("completed");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_intact(&data_dir(call.home()));
    let ledger = rusqlite::Connection::open(data_dir(call.home()).join("ledger.db")).unwrap();
    assert_eq!(count(&ledger, "attempts"), 4, "a clean shutdown loses nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_ends_requests_in_flight_and_loses_nothing() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let (call, server, mut stream) = start_verification(&provider, "extracting_claims").await;
    eventually("the extractor is called", || provider.in_flight() == 1).await;
    server.signal("INT");
    server.until_logged(1, |line| line.contains("shutting down")).await;
    let second = Instant::now();
    server.signal("INT");
    read_to_end(&mut stream).await.end("error");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert!(second.elapsed() < Duration::from_secs(10), "the server waits for the whole grace period");
    assert_eq!(status.signal(), Some(2), "{status} {log}");
    let ledger = rusqlite::Connection::open(data_dir(call.home()).join("ledger.db")).unwrap();
    assert_eq!(count(&ledger, "attempts"), 1, "the call in flight is booked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_third_signal_terminates_immediately() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let (call, server, _stream) = start_verification(&provider, "extracting_claims").await;
    // The locked ledger delays the clean shutdown.
    let ledger = rusqlite::Connection::open(data_dir(call.home()).join("ledger.db")).unwrap();
    ledger.execute_batch("BEGIN EXCLUSIVE").unwrap();
    server.signal("TERM");
    server.until_logged(1, |line| line.contains("shutting down")).await;
    server.signal("TERM");
    server.until_logged(1, |line| line.contains("the grace period was ended")).await;
    let third = Instant::now();
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.signal(), Some(15), "{status} {log}");
    assert!(third.elapsed() < Duration::from_secs(5), "the server waits for the ledger");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigint_terminates_the_process() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Serve::start_beside(&serve::call(&provider.base_url, "")).await;
    server.signal("INT");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.signal(), Some(2), "{status} {log}");
    assert!(log.contains("shutting down"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_and_many_commands_can_share_a_data_directory() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let (one, two) = tokio::join!(Serve::start_beside(&call), Serve::start_beside(&call));
    let key = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let (id, doomed) = {
        let made = create(&call).await.json();
        (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
    };
    let requests = join_all((0..120).map(|number| {
        let base = if number % 2 == 0 { &one.base } else { &two.base };
        let (key, body) = (key.clone(), json!({"fact": "The Eiffel Tower is in Paris."}));
        async move { post(base, &key, &body).await.unwrap().text().await.unwrap() }
    }));
    let data = data_dir(call.home());
    let commands: Vec<_> = (0..24)
        .map(|number| match number % 3 {
            0 => operator(&data, &["keys", "create", "--service", "verify"]),
            1 => operator(&data, &["apps", "create", &format!("app {number}")]),
            _ => operator(&data, &["keys", "list"]),
        })
        .collect();
    let (answers, runs) = tokio::join!(requests, join_all(commands.iter().map(Mk::run_beside)));
    for ran in &runs {
        assert_eq!(ran.code(), 0, "{ran:?}");
    }
    assert!(answers.iter().all(|answer| answer.contains("event: completed\n")), "{answers:?}");

    assert_eq!(operate(&call, &["keys", "revoke", &id, "--yes"]).await.code(), 0);
    for server in [&one, &two] {
        assert_eq!(post(&server.base, &doomed, &json!({})).await.unwrap().status(), 401);
    }
    for server in [one, two] {
        server.signal("TERM");
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(!log.contains("locked") && !log.contains("\"level\":\"ERROR\""), "{log}");
    }
    assert_intact(&data);
}

/// Asserts that `mk serve` and other commands reject this data directory with one error and one hint.
fn assert_rejected(data: &Path, words: &str) {
    let data = data.to_str().unwrap();
    let create = ["keys", "create", "--service", "verify"];
    for arguments in [&["serve", "--sandbox", "--listen", "127.0.0.1:0"][..], &create] {
        let ran = Mk::new().args(arguments.iter().copied()).env("MK_DATA_DIR", data).run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        let errors = ran.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hints = ran.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
        assert_eq!((errors, hints, ran.stderr.lines().count()), (1, 1, 2), "{ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains(data), "{words:?}: {ran:?}");
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("os error"), "{ran:?}");
    }
}

#[test]
fn an_unusable_data_directory_is_reported_in_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_rejected(&file, "not a directory");
    assert_rejected(&file.join("below"), "ot a directory");

    let used = |name: &str| {
        let data = dir.path().join(name);
        let made = operator(&data, &["apps", "create", "x"]).run();
        assert_eq!(made.code(), 0, "{made:?}");
        data
    };
    let corrupt = used("corrupt");
    std::fs::write(corrupt.join("mk.db"), "This is no database, but a text of some length. ".repeat(100))
        .unwrap();
    assert_rejected(&corrupt, "not a database");
    let torn = used("torn");
    std::fs::write(torn.join("ledger.db"), "x".repeat(10_000)).unwrap();
    assert_rejected(&torn, "not a database");
    let newer = used("newer");
    let database = rusqlite::Connection::open(newer.join("mk.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert_rejected(&newer, "written by a newer version (schema 999");
}

#[test]
fn an_unwritable_data_directory_is_reported_in_one_sentence() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o500)).unwrap();
    let is_root = std::fs::write(data.join("probe"), "").is_ok();
    if is_root {
        // Root ignores permissions, but sysfs allows no new directories.
        return assert_rejected(Path::new("/sys/kernel/mk"), "ermi");
    }
    assert_rejected(&data, "ermission denied");
}
