//! Without the database no request is admitted, and no usage is lost or counted twice; once it is back, the servers
//! work again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    CountingProvider, TwoServers, assert_recorded, call, check_key, complete, completion_request, make_key,
    unknown_key, until,
};
use crate::support::console::Console;
use crate::support::mk::Mk;
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::Serve;
use crate::support::server::client;

/// The time within which a server must report that its database is unavailable, whatever the reason.
const BOUND: Duration = Duration::from_secs(20);

fn unavailable() -> (u16, String) {
    (503, "store_unavailable".to_owned())
}

/// The status and the body of a server's health response.
async fn health(server: &Serve) -> (u16, Value) {
    let asked = client().get(super::at(server, "/inference/v1/health")).send().await.unwrap();
    (asked.status().as_u16(), asked.json().await.unwrap())
}

async fn until_healthy(server: &Serve) {
    until("the server is healthy", async || health(server).await, |(status, _)| *status == 200).await;
}

/// Asserts that every caller is reply that the store is unavailable, and nothing else about it.
async fn assert_unavailable(two: &TwoServers, good: &str) {
    let unknown_key = unknown_key().await;
    for server in &two.servers {
        for key in [good, &unknown_key] {
            let asked = timeout(BOUND, completion_request(&server.base, key).send())
                .await
                .expect("no response in time")
                .unwrap();
            assert_eq!(asked.status(), 503, "{key}");
            assert!(asked.headers().contains_key("retry-after"), "{asked:?}");
            let text = asked.text().await.unwrap();
            assert!(text.contains(r#""code":"store_unavailable""#), "{text}");
            assert!(
                !["hunter2", "127.0.0.1", "postgres", "SELECT"].iter().any(|word| text.contains(word)),
                "{text}"
            );
        }
        let (status, health) = timeout(BOUND, health(server)).await.expect("no response in time");
        assert_eq!((status, &health["status"]), (503, &json!("store_unavailable")));
        let page = client().get(super::at(server, "/metrics")).send();
        let page = timeout(BOUND, page).await.expect("no response in time").unwrap().text().await.unwrap();
        assert!(page.lines().any(|line| line == "mk_database_up 0"), "{page}");
    }
    let (status, reply) = two.consoles[0].get("/v1/apps").await;
    assert_eq!((status, &reply["code"]), (503, &json!("store_unavailable")));
    let looked = Mk::new().args(["doctor"]).env("MK_SERVER", &two.servers[0].base).run_beside().await;
    assert!(
        looked.stdout.contains("reports that it is unhealthy: its database is unavailable"),
        "{looked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn without_its_database_a_server_refuses_all_requests_and_recovers() {
    let provider = CountingProvider::start().await;
    let mut postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({})).await;
    for round in 0..3 {
        for server in &two.servers {
            until_healthy(server).await;
            assert_eq!(complete(&server.base, &key).await.0, 200);
        }
        if round == 0 {
            postgres.stop();
        } else {
            postgres.kill();
        }
        assert_unavailable(&two, &key).await;
        postgres.begin();
    }
    for server in &two.servers {
        until_healthy(server).await;
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    assert_recorded(&postgres.url(), provider.calls()).await;
    assert_eq!(two.consoles[1].delete(&path).await.0, 200);
    assert_eq!(complete(&two.servers[0].base, &key).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_frozen_database_delays_nobody_for_long() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    for server in &two.servers {
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    postgres.freeze();
    let started = Instant::now();
    assert_unavailable(&two, &key).await;
    // Many concurrent requests do not queue behind each other.
    let many = join_all((0..60).map(|at: usize| complete(&two.servers[at % 2].base, &key)));
    let many = timeout(BOUND, many).await.expect("the requests queue behind each other");
    assert!(many.iter().all(|reply| *reply == unavailable()), "{many:?}");
    println!("frozen for {:?}", started.elapsed());
    postgres.thaw();
    for server in &two.servers {
        until_healthy(server).await;
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    assert_recorded(&postgres.url(), provider.calls()).await;
}

/// Sends requests to both servers in turn until `end`; returns how many were admitted and how many refused.
async fn call_until(bases: [String; 2], key: String, end: Arc<AtomicBool>) -> (i64, i64) {
    let (mut admitted, mut refused) = (0, 0);
    for at in 0_usize.. {
        if end.load(Ordering::SeqCst) {
            break;
        }
        match complete(&bases[at % 2], &key).await {
            (200, _) => admitted += 1,
            reply => {
                assert_eq!(reply, unavailable());
                refused += 1;
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
    (admitted, refused)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn usage_is_counted_once_while_the_database_crashes_repeatedly() {
    let provider = CountingProvider::start().await;
    let mut postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    let end = Arc::new(AtomicBool::new(false));
    let bases = [0, 1].map(|at: usize| two.servers[at].base.clone());
    let callers: Vec<_> =
        (0..6).map(|_| tokio::spawn(call_until(bases.clone(), key.clone(), end.clone()))).collect();
    for round in 0..6_u64 {
        // Long enough for some writes, and never in step with their interval.
        sleep(Duration::from_millis(700 + 170 * round)).await;
        postgres.kill();
        if round % 2 == 0 {
            sleep(Duration::from_millis(1300)).await;
        }
        postgres.begin();
        for server in &two.servers {
            until_healthy(server).await;
        }
    }
    end.store(true, Ordering::SeqCst);
    let (mut admitted, mut refused) = (0, 0);
    for caller in callers {
        let reply = caller.await.unwrap();
        (admitted, refused) = (admitted + reply.0, refused + reply.1);
    }
    println!("{admitted} admitted, {refused} were refused");
    assert!(admitted > 0 && refused > 0, "{admitted} admitted, {refused} were refused");
    assert_eq!(provider.calls(), admitted);
    assert_recorded(&postgres.url(), admitted).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn acknowledged_keys_and_revocations_survive_a_crash_of_the_database() {
    let mut postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let console = |at: usize| two.consoles[at].clone();
    let (mut made, mut revoked) = (Vec::new(), Vec::new());
    for round in 0..3_usize {
        let end = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn(write_until(console(round % 2), two.app.clone(), end.clone()));
        sleep(Duration::from_millis(500)).await;
        postgres.kill();
        end.store(true, Ordering::SeqCst);
        let reply = writer.await.unwrap();
        made.extend(reply.0);
        revoked.extend(reply.1);
        postgres.begin();
        for server in &two.servers {
            until_healthy(server).await;
        }
    }
    assert!(!made.is_empty() && !revoked.is_empty());
    for (keys, code) in [(&made, ""), (&revoked, "api_key_revoked")] {
        for key in keys {
            let reply = check_key(&two.servers[1].base, key).await;
            assert!(
                if code.is_empty() { reply.0 == 400 } else { reply.1 == code },
                "{reply:?} instead of {code}"
            );
        }
    }
}

/// Creates keys and revokes every other one until `end`; returns those whose creation and whose revocation were
/// acknowledged.
async fn write_until(console: Console, app: String, end: Arc<AtomicBool>) -> (Vec<String>, Vec<String>) {
    let (mut made, mut revoked) = (Vec::new(), Vec::new());
    let list = format!("/v1/apps/{app}/keys");
    let body = json!({"service": "verify", "limits": {"per_minute": 0}});
    while !end.load(Ordering::SeqCst) {
        let (status, answer) = console.post(&list, &body).await;
        if status != 201 {
            assert_eq!((status, &answer["code"]), (503, &json!("store_unavailable")));
            continue;
        }
        let key = answer["key"].as_str().unwrap().to_owned();
        if made.len() > revoked.len() {
            let path = format!("{list}/{}", answer["id"].as_str().unwrap());
            let (status, reply) = console.delete(&path).await;
            if status == 200 {
                revoked.push(key);
            } else {
                assert_eq!((status, &reply["code"]), (503, &json!("store_unavailable")));
            }
        } else {
            made.push(key);
        }
    }
    (made, revoked)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn terminated_idle_connections_cause_no_failure() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let two = TwoServers::start(&url, &provider.provider.base_url).await;
    let (key, _) = make_key(&url, "inference", &super::UNLIMITED).await;
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'mk'";
    for _ in 0..10 {
        for server in &two.servers {
            assert_eq!(complete(&server.base, &key).await.0, 200, "only idle connections were closed");
        }
        assert!(postgres.number("mk", terminate) > 0);
    }
    assert_recorded(&url, provider.calls()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_shutting_down_during_an_outage_writes_its_usage_once_the_database_is_back() {
    let postgres = Arc::new(Mutex::new(Postgres::start()));
    let url = postgres.lock().unwrap().url();
    let stopped = postgres.clone();
    // The database stops after the key was looked up, and before there is any usage to write.
    let provider = FakeProvider::start(move |_| {
        stopped.lock().unwrap().stop();
        Reply::Text("Hi".to_owned())
    });
    let provider = provider.await;
    let (key, _) = make_key(&url, "inference", &super::UNLIMITED).await;
    let server = Serve::start_beside(&super::call(&url, &provider.base_url)).await;
    assert_eq!(complete(&server.base, &key).await.0, 200);
    server.signal("TERM");
    server.until_logged(1, |line| line.contains("shutting down")).await;
    let restarted = postgres.clone();
    let (ended, log) = tokio::task::spawn_blocking(move || {
        restarted.lock().unwrap().begin();
        server.wait()
    })
    .await
    .unwrap();
    assert!(ended.success(), "{log}");
    assert_recorded(&url, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_shutting_down_keeps_its_usage_until_the_database_is_writable() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let (key, _) = make_key(&postgres.url(), "inference", &["--per-minute", "0"]).await;
    let server = Serve::start_beside(&call(&postgres.url(), &provider.provider.base_url)).await;
    assert_eq!(complete(&server.base, &key).await.0, 200);
    assert_recorded(&postgres.url(), 1).await;
    let read_only = async |setting: &str| {
        postgres.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {setting}"));
        postgres.sql("postgres", "SELECT pg_reload_conf()");
        // The setting takes effect only once the cluster has read it and admitted it on to open connections.
        let shown = async || postgres.rows("postgres", "SHOW default_transaction_read_only")[0][0].clone();
        until("the setting takes effect", shown, |shown| shown == setting).await;
    };
    read_only("on").await;
    let refused = |line: &str| line.contains("usage and counters cannot be written");
    assert_eq!(complete(&server.base, &key).await.0, 200);
    server.until_logged(1, refused).await;
    server.signal("TERM");
    until(
        "the server is draining",
        async || client().get(super::at(&server, "/verify/v1/health")).send().await.is_err(),
        |gone| *gone,
    )
    .await;
    // Long enough for at least two attempts to write.
    tokio::time::sleep(Duration::from_secs(1)).await;
    read_only("off").await;
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_recorded(&postgres.url(), 2).await;
}
