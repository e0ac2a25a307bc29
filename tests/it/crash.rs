//! The server as a process that dies, and its files: what was said to be done stays done.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use mk::clock::Clock;
use serde_json::{Value, json};

use crate::support::events::{Events, read_until};
use crate::support::mk::{Mk, Ran};
use crate::support::panel::eiffel;
use crate::support::provider::{FakeProvider, Turn, claims};
use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

/// A second of counts and usage may be lost.
const MAY_BE_LOST: Duration = Duration::from_secs(1);
const PER_DAY: usize = 1_000_000;

async fn provider() -> FakeProvider {
    FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => claims(&[eiffel()]),
        _ => ask.choose("Paris"),
    })
    .await
}

/// A call on the database of a server, from a process of its own.
fn operator(server: &Mk, arguments: &[&str]) -> Mk {
    let data = data_dir(server.home());
    Mk::new().args(arguments.iter().copied()).env("MK_DATA_DIR", data.to_str().unwrap())
}

async fn operate(server: &Mk, arguments: &[&str]) -> Ran {
    operator(server, arguments).run_beside().await
}

/// A key without a limit a minute.
async fn create(server: &Mk) -> Ran {
    let per_day = PER_DAY.to_string();
    let arguments =
        ["keys", "create", "--service", "verify", "--per-minute", "0", "--per-day", &per_day, "--json"];
    operate(server, &arguments).await
}

async fn start(call: &Mk) -> Serve {
    let call = call.clone();
    tokio::task::spawn_blocking(move || Serve::start(&call)).await.unwrap()
}

async fn post(base: &str, key: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
    client().post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(body).send().await
}

fn must_be_whole(data: &Path) {
    for name in ["mk.db", "ledger.db"] {
        let database = rusqlite::Connection::open(data.join(name)).unwrap();
        let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok", "{name}");
        let broken: i64 = database
            .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(broken, 0, "{name}");
    }
}

/// Everything that somebody was told is done.
#[derive(Default)]
struct Told {
    apps: Vec<String>,
    keys: Vec<(String, String)>,
    revoked: Vec<String>,
}

/// Makes and revokes, each by a process of its own and all at once; notes what was told to be done.
async fn administrate(server: &Mk, round: usize, told: &mut Told) {
    let name = format!("app {round}");
    let victim = told.keys.pop();
    let revoke = async {
        let Some((id, key)) = &victim else { return None };
        let ran = operate(server, &["keys", "revoke", id, "--yes"]).await;
        assert_eq!(ran.code(), 0, "{ran:?}");
        Some(key.clone())
    };
    let arguments = ["apps", "create", &name];
    let (app, first, second, revoked) =
        tokio::join!(operate(server, &arguments), create(server), create(server), revoke);
    assert_eq!(app.code(), 0, "{app:?}");
    told.apps.push(name);
    told.revoked.extend(revoked);
    for made in [first, second] {
        assert_eq!(made.code(), 0, "{made:?}");
        let made = made.json();
        told.keys.push((made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned()));
    }
}

/// Half-done work: processes that are killed while they write.
async fn kill_writers(server: &Mk, after: Duration) {
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let mk = operator(server, &["keys", "create", "--service", "verify"]);
            let mut command = mk.command();
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            (command.spawn().unwrap(), mk)
        })
        .collect();
    for (mut writer, _home) in writers {
        tokio::time::sleep(after).await;
        // One that is done already has nothing to be killed.
        let _ = writer.kill();
        writer.wait().unwrap();
    }
}

/// When requests of one key were sent and answered, and when the verifications among them were complete.
#[derive(Default)]
struct Knocks {
    sent: usize,
    answered: Vec<Instant>,
    verified: Vec<Instant>,
}

impl Knocks {
    /// Knocks, one request after the other, until the server is gone; every fourth time it is a verification.
    async fn go_on(&mut self, base: &str, key: &str) {
        for number in 0.. {
            let is_whole = number % 4 == 0;
            let body = if is_whole { json!({"fact": "x"}) } else { json!({}) };
            self.sent += 1;
            let Ok(response) = post(base, key, &body).await else { return };
            self.answered.push(Instant::now());
            let Ok(text) = response.text().await else { return };
            if is_whole && text.contains("event: completed\n") {
                self.verified.push(Instant::now());
            }
        }
    }

    fn at_least(of: &[Instant], crashes: &[Instant]) -> usize {
        let is_safe =
            |at: &&Instant| !crashes.iter().any(|crash| **at <= *crash && **at + MAY_BE_LOST > *crash);
        of.iter().filter(is_safe).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_told_is_lost_by_kill_9() {
    let provider = provider().await;
    let begun = Clock::system().now();
    let call = serve::call(&provider.base_url, "");
    let data = data_dir(call.home());
    let counted = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let (mut told, mut knocks, mut crashes) = (Told::default(), Knocks::default(), Vec::new());
    // Some lives are long enough for counts to be safe, some too short for anything.
    for (round, life) in [1600, 130, 1900, 320, 1750, 40, 1400].into_iter().enumerate() {
        let server = start(&call).await;
        let base = server.base.clone();
        let end = async {
            tokio::time::sleep(Duration::from_millis(life)).await;
            crashes.push(Instant::now());
            server.kill();
        };
        let writers = kill_writers(&call, Duration::from_millis(5 + 9 * round as u64));
        tokio::join!(administrate(&call, round, &mut told), writers, knocks.go_on(&base, &counted), end);
        must_be_whole(&data);
    }

    let server = start(&call).await;
    let apps = operate(&call, &["apps", "list", "--json"]).await.json().to_string();
    assert!(told.apps.iter().all(|name| apps.contains(&format!("\"{name}\""))), "{:?} in {apps}", told.apps);
    for (_, key) in &told.keys {
        assert_eq!(post(&server.base, key, &json!({})).await.unwrap().status(), 400, "a key was lost");
    }
    assert_eq!(told.revoked.len(), 6);
    for key in &told.revoked {
        let refused: Value = post(&server.base, key, &json!({})).await.unwrap().json().await.unwrap();
        assert_eq!(refused["code"], "api_key_revoked");
    }

    let after = post(&server.base, &counted, &json!({})).await.unwrap();
    let remaining: usize = after.headers()["x-ratelimit-remaining"].to_str().unwrap().parse().unwrap();
    let is_one_day = Clock::system().now().utc_day() == begun.utc_day();
    // At midnight counting begins anew, and nothing can be told.
    if is_one_day {
        let used = PER_DAY - remaining - 1;
        let least = Knocks::at_least(&knocks.answered, &crashes);
        assert!(least > 20, "too few requests to tell anything: {least}");
        assert!((least..=knocks.sent).contains(&used), "{used} of {least} to {}", knocks.sent);
    }

    server.signal("TERM");
    tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    let ledger = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
    let booked = count(&ledger, "attempts WHERE outcome = 'ok' GROUP BY request_id HAVING count(*) = 4");
    let least = Knocks::at_least(&knocks.verified, &crashes);
    assert!(least > 5 && booked >= least, "{booked} of at least {least} verifications are booked");
    let too_often = count(&ledger, "attempts GROUP BY request_id HAVING count(*) > 4");
    assert_eq!(too_often, 0, "booked more than was asked");
    let summed: i64 = ledger.query_row("SELECT sum(attempts) FROM usage_days", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(summed).unwrap(), count(&ledger, "attempts"), "sums and attempts are apart");
}

/// How many rows there are of a table, or groups.
fn count(database: &rusqlite::Connection, of: &str) -> usize {
    let query = format!("SELECT count(*) FROM (SELECT 1 FROM {of})");
    let found: i64 = database.query_row(&query, [], |row| row.get(0)).unwrap();
    usize::try_from(found).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_stream_end_and_is_an_orderly_end() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => claims(&[eiffel()]),
        _ => ask.choose("Paris").after(Duration::from_millis(500)),
    })
    .await;
    let call = serve::call(&provider.base_url, "");
    let server = start(&call).await;
    let key = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let mut stream = post(&server.base, &key, &json!({"fact": "x"})).await.unwrap().bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    server.signal("TERM");
    let mut rest = String::new();
    while let Some(piece) = stream.next().await {
        rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    Events::parse(rest).end("completed");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    must_be_whole(&data_dir(call.home()));
    let ledger = rusqlite::Connection::open(data_dir(call.home()).join("ledger.db")).unwrap();
    assert_eq!(count(&ledger, "attempts"), 4, "an orderly end loses nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_signal_ends_at_once() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
    let call = serve::call(&provider.base_url, "");
    let server = start(&call).await;
    let key = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let mut stream = post(&server.base, &key, &json!({"fact": "x"})).await.unwrap().bytes_stream();
    read_until(&mut stream, "starting").await;
    server.signal("INT");
    let refused =
        async { while client().get(format!("{}/verify/v1/health", server.base)).send().await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(10), refused).await.expect("it goes on listening");
    server.signal("INT");
    let begun = Instant::now();
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.signal(), Some(2), "{status} {log}");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn sigint_is_died_of() {
    let provider = FakeProvider::start(|_| Turn::Hang).await;
    let server = start(&serve::call(&provider.base_url, "")).await;
    server.signal("INT");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.signal(), Some(2), "{status} {log}");
    assert!(log.contains("shutting down"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_and_many_commands_share_a_directory() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let (one, two) = tokio::join!(start(&call), start(&call));
    let key = create(&call).await.json()["key"].as_str().unwrap().to_owned();
    let (id, doomed) = {
        let made = create(&call).await.json();
        (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
    };
    let requests = join_all((0..120).map(|number| {
        let base = if number % 2 == 0 { &one.base } else { &two.base };
        let (key, body) = (key.clone(), json!({"fact": "x"}));
        async move { post(base, &key, &body).await.unwrap().text().await.unwrap() }
    }));
    let commands: Vec<_> = (0..24)
        .map(|number| match number % 3 {
            0 => operator(&call, &["keys", "create", "--service", "verify"]),
            1 => operator(&call, &["apps", "create", &format!("app {number}")]),
            _ => operator(&call, &["keys", "list"]),
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
    must_be_whole(&data_dir(call.home()));
}

/// Both `mk serve` and a command refuse this data directory in one clear sentence.
fn must_refuse(data: &Path, words: &str) {
    let data = data.to_str().unwrap();
    for arguments in [&["serve", "--sandbox", "--listen", "127.0.0.1:0"][..], &["keys", "list"]] {
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
fn a_data_directory_that_cannot_be_used_is_said_in_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    must_refuse(&file, "not a directory");
    must_refuse(&file.join("below"), "ot a directory");

    let used = |name: &str| {
        let data = dir.path().join(name);
        let made = Mk::new().args(["apps", "list"]).env("MK_DATA_DIR", data.to_str().unwrap()).run();
        assert_eq!(made.code(), 0, "{made:?}");
        data
    };
    let corrupt = used("corrupt");
    std::fs::write(corrupt.join("mk.db"), "This is no database, but a text of some length. ".repeat(100))
        .unwrap();
    must_refuse(&corrupt, "not a database");
    let torn = used("torn");
    std::fs::write(torn.join("ledger.db"), "x".repeat(10_000)).unwrap();
    must_refuse(&torn, "not a database");
    let newer = used("newer");
    let database = rusqlite::Connection::open(newer.join("mk.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    must_refuse(&newer, "written by a later version (schema 999");
}

#[test]
fn a_data_directory_that_may_not_be_written_is_said_in_a_sentence() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o500)).unwrap();
    let is_root = std::fs::write(data.join("probe"), "").is_ok();
    if is_root {
        // Permissions do not bind root; a file system that takes no directories does.
        return must_refuse(Path::new("/sys/kernel/mk"), "ermi");
    }
    must_refuse(&data, "ermission denied");
}
