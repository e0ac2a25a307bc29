//! Commands with a configured PostgreSQL database: what they report before connecting, and never its password.

use serde_json::Value;

use crate::support::mk::{CommandOutput, Mk};

/// A database that these commands name, and do not connect to.
const URL: &str = "postgres://robin:hunter2@127.0.0.1:1/mk";

fn ran(arguments: &[&str], url: &str) -> CommandOutput {
    let ran = Mk::new().args(arguments.iter().copied()).env("MK_DATABASE_URL", url).run();
    assert!(!format!("{ran:?}").contains("hunter"), "{ran:?}");
    ran
}

#[test]
fn backup_of_postgresql_is_left_to_pg_dump() {
    let refused = ran(&["backup", "mk.tar"], URL);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("the database is postgres://127.0.0.1:1/mk"), "{refused:?}");
    assert!(refused.stderr.contains("pg_dump --format=custom"), "{refused:?}");
    for command in ["backup", "restore"] {
        let named = ran(&[command, "mk.tar", "--data-dir", "nowhere"], URL);
        assert!(!named.stderr.contains("postgres"), "{named:?}");
    }
}

#[test]
fn restore_needs_a_reachable_database() {
    let missing = ran(&["restore", "mk.tar"], URL);
    assert_eq!(missing.code(), 2, "{missing:?}");
    assert!(missing.stderr.contains("cannot read mk.tar"), "{missing:?}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mk.tar");
    std::fs::write(&file, "no backup").unwrap();
    // Bound and not listened on: refused, whatever else runs on this machine.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = held.local_addr().unwrap();
    let url = format!("postgres://robin:hunter2@{address}/mk");
    let nowhere = ran(&["restore", file.to_str().unwrap()], &url);
    assert_eq!((nowhere.code(), nowhere.stdout.as_str()), (6, ""), "{nowhere:?}");
    let told = format!("cannot use the database postgres://{address}/mk");
    assert!(nowhere.stderr.contains(&told), "{nowhere:?}");
}

#[test]
fn a_named_data_directory_overrides_the_configured_database() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let made = ran(&["apps", "create", "here", "--data-dir", data.to_str().unwrap()], URL);
    assert_eq!(made.code(), 0, "{made:?}");
    assert!(data.join("mk.db").exists());

    let serving = ran(&["serve", "--sandbox", "--data-dir", data.to_str().unwrap()], URL);
    assert_eq!(serving.code(), 2, "{serving:?}");
    assert!(
        serving.stderr.contains("the configuration names the database postgres://127.0.0.1:1/mk"),
        "{serving:?}"
    );
    assert!(serving.stderr.contains("MK_DATABASE_URL=sqlite"), "{serving:?}");
}

#[test]
fn serve_check_reports_the_database() {
    let checked = ran(&["serve", "--sandbox", "--check"], URL);
    assert_eq!(checked.code(), 0, "{checked:?}");
    assert!(checked.stdout.contains("database\tpostgres://127.0.0.1:1/mk"), "{checked:?}");
}

#[test]
fn the_doctor_reports_an_invalid_database_url() {
    let wrong = ran(&["doctor", "--json"], "postgres://robin:hunter/2@127.0.0.1/mk");
    assert_eq!(wrong.code(), 1, "{wrong:?}");
    let document: Value = serde_json::from_str(&wrong.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == "database").unwrap();
    assert_eq!(found["status"], "failed");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("MK_DATABASE_URL contains a character") && message.contains("%2F"),
        "{message}"
    );
}
