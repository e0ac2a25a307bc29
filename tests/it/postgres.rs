//! Servers that share a PostgreSQL: what is done through one holds at the others at once, what is used through each is
//! counted once, and without the database nobody passes. They are real processes, as they would be on several machines.
//!
//! A plain `cargo test` asks for nothing but Rust, so it leaves out those that need a real PostgreSQL, which nothing else
//! could stand in for. `.ci/run` installs it and runs them, as `cargo test --test it postgres -- --ignored` does wherever
//! one is installed; there they fail if there is none.

mod carried;
mod commands;
mod cut;
mod gone;
mod refused;
mod sessions;
mod shared;
mod slow;
mod texts;
mod together;
mod trouble;
mod usage;

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
use crate::support::provider::{FakeProvider, Turn};
use crate::support::serve::{self, Serve};
use crate::support::server::client;

/// What a call of `fake/m` costs whose answer is `Turn::Text`, in dollars: 100 tokens at a dollar and 10 at two for a
/// million.
const COST: f64 = 0.000_12;

/// A key that has no limits of its own but these.
const UNLIMITED: [&str; 4] = ["--per-minute", "0", "--per-day", "0"];

/// A provider that counts all its calls, however many.
struct Counted {
    provider: FakeProvider,
    calls: Arc<AtomicI64>,
}

impl Counted {
    async fn start() -> Self {
        let calls = Arc::<AtomicI64>::default();
        let counted = calls.clone();
        let provider = FakeProvider::start(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Turn::Text("Hi".to_owned())
        });
        Self { provider: provider.await, calls }
    }

    fn calls(&self) -> i64 {
        self.calls.load(Ordering::SeqCst)
    }
}

/// A call of `mk serve` with `fake/m` at a known price, where as many wrong keys and open pages as are asked for are let
/// through.
fn configured(provider: &str) -> Mk {
    let call = serve::call(provider, "");
    let file = call.home().join("server.toml");
    let more = "[providers.fake.models.m]\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n\
                [limits]\nfailed_auth_per_minute = 0\nopen_pages_per_minute = 0\n";
    let text = std::fs::read_to_string(&file).unwrap() + more;
    std::fs::write(&file, text).unwrap();
    call
}

/// A call of `mk serve` on this database, where five wrong keys a minute are let through.
fn limited(database: &str, provider: &str) -> Mk {
    let call = configured(provider);
    let file = call.home().join("server.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("failed_auth_per_minute = 0", "failed_auth_per_minute = 5")).unwrap();
    call.env("MK_DATABASE_URL", database)
}

/// [`configured`] on this database.
fn call(database: &str, provider: &str) -> Mk {
    configured(provider).env("MK_DATABASE_URL", database)
}

/// A call on the database, by a process of its own.
fn operator(database: &str, arguments: &[&str]) -> Mk {
    Mk::new().args(arguments.iter().copied()).env("MK_DATABASE_URL", database)
}

/// A key made at the command line, and its id.
async fn make_key(database: &str, service: &str, more: &[&str]) -> (String, String) {
    let arguments = [&["keys", "create", "--json", "--service", service], more].concat();
    let made = operator(database, &arguments).run_beside().await;
    assert_eq!(made.code(), 0, "{made:?}");
    let made = made.json();
    (text(&made["key"]), text(&made["id"]))
}

/// Two servers on one database, and what a console key shows at each.
struct Two {
    servers: [Serve; 2],
    consoles: [Console; 2],
    app: String,
}

impl Two {
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

    /// A key made through the first server, with the rest of what is asked for; and the address of its record.
    async fn key(&self, service: &str, more: &Value) -> (String, String) {
        let mut body = json!({"service": service, "limits": {"per_minute": 0, "per_day": 0}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.consoles[0].key(&self.app, &body).await
    }
}

/// A key as it should be, which nobody here knows.
async fn stranger() -> String {
    let made = Mk::new().args(["keys", "create", "--service", "inference"]).run_beside().await;
    assert_eq!(made.code(), 0, "{made:?}");
    made.stdout.trim().to_owned()
}

/// A connection of somebody else.
async fn beside(postgres: &Postgres) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn at(server: &Serve, path: &str) -> String {
    format!("{}{path}", server.base)
}

/// A request that shows whether a verify key is let in, and asks no model.
fn knocking(base: &str, key: &str) -> RequestBuilder {
    client().post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(&json!({}))
}

/// Status and code of the answer to it: 400 to one that is let in.
async fn knock(base: &str, key: &str) -> (u16, String) {
    told(knocking(base, key).send().await.unwrap()).await
}

/// A request for a completion of `fake/m`.
fn completing(base: &str, key: &str) -> RequestBuilder {
    client().post(format!("{base}/inference/v1/chat/completions")).bearer_auth(key).json(&hello())
}

/// Status and code of the answer to it.
async fn complete(base: &str, key: &str) -> (u16, String) {
    told(completing(base, key).send().await.unwrap()).await
}

/// Status and code of an answer, which is read to its end; of one that is no error, an empty code.
async fn told(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// What `mk usage` sums up of today and yesterday, in case midnight passes.
async fn totals(database: &str) -> Value {
    let ran = operator(database, &["usage", "--since", "2d", "--json"]).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.json()["totals"].clone()
}

/// Asks until the answer is the expected one, and fails with the last one if it never is.
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

/// Waits until so many attempts are booked; a moment later there must be no more.
async fn booked(database: &str, attempts: i64) -> Value {
    let holds = |totals: &Value| totals["attempts"].as_i64() >= Some(attempts);
    until("all is booked", async || totals(database).await, holds).await;
    // Two turns of what writes.
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
async fn a_cluster_can_be_stopped_killed_frozen_and_begun_again() {
    let mut postgres = Postgres::start();
    postgres.sql("mk", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    postgres.kill();
    postgres.begin();
    postgres.sql("mk", "INSERT INTO t VALUES (2)");
    postgres.stop();
    postgres.begin();
    assert_eq!(postgres.number("mk", "SELECT count(*) FROM t"), 2);
    postgres.freeze();
    let asked = async |url: String| {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one("SELECT 'ä'", &[]).await.unwrap().get::<_, String>(0)
    };
    let url = postgres.url();
    let frozen = tokio::time::timeout(Duration::from_secs(1), asked(url.clone())).await;
    assert!(frozen.is_err(), "it answers");
    postgres.thaw();
    assert_eq!(asked(url).await, "ä");
    assert_eq!(asked(postgres.socket_url()).await, "ä");
}
