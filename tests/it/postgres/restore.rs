//! Restoring a backup of a data directory into a shared database: completely or not at all.

use std::path::{Path, PathBuf};

use mk::clock::Clock;
use serde_json::Value;

use super::{CountingProvider, call, check_key, complete, configured, connect, make_key, operator};
use crate::support::console::{Console, text};
use crate::support::eventually;
use crate::support::mk::{CommandOutput, Mk};
use crate::support::postgres::Postgres;
use crate::support::serve::{Serve, data_dir};

/// Runs a command on a data directory; it must succeed.
async fn run_on(data: &Path, arguments: &[&str]) -> CommandOutput {
    let data = data.to_str().unwrap();
    let ran = Mk::new().args([arguments, &["--data-dir", data]].concat()).run_beside().await;
    assert_eq!(ran.code(), 0, "{arguments:?}: {ran:?}");
    ran
}

async fn key_of(data: &Path, arguments: &[&str]) -> String {
    let made = run_on(data, &[&["keys", "create", "--json", "--service"], arguments].concat()).await.json();
    text(&made["key"])
}

/// What the operator's commands report about apps, keys and usage.
async fn reports(ask: impl AsyncFn(&[&str]) -> CommandOutput) -> Vec<Value> {
    let mut found = Vec::new();
    for arguments in [
        &["apps", "list", "--json"][..],
        &["keys", "list", "--all", "--json"],
        &["usage", "--since", "2d", "--by", "key", "--json"],
        &["usage", "--since", "2d", "--by", "model", "--json"],
    ] {
        let mut document = ask(arguments).await.json();
        document.as_object_mut().unwrap().remove("server");
        found.push(document);
    }
    found
}

async fn shut_down(server: Serve) {
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
}

async fn backup(data: &Path, home: &Path) -> PathBuf {
    let file = home.join("mk.tar");
    run_on(data, &["backup", file.to_str().unwrap()]).await;
    file
}

async fn restore(url: &str, file: &Path) -> CommandOutput {
    let ran = operator(url, &["restore", file.to_str().unwrap()]).run_beside().await;
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let siblings = std::fs::read_dir(file.parent().unwrap()).unwrap();
    let left =
        siblings.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".new"));
    assert_eq!(left.count(), 0, "a temporary file is left beside the backup");
    ran
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_data_directory_is_restored_with_everything_in_it() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let alone = configured(&provider.provider.base_url);
    let data = data_dir(alone.home());
    let ops = key_of(&data, &["console", "--name", "ops"]).await;
    run_on(&data, &["apps", "create", "newsroom é𝄞", "--budget-usd", "5"]).await;
    run_on(&data, &["apps", "create", "gone"]).await;
    run_on(&data, &["apps", "delete", "gone", "--yes"]).await;
    let limited =
        key_of(&data, &["inference", "--name", "chat", "--per-day", "5", "--model", "fake/*"]).await;
    let revoked = key_of(&data, &["verify", "--name", "old", "--app", "newsroom é𝄞"]).await;
    run_on(&data, &["keys", "revoke", "old", "--yes"]).await;
    // A key that refers to another.
    let replaced = key_of(&data, &["verify", "--name", "ci", "--address", "127.0.0.0/8"]).await;
    let rotated = run_on(&data, &["keys", "rotate", "ci", "--grace", "1h"]).await.stdout;

    let day = Clock::system().now().utc_day();
    let server = Serve::start_beside(&alone).await;
    for _ in 0..3 {
        assert_eq!(complete(&server.base, &limited).await.0, 200);
    }
    let console = |base: &str| Console { base: base.to_owned(), key: ops.clone(), key_id: String::new() };
    let audit = console(&server.base).audit().await;
    shut_down(server).await;
    let before = reports(async |arguments| run_on(&data, arguments).await).await;
    assert_eq!(before[2]["totals"]["attempts"], 3, "{before:?}");

    let receipt_key = run_on(&data, &["receipt", "key"]).await.stdout;

    let file = backup(&data, alone.home()).await;
    let restored = restore(&url, &file).await;
    assert_eq!((restored.code(), restored.stdout.as_str()), (0, ""), "{restored:?}");
    let ask = async |arguments: &[&str]| operator(&url, arguments).run_beside().await;
    assert_eq!(reports(ask).await, before);
    assert_eq!(ask(&["receipt", "key"]).await.stdout, receipt_key);

    let shared = call(&url, &provider.provider.base_url);
    let server = Serve::start_beside(&shared).await;
    assert_eq!(console(&server.base).audit().await, audit);
    assert_eq!(check_key(&server.base, &replaced).await.0, 400);
    assert_eq!(check_key(&server.base, rotated.trim()).await.0, 400);
    assert_eq!(check_key(&server.base, &revoked).await, (401, "api_key_revoked".to_owned()));
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(complete(&server.base, &limited).await.0);
    }
    // At midnight the counts start over.
    if Clock::system().now().utc_day() == day {
        assert_eq!(answers, [200, 200, 429]);
    }
    shut_down(server).await;
    let after = operator(&url, &["usage", "--since", "2d", "--json"]).run_beside().await.json();
    assert!(after["totals"]["attempts"].as_i64() >= Some(5), "{after}");

    let again = restore(&url, &file).await;
    assert_eq!(again.code(), 9, "{again:?}");
    assert!(again.stderr.contains("it already contains apps and keys"), "{again:?}");
    assert_eq!(operator(&url, &["usage", "--since", "2d", "--json"]).run_beside().await.json(), after);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_damaged_backup_or_a_database_in_use_is_refused_without_changes() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let alone = configured("http://127.0.0.1:0/v1");
    let data = data_dir(alone.home());
    let kept = key_of(&data, &["verify", "--name", "mine"]).await;
    let file = backup(&data, alone.home()).await;

    let damaged = alone.home().join("damaged.tar");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    let refused = restore(&url, &damaged).await;
    assert_eq!(refused.code(), 1, "{refused:?}");
    assert!(refused.stderr.contains("nothing was restored"), "{refused:?}");

    // A server that has created the default app before is no reason to refuse; it keeps running on the restored data.
    let server = Serve::start_beside(&call(&url, "http://127.0.0.1:0/v1")).await;
    assert_eq!(check_key(&server.base, &kept).await.0, 401);
    assert_eq!(restore(&url, &file).await.code(), 0);
    assert_eq!(check_key(&server.base, &kept).await.0, 400);
    let apps = operator(&url, &["apps", "list", "--json"]).run_beside().await.json();
    assert_eq!(apps["apps"].as_array().unwrap().len(), 1, "{apps}");
    drop(server);

    // Only the default app, but changed.
    postgres.new_database("in_use", "");
    let in_use = postgres.url_of("in_use");
    drop(Serve::start_beside(&call(&in_use, "http://127.0.0.1:0/v1")).await);
    let ran = operator(&in_use, &["apps", "update", "default", "--budget-usd", "7"]).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(restore(&in_use, &file).await.code(), 9);
    assert_eq!(postgres.rows("in_use", "SELECT budget_nano_usd FROM apps"), [["7000000000"]]);

    postgres.new_database("other", "");
    let other = postgres.url_of("other");
    let (theirs, _) = make_key(&other, "verify", &[]).await;
    assert_eq!(restore(&other, &file).await.code(), 9);
    let server = Serve::start_beside(&call(&other, "http://127.0.0.1:0/v1")).await;
    assert_eq!(
        (check_key(&server.base, &theirs).await.0, check_key(&server.base, &kept).await.0),
        (400, 401)
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn an_interrupted_restore_leaves_nothing_behind() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let alone = configured("http://127.0.0.1:0/v1");
    let data = data_dir(alone.home());
    key_of(&data, &["verify"]).await;
    let file = backup(&data, alone.home()).await;
    // Another connection holds a lock, so that the restore is waiting when it is interrupted.
    drop(Serve::start_beside(&call(&url, "http://127.0.0.1:0/v1")).await);
    let holder = connect(&postgres).await;
    holder.batch_execute("BEGIN; LOCK TABLE apps IN EXCLUSIVE MODE").await.unwrap();
    let mk = operator(&url, &["restore", file.to_str().unwrap()]);
    let mut child = mk.command().stderr(std::process::Stdio::null()).spawn().unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    eventually("the restore waits", || postgres.number("mk", waits) > 0).await;
    crate::support::serve::signal(&child, "INT");
    holder.batch_execute("ROLLBACK").await.unwrap();
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2), "{status:?}");
    assert_eq!(postgres.number("mk", "SELECT count(*) FROM keys"), 0);
    assert_eq!(restore(&url, &file).await.code(), 0);
    assert_eq!(postgres.rows("mk", "SELECT service FROM keys"), [["verify"]]);
    assert_eq!(postgres.number("mk", "SELECT count(*) FROM apps"), 1);
}
