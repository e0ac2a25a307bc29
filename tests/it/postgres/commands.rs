//! The command line on a shared database: its changes apply at the servers at once, and it writes no local files.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{
    CountingProvider, TwoServers, assert_recorded, call, check_key, complete, configured, make_key, operator,
};
use crate::support::mk::CommandOutput;
use crate::support::postgres::Postgres;
use crate::support::serve::{Serve, data_dir};

/// All files and directories in a directory, recursively.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        found.extend(files(&path));
        found.push(path);
    }
    found
}

async fn run(database: &str, arguments: &[&str]) -> CommandOutput {
    let mk = operator(database, arguments);
    let ran = mk.run_beside().await;
    assert_eq!(files(mk.home()), Vec::<PathBuf>::new(), "{arguments:?} wrote something");
    ran
}

/// The same, and the command must succeed.
async fn succeed(database: &str, arguments: &[&str]) -> CommandOutput {
    let ran = run(database, arguments).await;
    assert_eq!(ran.code(), 0, "{arguments:?}: {ran:?}");
    ran
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn changes_by_commands_apply_at_the_servers_at_once() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let two = TwoServers::start(&url, &provider.provider.base_url).await;
    let [here, there] = [0, 1].map(|at: usize| two.servers[at].base.clone());

    let key = succeed(&url, &["keys", "create", "--service", "verify", "--name", "ci"]).await.stdout;
    let key = key.trim();
    assert_eq!((check_key(&here, key).await.0, check_key(&there, key).await.0), (400, 400));
    succeed(&url, &["keys", "update", "ci", "--address", "10.0.0.0/8"]).await;
    assert_eq!((check_key(&here, key).await.0, check_key(&there, key).await.0), (403, 403));
    succeed(&url, &["keys", "update", "ci", "--all-addresses"]).await;
    assert_eq!(check_key(&there, key).await.0, 400);
    let rotated = succeed(&url, &["keys", "rotate", "ci", "--grace", "1h"]).await.stdout;
    assert_eq!((check_key(&here, key).await.0, check_key(&there, rotated.trim()).await.0), (400, 400));
    let listed = succeed(&url, &["keys", "list", "--json"]).await.json();
    assert_eq!(listed["keys"].as_array().unwrap().len(), 3, "{listed}");
    let id = listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| key.ends_with(record["last4"].as_str().unwrap()));
    let id = id.unwrap()["id"].as_str().unwrap();
    succeed(&url, &["keys", "revoke", id, "--yes"]).await;
    for base in [&here, &there] {
        assert_eq!(check_key(base, key).await, (401, "api_key_revoked".to_owned()));
    }
    assert_eq!(run(&url, &["keys", "revoke", "nobody", "--yes"]).await.code(), 9);

    succeed(&url, &["apps", "create", "newsroom", "--budget-usd", "5"]).await;
    assert_eq!(run(&url, &["apps", "create", "newsroom"]).await.code(), 9);
    let (chat, _) = make_key(&url, "inference", &["--app", "newsroom"]).await;
    for base in [&here, &there, &here] {
        assert_eq!(complete(base, &chat).await.0, 200);
    }
    assert_recorded(&url, 3).await;
    let usage = succeed(&url, &["usage", "--since", "2d", "--by", "app", "--json"]).await.json();
    assert_eq!(
        (
            &usage["data"][0]["app_name"].as_str().or(usage["data"][0]["app"].as_str()),
            &usage["data"][0]["requests"]
        ),
        (&Some("newsroom"), &json!(3)),
        "{usage}"
    );
    succeed(&url, &["apps", "statement", "newsroom"]).await;
    succeed(&url, &["apps", "update", "newsroom", "--name", "news"]).await;
    succeed(&url, &["apps", "delete", "news", "--yes"]).await;
    assert_eq!((complete(&here, &chat).await.0, complete(&there, &chat).await.0), (401, 401));
    let apps = succeed(&url, &["apps", "list", "--json"]).await.json();
    assert_eq!(apps["apps"].as_array().unwrap().len(), 1, "{apps}");
    // The audit log says through which channel.
    let audit = two.consoles[0].audit().await;
    assert!(
        audit.iter().any(|entry| entry["action"] == "app.deleted" && entry["channel"] == "cli"),
        "{audit:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_on_a_shared_database_keeps_no_local_one() {
    let postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "console", &[]).await;
    let by_variable = call(&url, "http://127.0.0.1:0/v1");
    // The database can also be set in the configuration file.
    let by_file = configured("http://127.0.0.1:0/v1");
    let file = by_file.home().join("server.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("database_url = \"{url}\"\n{text}")).unwrap();
    for call in [by_variable, by_file] {
        let server = Serve::start_beside(&call).await;
        let (key, _) = make_key(&url, "verify", &[]).await;
        assert_eq!(check_key(&server.base, &key).await.0, 400);
        assert_eq!(files(&data_dir(call.home())), Vec::<PathBuf>::new());
        assert!(!server.logged().contains("hunter2"), "{}", server.logged());
        server.signal("TERM");
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(files(&data_dir(call.home())), Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_doctor_checks_the_shared_database() {
    let mut postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "verify", &[]).await;
    let ran = succeed(&url, &["doctor", "--json"]).await;
    let document = ran.json();
    let checks = document["checks"].as_array().unwrap();
    let databases: Vec<_> = checks.iter().filter(|check| check["check"] == "database").collect();
    assert!(!databases.is_empty() && databases.iter().all(|check| check["status"] == "ok"), "{document}");
    assert!(document.to_string().contains("127.0.0.1"), "the database is named: {document}");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let plain = succeed(&url, &["doctor"]).await;
    assert!(plain.stdout.lines().any(|line| line.starts_with("ok\tdatabase\t")), "{plain:?}");

    postgres.stop();
    let plain = run(&url, &["doctor"]).await;
    assert_eq!(plain.code(), 1, "{plain:?}");
    assert!(plain.stdout.lines().any(|line| line.starts_with("failed\tdatabase\t")), "{plain:?}");
    assert!(!format!("{plain:?}").contains("hunter2"), "{plain:?}");
    postgres.begin();
    succeed(&url, &["doctor"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn backup_refers_to_the_tools_of_postgresql() {
    let postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "verify", &[]).await;
    let ran = run(&url, &["backup", "backup.tar"]).await;
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(ran.stderr.contains("pg_dump"), "{ran:?}");
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

/// A database that belongs to something else gets no tables from commands that only read or that are refused anyway.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn tables_are_created_by_the_first_write_and_reported_once() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let create = ["keys", "create", "--service", "verify"];
    for (arguments, code) in
        [(&["keys", "list"][..], 0), (&["keys", "revoke", "x", "--yes"], 9), (&["apps", "list"], 0)]
    {
        let ran = run(&url, arguments).await;
        assert_eq!(ran.code(), code, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("has no tables of mk yet"), "{arguments:?}: {ran:?}");
    }
    let refused = run(&url, &[&create[..], &["--app", "gone"]].concat()).await;
    assert_eq!(refused.code(), 9, "{refused:?}");
    assert!(refused.stderr.starts_with("error: there is no app `gone`"), "{refused:?}");
    let messages = [succeed(&url, &create).await.stderr, succeed(&url, &create).await.stderr];
    assert!(messages[0].starts_with("created the tables of mk in postgres://"), "{messages:?}");
    assert!(!messages[1].contains("tables") && !messages[0].contains("hunter2"), "{messages:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn without_the_database_commands_fail_and_say_why() {
    let mut postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "verify", &[]).await;
    postgres.stop();
    for arguments in [
        &["keys", "list"][..],
        &["keys", "create", "--service", "verify"],
        &["keys", "revoke", "x", "--yes"],
        &["apps", "list", "--json"],
        &["usage"],
    ] {
        let ran = run(&url, arguments).await;
        assert!(![0, 9].contains(&ran.code()), "{arguments:?}: {ran:?}");
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
        assert!(format!("{ran:?}").contains("database"), "{ran:?}");
    }
    postgres.begin();
    succeed(&url, &["keys", "list"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_warns_of_a_local_database_that_it_does_not_use() {
    let postgres = Postgres::start();
    let call = call(&postgres.url(), "http://127.0.0.1:0/v1");
    let data = data_dir(call.home());
    let server = Serve::start_beside(&call).await;
    assert!(
        !server.logged().contains("does not use, because it has another database"),
        "{}",
        server.logged()
    );
    drop(server);
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("mk.db"), "").unwrap();
    let server = Serve::start_beside(&call).await;
    server.until_logged(1, |line| line.contains("does not use, because it has another database")).await;
}
