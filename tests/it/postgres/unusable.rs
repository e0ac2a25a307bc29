//! Databases that cannot be used: the errors name the cause, and never the password. And databases that require TLS.

use serde_json::{Value, json};

use super::{TwoServers, call, check_key, make_key, operator};
use crate::support::console::ids;
use crate::support::mk::{CommandOutput, Mk};
use crate::support::postgres::{PASSWORD, Postgres, USER};
use crate::support::serve::Serve;
use crate::support::tls::Identity;

/// An address without a provider.
const NOWHERE: &str = "http://127.0.0.1:0/v1";

/// Runs a command that must fail by itself, without printing the password.
async fn fails(mk: Mk) -> CommandOutput {
    let ran = mk.through(&["timeout", "60"]).run_beside().await;
    assert!(![0, 124].contains(&ran.code()), "{ran:?}");
    assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

/// Asserts that a server, a command and the doctor all report that a database cannot be used.
async fn refused(database: &str) -> CommandOutput {
    let served = fails(call(database, NOWHERE)).await;
    let made = fails(operator(database, &["keys", "create", "--service", "verify"])).await;
    for ran in [&served, &made] {
        assert!(ran.stderr.to_lowercase().contains("database"), "{ran:?}");
    }
    assert_fails(doctor(database).await);
    served
}

/// The exit code of `mk doctor` and its database check.
async fn doctor(database: &str) -> (i32, Value) {
    let ran = operator(database, &["doctor", "--json"]).through(&["timeout", "60"]).run_beside().await;
    assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["exit"], ran.code(), "{ran:?}");
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == "database");
    (ran.code(), found.unwrap_or_else(|| panic!("{document}")).clone())
}

fn assert_fails((code, check): (i32, Value)) {
    assert_eq!((code, &check["status"]), (1, &json!("failed")), "{check}");
}

async fn assert_serves(database: &str) {
    let server = Serve::start_beside(&call(database, NOWHERE)).await;
    let (key, _) = make_key(database, "verify", &[]).await;
    assert_eq!(check_key(&server.base, &key).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_database_is_reported_without_its_password() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let ran = refused(&format!("postgres://mk:{PASSWORD}@{nobody}/mk")).await;
    assert!(ran.stderr.contains(&nobody.to_string()), "the database is named: {ran:?}");
    refused(&format!("postgres://mk:{PASSWORD}@%2Fnowhere/mk")).await;
    refused(&format!("postgres://mk:{PASSWORD}@no-such-host.invalid/mk")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_address_is_reported_without_its_password() {
    for wrong in [
        "postgres://mk:hunter2/x@127.0.0.1/mk",
        "postgres://mk:hunter2@127.0.0.1:99999/mk",
        "postgres://mk:hunter2@127.0.0.1/mk?sslmode=perhaps",
        "postgres://mk:hunter2@127.0.0.1/mk?unheard=of",
        "mysql://mk:hunter2@127.0.0.1/mk",
        "hunter2",
    ] {
        let ran = fails(call(wrong, NOWHERE)).await;
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("MK_DATABASE_URL"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_refused_login_is_reported_with_its_reason() {
    let postgres = Postgres::start();
    let port = postgres.port();
    let wrong = refused(&format!("postgres://{USER}:{PASSWORD}0@127.0.0.1:{port}/mk")).await;
    assert!(wrong.stderr.contains("password authentication failed"), "{wrong:?}");
    let unknown = refused(&postgres.url_of("nowhere")).await;
    assert!(unknown.stderr.contains("\"nowhere\" does not exist"), "{unknown:?}");
    let nobody = refused(&format!("postgres://nobody:{PASSWORD}@127.0.0.1:{port}/mk")).await;
    assert!(nobody.stderr.contains("nobody"), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_role_without_write_permission_is_reported() {
    let postgres = Postgres::start();
    postgres.sql("postgres", &format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'"));
    let reader = format!("postgres://reader:{PASSWORD}@127.0.0.1:{}/mk", postgres.port());
    let assert_refused = async || {
        let serving = fails(call(&reader, NOWHERE)).await;
        assert_eq!(serving.code(), 2, "{serving:?}");
        let making = fails(operator(&reader, &["keys", "create", "--service", "verify"])).await;
        for ran in [serving, making] {
            let words = ["permission denied", "may not read and write"];
            assert!(words.iter().any(|words| ran.stderr.contains(words)), "{ran:?}");
        }
    };
    assert_refused().await;
    // The same if another role has created the tables.
    assert_serves(&postgres.url()).await;
    assert_refused().await;
    postgres.sql("mk", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    assert_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_doctor_reports_missing_permissions() {
    let postgres = Postgres::start();
    postgres.sql("postgres", &format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'"));
    let reader = format!("postgres://reader:{PASSWORD}@127.0.0.1:{}/mk", postgres.port());
    let mut found = vec![("no tables", doctor(&reader).await)];
    assert_serves(&postgres.url()).await;
    found.push(("tables of another role", doctor(&reader).await));
    postgres.sql("mk", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    found.push(("tables that may be read", doctor(&reader).await));
    let has_failed = |(_, (code, check)): &(&str, (i32, Value))| *code == 1 && check["status"] == "failed";
    assert!(found.iter().all(has_failed), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_database_of_a_later_version_is_refused() {
    let postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "verify", &[]).await;
    assert_eq!(doctor(&url).await.0, 0);
    let version = "SELECT table_name, column_name FROM information_schema.columns
                   WHERE table_schema = 'public' AND table_name LIKE '%schema%' AND data_type LIKE '%int%'";
    let found = postgres.rows("mk", version);
    let [table, column] = [0, 1].map(|at: usize| found[0][at].clone());
    postgres.sql("mk", &format!("UPDATE {table} SET {column} = {column} + 1000"));
    let ran = refused(&url).await;
    assert!(ran.stderr.contains("newer version"), "{ran:?}");
    postgres.sql("mk", &format!("UPDATE {table} SET {column} = {column} - 1000"));
    assert_serves(&url).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_read_only_database_is_reported() {
    let postgres = Postgres::start();
    let url = postgres.url();
    make_key(&url, "verify", &[]).await;
    postgres.sql("postgres", "ALTER DATABASE mk SET default_transaction_read_only = on");
    assert_fails(doctor(&url).await);
    // It may be a replica that lags behind, so nothing is read from it either.
    for arguments in [&["keys", "list"][..], &["keys", "create", "--service", "verify"]] {
        let ran = fails(operator(&url, arguments)).await;
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("it is read-only"), "{ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_certificate_is_checked_as_sslmode_requires() {
    let (identity, other) = (Identity::new(), Identity::new());
    let postgres = Postgres::start_tls(&identity);
    let url =
        |host: &str, more: &str| format!("postgres://{USER}:{PASSWORD}@{host}:{}/mk?{more}", postgres.port());
    let root = format!("sslrootcert={}", identity.files.cert.display());
    for host in ["127.0.0.1", "localhost"] {
        assert_serves(&url(host, "sslmode=require")).await;
        assert_serves(&url(host, &format!("sslmode=verify-full&{root}"))).await;
    }
    refused(&url("127.0.0.1", "sslmode=disable")).await;
    let unknown = refused(&url("127.0.0.1", "sslmode=verify-full")).await;
    assert!(unknown.stderr.contains("certificate"), "{unknown:?}");
    let wrong = format!("sslmode=verify-full&sslrootcert={}", other.files.cert.display());
    refused(&url("127.0.0.1", &wrong)).await;
    refused(&url("127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere.pem")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_database_without_tls_is_refused_if_tls_is_required() {
    let postgres = Postgres::start();
    for mode in ["require", "verify-full"] {
        refused(&format!("{}?sslmode={mode}", postgres.url())).await;
    }
    assert_serves(&format!("{}?sslmode=prefer", postgres.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn servers_that_set_up_a_database_concurrently_create_one_default_app() {
    let postgres = Postgres::start();
    for round in 0..3 {
        let name = format!("empty{round}");
        postgres.new_database(&name, "");
        let url = postgres.url_of(&name);
        let calls = [0; 4].map(|_| call(&url, NOWHERE));
        let starting = calls.iter().map(Serve::start_beside);
        let servers = futures_util::future::join_all(starting).await;
        let (key, _) = make_key(&url, "verify", &[]).await;
        for server in &servers {
            assert_eq!(check_key(&server.base, &key).await.0, 400);
        }
        let apps = operator(&url, &["apps", "list", "--json"]).run_beside().await.json();
        let apps = apps["apps"].as_array().unwrap();
        assert_eq!((apps.len(), &apps[0]["name"]), (1, &json!("default")), "{apps:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn databases_in_one_cluster_are_independent() {
    let postgres = Postgres::start();
    postgres.new_database("other", "");
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    let other = TwoServers::start(&postgres.url_of("other"), NOWHERE).await;
    let (key, path) = two.key("verify", &json!({})).await;
    assert_eq!(check_key(&two.servers[1].base, &key).await.0, 400);
    assert_eq!(check_key(&other.servers[0].base, &key).await, (401, "invalid_api_key".to_owned()));
    assert_eq!(other.consoles[0].get(&path).await.0, 404);
    let keys = other.consoles[0].walk(&format!("/v1/apps/{}/keys?", other.app), 10).await;
    assert_eq!(ids(&keys), [other.consoles[0].key_id.clone()]);
}
