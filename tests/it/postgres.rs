//! Servers that share a PostgreSQL database: changes made through one apply at the others at once, usage at each is
//! counted once, and without the database no request is admitted. The servers are real processes, as they would be on
//! several machines.
//!
//! A plain `cargo test` needs nothing but Rust, so the tests that need a real PostgreSQL are ignored; no fake could
//! take its place. `.ci/run` installs it and runs them, as `cargo test --test it postgres -- --ignored` does wherever
//! one is installed; without one they fail.

mod audit_order;
mod commands;
mod end_users;
mod hostile_text;
mod key_changes;
mod limits;
mod lost_commits;
mod outage;
mod partial_faults;
mod restore;
mod sessions;
mod slow;
mod unusable;
mod usage;
mod verdicts;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::support::chat::hello;
use crate::support::console::{Console, text};
use crate::support::mk::Mk;
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::{self, Serve};
use crate::support::server::client;

/// The cost in dollars of a call to `fake/m` answered with `Reply::Text`: 100 tokens at a dollar per million, and 10 at
/// two.
const COST: f64 = 0.000_12;

/// The options for a key without rate limits.
const UNLIMITED: [&str; 4] = ["--per-minute", "0", "--per-day", "0"];

/// A provider that counts its calls.
struct CountingProvider {
    provider: FakeProvider,
    calls: Arc<AtomicI64>,
}

impl CountingProvider {
    async fn start() -> Self {
        let calls = Arc::<AtomicI64>::default();
        let counted = calls.clone();
        let provider = FakeProvider::start(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Reply::Text("Hi".to_owned())
        });
        Self { provider: provider.await, calls }
    }

    fn calls(&self) -> i64 {
        self.calls.load(Ordering::SeqCst)
    }
}

/// An `mk serve` command with a price for `fake/m`, and without limits on failed authentications and open pages.
fn configured(provider: &str) -> Mk {
    let call = serve::call(provider, "");
    let file = call.home().join("server.toml");
    let more = "[providers.fake.models.m]\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n\
                [limits]\nfailed_auth_per_minute = 0\nopen_pages_per_minute = 0\n";
    let text = std::fs::read_to_string(&file).unwrap() + more;
    std::fs::write(&file, text).unwrap();
    call
}

/// An `mk serve` command on this database that allows five failed authentications per minute.
fn limited(database: &str, provider: &str) -> Mk {
    let call = configured(provider);
    let file = call.home().join("server.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("failed_auth_per_minute = 0", "failed_auth_per_minute = 5")).unwrap();
    call.env("MK_DATABASE_URL", database)
}

/// [`configured`], on this database.
fn call(database: &str, provider: &str) -> Mk {
    configured(provider).env("MK_DATABASE_URL", database)
}

/// An operator's command on the database.
fn operator(database: &str, arguments: &[&str]) -> Mk {
    Mk::new().args(arguments.iter().copied()).env("MK_DATABASE_URL", database)
}

/// Creates a key with `mk keys create`; returns the key and its id.
async fn make_key(database: &str, service: &str, more: &[&str]) -> (String, String) {
    let arguments = [&["keys", "create", "--json", "--service", service], more].concat();
    let made = operator(database, &arguments).run_beside().await;
    assert_eq!(made.code(), 0, "{made:?}");
    let made = made.json();
    (text(&made["key"]), text(&made["id"]))
}

/// Two servers on one database, with a client of the console API for each.
struct TwoServers {
    servers: [Serve; 2],
    consoles: [Console; 2],
    app: String,
}

impl TwoServers {
    async fn start(database: &str, provider: &str) -> Self {
        let (key, key_id) =
            make_key(database, "console", &[&UNLIMITED[..], &["--name", "ops"]].concat()).await;
        let calls = [call(database, provider), call(database, provider)];
        let servers = [Serve::start_beside(&calls[0]).await, Serve::start_beside(&calls[1]).await];
        let consoles = [0, 1].map(|at: usize| Console {
            base: servers[at].base.clone(),
            key: key.clone(),
            key_id: key_id.clone(),
        });
        let (status, apps) = consoles[0].get("/v1/apps").await;
        assert_eq!(status, 200, "{apps}");
        Self { app: text(&apps["data"][0]["id"]), servers, consoles }
    }

    /// Creates a key through the first server, with `more` in the request; returns it and the path of its record.
    async fn key(&self, service: &str, more: &Value) -> (String, String) {
        let mut body = json!({"service": service, "limits": {"per_minute": 0, "per_day": 0}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.consoles[0].key(&self.app, &body).await
    }
}

/// A well-formed key that is not in the database.
async fn unknown_key() -> String {
    let made = Mk::new().args(["keys", "create", "--service", "inference"]).run_beside().await;
    assert_eq!(made.code(), 0, "{made:?}");
    made.stdout.trim().to_owned()
}

/// A direct connection to the database.
async fn connect(postgres: &Postgres) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn at(server: &Serve, path: &str) -> String {
    format!("{}{path}", server.base)
}

/// An invalid verification request: it shows whether a verify key is admitted, and calls no model.
fn invalid_request(base: &str, key: &str) -> RequestBuilder {
    client().post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(&json!({}))
}

/// The status and the error code of the response to it; the status is 400 if the key is admitted.
async fn check_key(base: &str, key: &str) -> (u16, String) {
    status_and_code(invalid_request(base, key).send().await.unwrap()).await
}

/// A request for a completion of `fake/m`.
fn completion_request(base: &str, key: &str) -> RequestBuilder {
    client().post(format!("{base}/inference/v1/chat/completions")).bearer_auth(key).json(&hello())
}

/// The status and the error code of the response to it.
async fn complete(base: &str, key: &str) -> (u16, String) {
    status_and_code(completion_request(base, key).send().await.unwrap()).await
}

/// The status and the error code of a response, which is read to its end; without an error, the code is empty.
async fn status_and_code(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// The totals that `mk usage` reports for today and yesterday, in case midnight passes.
async fn totals(database: &str) -> Value {
    let ran = operator(database, &["usage", "--since", "2d", "--json"]).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.json()["totals"].clone()
}

/// Asks until the answer satisfies `holds`, and fails with the last one if none does within a minute.
async fn until<T: std::fmt::Debug>(what: &str, ask: impl AsyncFn() -> T, holds: impl Fn(&T) -> bool) -> T {
    let limit = Instant::now() + Duration::from_mins(1);
    loop {
        let found = ask().await;
        if holds(&found) {
            return found;
        }
        assert!(Instant::now() < limit, "never: {what}: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until this many attempts are recorded, and asserts that there are no more a moment later.
async fn assert_recorded(database: &str, attempts: i64) -> Value {
    let holds = |totals: &Value| totals["attempts"].as_i64() >= Some(attempts);
    until("all attempts are recorded", async || totals(database).await, holds).await;
    // Long enough for the servers to write twice.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let totals = totals(database).await;
    assert_eq!((&totals["attempts"], &totals["requests"]), (&json!(attempts), &json!(attempts)), "{totals}");
    let cost = totals["cost_usd"].as_f64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let expected = attempts as f64 * COST;
    assert!((cost - expected).abs() < 1e-9, "{totals}");
    totals
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_test_cluster_can_be_stopped_killed_frozen_and_restarted() {
    let mut postgres = Postgres::start();
    postgres.sql("mk", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    postgres.kill();
    postgres.begin();
    postgres.sql("mk", "INSERT INTO t VALUES (2)");
    postgres.stop();
    postgres.begin();
    assert_eq!(postgres.number("mk", "SELECT count(*) FROM t"), 2);
    postgres.freeze();
    let query = async |url: String| {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one("SELECT 'ä'", &[]).await.unwrap().get::<_, String>(0)
    };
    let url = postgres.url();
    let frozen = tokio::time::timeout(Duration::from_secs(1), query(url.clone())).await;
    assert!(frozen.is_err(), "a frozen database must not answer");
    postgres.thaw();
    assert_eq!(query(url).await, "ä");
    assert_eq!(query(postgres.socket_url()).await, "ä");
}
