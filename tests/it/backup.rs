//! Backups of a running server, restored elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::mk::{Mk, operator};
use crate::support::panel::panel_by;
use crate::support::provider::FakeProvider;
use crate::support::serve::{self, Serve};
use crate::support::server::client;

async fn provider() -> FakeProvider {
    panel_by(|_, ask| ask.choose("Paris")).await
}

async fn key(data: &Path) -> String {
    let arguments = ["keys", "create", "--service", "verify", "--per-minute", "0", "--per-day", "1000000"];
    let ran = operator(data, &arguments).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.stdout.trim().to_owned()
}

/// Runs one verification to its end and returns the status.
async fn verify(base: &str, key: &str) -> u16 {
    let request = client()
        .post(format!("{base}/verify/v1/stream"))
        .bearer_auth(key)
        .json(&json!({"fact": "The Eiffel Tower is in Paris."}));
    let response = request.header("accept", "application/json").send().await.unwrap();
    let status = response.status().as_u16();
    let _: Value = response.json().await.unwrap();
    status
}

/// The ledger's number of attempts, their tokens, and the requests in the daily counts.
fn ledger(data: &Path) -> (i64, i64, i64) {
    let database = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
    let integrity: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let attempts = "SELECT count(*), coalesce(sum(prompt_tokens + completion_tokens), 0) FROM attempts";
    let (rows, tokens) = database.query_row(attempts, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let requests = database.query_row("SELECT coalesce(sum(used), 0) FROM day_counts", [], |row| row.get(0));
    (rows, tokens, requests.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_busy_server_is_consistent_and_can_be_restored_elsewhere() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let server = Serve::start_beside(&call).await;
    let data = serve::data_dir(call.home());
    let kept = key(&data).await;
    assert_eq!(verify(&server.base, &kept).await, 200);

    // One task keeps writing while a key is created.
    let busy = tokio::spawn({
        let (base, key) = (server.base.clone(), kept.clone());
        async move {
            loop {
                verify(&base, &key).await;
            }
        }
    });
    let file = call.home().join("backup.tar");
    let (late, backup) = tokio::join!(key(&data), async {
        let arguments = ["backup", file.to_str().unwrap()];
        // Attempts are flushed to disk within a second.
        crate::support::eventually("something is in the ledger", || ledger_has_rows(&data)).await;
        operator(&data, &arguments).run_beside().await
    });
    assert_eq!((backup.code(), backup.stdout.as_str()), (0, ""), "{backup:?}");
    assert!(backup.stderr.contains("and verified the backup"), "{backup:?}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    busy.abort();
    drop(server);

    let again = operator(&data, &["backup", file.to_str().unwrap()]).run_beside().await;
    assert_eq!(again.code(), 9, "{again:?}");
    assert!(again.stderr.contains("--force"), "{again:?}");

    let second = serve::call(&provider.base_url, "");
    let restored = serve::data_dir(second.home());
    let ran = operator(&restored, &["restore", file.to_str().unwrap()]).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    for name in ["mk.db", "ledger.db"] {
        let mode = fs::metadata(restored.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read_dir(&restored).unwrap().count(), 2, "no other files are left");
    let (rows, tokens, requests) = ledger(&restored);
    assert!(rows >= 4 && tokens == rows * 110, "{rows} rows of 110 tokens: {tokens}");
    assert!(requests >= 1);

    let server = Serve::start_beside(&second).await;
    assert_eq!(verify(&server.base, &kept).await, 200);
    // Whether the backup contains the late key depends on which came first; both outcomes are valid, an error is not.
    assert!([200, 401].contains(&verify(&server.base, &late).await));
    drop(server);
    let (more, ..) = ledger(&restored);
    assert!(more >= rows, "the ledger continues from the backup");

    let over = operator(&restored, &["restore", file.to_str().unwrap()]).run_beside().await;
    assert_eq!(over.code(), 9, "{over:?}");
    assert!(over.stderr.contains("already exists"), "{over:?}");
}

fn ledger_has_rows(data: &Path) -> bool {
    ledger(data).0 > 0
}

#[test]
fn other_tools_can_read_a_backup() {
    let mk = Mk::new();
    let data = mk.home().join("data");
    assert_eq!(operator(&data, &["apps", "create", "website"]).run().code(), 0);
    let file = mk.home().join("backup.tar");
    assert_eq!(operator(&data, &["backup", file.to_str().unwrap()]).run().code(), 0);
    let out = mk.home().join("out");
    fs::create_dir(&out).unwrap();
    let run = |command: &mut Command| assert!(command.current_dir(&out).status().unwrap().success());
    run(Command::new("tar").arg("-xf").arg(&file));
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]));
    let listed = operator(&out, &["apps", "list"]).run();
    assert!(listed.stdout.contains("website"), "{listed:?}");
}

#[test]
fn a_failed_backup_or_restore_says_why_and_leaves_nothing_behind() {
    let mk = Mk::new();
    let data = mk.home().join("data");
    let file = mk.home().join("backup.tar");
    let none = operator(&data, &["backup", file.to_str().unwrap()]).run();
    assert_eq!(none.code(), 9, "{none:?}");
    assert!(none.stderr.contains("hint: "), "{none:?}");
    fs::write(&file, "no archive").unwrap();
    let foreign = operator(&data, &["restore", file.to_str().unwrap()]).run();
    assert_eq!(foreign.code(), 1, "{foreign:?}");
    assert!(foreign.stderr.contains("it is not a complete mk backup"), "{foreign:?}");
    assert!(foreign.stderr.contains("hint: use another backup, or copy this one again"), "{foreign:?}");
    assert!(!data.exists(), "the directory it created is removed");
    let deep = mk.home().join("srv/mk");
    assert_eq!(operator(&deep, &["restore", file.to_str().unwrap()]).run().code(), 1);
    assert!(!deep.parent().unwrap().exists(), "and so are the parents it created");
    fs::create_dir(&data).unwrap();
    assert_eq!(operator(&data, &["restore", file.to_str().unwrap()]).run().code(), 1);
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "a directory that existed before stays");
    let device = operator(&data, &["backup", "--force", "/dev/null"]).run();
    assert_eq!(device.code(), 2, "{device:?}");
    assert!(device.stderr.contains("is not a regular file"), "{device:?}");
    let directory = operator(&data, &["restore", mk.home().to_str().unwrap()]).run();
    assert_eq!(directory.code(), 2, "{directory:?}");
    assert!(directory.stderr.contains("is a directory\nhint: name the one file"), "{directory:?}");
}

#[test]
fn backup_and_restore_reject_a_named_server() {
    let home = Mk::new();
    let run = |line: &str| home.clone().args(line.split(' ')).run();
    assert_eq!(run("apps create web").code(), 0);
    let server = "--server https://mk.example.org";
    for line in [
        &*format!("backup {server} mk.tar"),
        &*format!("restore {server} mk.tar"),
        "backup --profile work mk.tar",
    ] {
        let ran = run(line);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains("selects a server, but backup and restore work on this machine's database"),
            "{ran:?}"
        );
    }
    assert!(!home.home().join("mk.tar").exists());
}
