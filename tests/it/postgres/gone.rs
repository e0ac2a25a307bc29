//! Without the database nobody passes, and nothing that was used is lost or counted twice; when it is back, all goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Counted, Two, booked, call, complete, completing, knock, make_key, stranger, until};
use crate::support::console::Console;
use crate::support::mk::Mk;
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Turn};
use crate::support::serve::Serve;
use crate::support::server::client;

/// A server must say within this time that it has no database, whatever became of it.
const BOUND: Duration = Duration::from_secs(20);

fn unavailable() -> (u16, String) {
    (503, "store_unavailable".to_owned())
}

/// Status and body of a server's health.
async fn health(server: &Serve) -> (u16, Value) {
    let asked = client().get(super::at(server, "/inference/v1/health")).send().await.unwrap();
    (asked.status().as_u16(), asked.json().await.unwrap())
}

async fn is_well(server: &Serve) {
    until("it is well", async || health(server).await, |(status, _)| *status == 200).await;
}

/// Whoever asks is told that there is no database, and nothing about it.
async fn nobody_passes(two: &Two, good: &str) {
    let stranger = stranger().await;
    for server in &two.servers {
        for key in [good, &stranger] {
            let asked =
                timeout(BOUND, completing(&server.base, key).send()).await.expect("it hangs").unwrap();
            assert_eq!(asked.status(), 503, "{key}");
            assert!(asked.headers().contains_key("retry-after"), "{asked:?}");
            let text = asked.text().await.unwrap();
            assert!(text.contains(r#""code":"store_unavailable""#), "{text}");
            assert!(
                !["hunter2", "127.0.0.1", "postgres", "SELECT"].iter().any(|word| text.contains(word)),
                "{text}"
            );
        }
        let (status, health) = timeout(BOUND, health(server)).await.expect("it hangs");
        assert_eq!((status, &health["status"]), (503, &json!("store_unavailable")));
        let page = client().get(super::at(server, "/metrics")).send();
        let page = timeout(BOUND, page).await.expect("it hangs").unwrap().text().await.unwrap();
        assert!(page.lines().any(|line| line == "mk_database_up 0"), "{page}");
    }
    let (status, told) = two.consoles[0].get("/v1/apps").await;
    assert_eq!((status, &told["code"]), (503, &json!("store_unavailable")));
    let looked = Mk::new().args(["doctor"]).env("MK_SERVER", &two.servers[0].base).run_beside().await;
    assert!(looked.stdout.contains("says that it is not well: its database cannot be used"), "{looked:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn without_its_database_a_server_lets_nobody_pass_and_lives_on() {
    let provider = Counted::start().await;
    let mut postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({})).await;
    for round in 0..3 {
        for server in &two.servers {
            is_well(server).await;
            assert_eq!(complete(&server.base, &key).await.0, 200);
        }
        if round == 0 {
            postgres.stop();
        } else {
            postgres.kill();
        }
        nobody_passes(&two, &key).await;
        postgres.begin();
    }
    for server in &two.servers {
        is_well(server).await;
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    booked(&postgres.url(), provider.calls()).await;
    assert_eq!(two.consoles[1].delete(&path).await.0, 200);
    assert_eq!(complete(&two.servers[0].base, &key).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_frozen_database_keeps_nobody_waiting_for_long() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    for server in &two.servers {
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    postgres.freeze();
    let begun = Instant::now();
    nobody_passes(&two, &key).await;
    // Many at once do not wait one behind the other.
    let many = join_all((0..60).map(|at: usize| complete(&two.servers[at % 2].base, &key)));
    let many = timeout(BOUND, many).await.expect("they wait for each other");
    assert!(many.iter().all(|told| *told == unavailable()), "{many:?}");
    println!("frozen for {:?}", begun.elapsed());
    postgres.thaw();
    for server in &two.servers {
        is_well(server).await;
        assert_eq!(complete(&server.base, &key).await.0, 200);
    }
    booked(&postgres.url(), provider.calls()).await;
}

/// Asks one server after the other until told to end; how often it was answered.
async fn call_on(bases: [String; 2], key: String, end: Arc<AtomicBool>) -> (i64, i64) {
    let (mut passed, mut refused) = (0, 0);
    for at in 0_usize.. {
        if end.load(Ordering::SeqCst) {
            break;
        }
        match complete(&bases[at % 2], &key).await {
            (200, _) => passed += 1,
            told => {
                assert_eq!(told, unavailable());
                refused += 1;
                sleep(Duration::from_millis(10)).await;
            }
        }
    }
    (passed, refused)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_is_used_while_the_database_dies_again_and_again_is_counted_once() {
    let provider = Counted::start().await;
    let mut postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    let end = Arc::new(AtomicBool::new(false));
    let bases = [0, 1].map(|at: usize| two.servers[at].base.clone());
    let callers: Vec<_> =
        (0..6).map(|_| tokio::spawn(call_on(bases.clone(), key.clone(), end.clone()))).collect();
    for round in 0..6_u64 {
        // Long enough for some writes, and never in step with them.
        sleep(Duration::from_millis(700 + 170 * round)).await;
        postgres.kill();
        if round % 2 == 0 {
            sleep(Duration::from_millis(1300)).await;
        }
        postgres.begin();
        for server in &two.servers {
            is_well(server).await;
        }
    }
    end.store(true, Ordering::SeqCst);
    let (mut passed, mut refused) = (0, 0);
    for caller in callers {
        let told = caller.await.unwrap();
        (passed, refused) = (passed + told.0, refused + told.1);
    }
    println!("{passed} passed, {refused} were refused");
    assert!(passed > 0 && refused > 0, "{passed} passed, {refused} were refused");
    assert_eq!(provider.calls(), passed);
    booked(&postgres.url(), passed).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_was_revoked_and_made_outlives_the_death_of_the_database() {
    let mut postgres = Postgres::start();
    let two = Two::start(&postgres.url(), "http://127.0.0.1:9/v1").await;
    let console = |at: usize| two.consoles[at].clone();
    let (mut made, mut revoked) = (Vec::new(), Vec::new());
    for round in 0..3_usize {
        let end = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn(write_on(console(round % 2), two.app.clone(), end.clone()));
        sleep(Duration::from_millis(500)).await;
        postgres.kill();
        end.store(true, Ordering::SeqCst);
        let told = writer.await.unwrap();
        made.extend(told.0);
        revoked.extend(told.1);
        postgres.begin();
        for server in &two.servers {
            is_well(server).await;
        }
    }
    assert!(!made.is_empty() && !revoked.is_empty());
    for (keys, code) in [(&made, ""), (&revoked, "api_key_revoked")] {
        for key in keys {
            let told = knock(&two.servers[1].base, key).await;
            assert!(
                if code.is_empty() { told.0 == 400 } else { told.1 == code },
                "{told:?} instead of {code}"
            );
        }
    }
}

/// Makes keys and revokes every other one; those whose making, and whose revocation, were acknowledged.
async fn write_on(console: Console, app: String, end: Arc<AtomicBool>) -> (Vec<String>, Vec<String>) {
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
            let (status, told) = console.delete(&path).await;
            if status == 200 {
                revoked.push(key);
            } else {
                assert_eq!((status, &told["code"]), (503, &json!("store_unavailable")));
            }
        } else {
            made.push(key);
        }
    }
    (made, revoked)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn all_its_connections_may_be_thrown_out_at_any_time() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let two = Two::start(&url, &provider.provider.base_url).await;
    let (key, _) = make_key(&url, "inference", &super::UNLIMITED).await;
    let throw_out = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'mk'";
    for _ in 0..10 {
        for server in &two.servers {
            assert_eq!(complete(&server.base, &key).await.0, 200, "an idle connection was closed, no more");
        }
        assert!(postgres.number("mk", throw_out) > 0);
    }
    booked(&url, provider.calls()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_that_ends_meanwhile_writes_what_was_used_when_it_is_back() {
    let postgres = Arc::new(Mutex::new(Postgres::start()));
    let url = postgres.lock().unwrap().url();
    let stopped = postgres.clone();
    // Gone after the key was looked up, and before there is anything to write.
    let provider = FakeProvider::start(move |_| {
        stopped.lock().unwrap().stop();
        Turn::Text("Hi".to_owned())
    });
    let provider = provider.await;
    let (key, _) = make_key(&url, "inference", &super::UNLIMITED).await;
    let server = Serve::start_beside(&super::call(&url, &provider.base_url)).await;
    assert_eq!(complete(&server.base, &key).await.0, 200);
    server.signal("TERM");
    server.until_logged(1, |line| line.contains("shutting down")).await;
    let begun_again = postgres.clone();
    let (ended, log) = tokio::task::spawn_blocking(move || {
        begun_again.lock().unwrap().begin();
        server.wait()
    })
    .await
    .unwrap();
    assert!(ended.success(), "{log}");
    booked(&url, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_was_used_waits_at_the_end_until_the_database_can_be_written() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let (key, _) = make_key(&postgres.url(), "inference", &["--per-minute", "0"]).await;
    let server = Serve::start_beside(&call(&postgres.url(), &provider.provider.base_url)).await;
    assert_eq!(complete(&server.base, &key).await.0, 200);
    booked(&postgres.url(), 1).await;
    let read_only = async |setting: &str| {
        postgres.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {setting}"));
        postgres.sql("postgres", "SELECT pg_reload_conf()");
        // What connects now has it only once the cluster has read it, and has told the connections that there are.
        let shown = async || postgres.rows("postgres", "SHOW default_transaction_read_only")[0][0].clone();
        until("it is set", shown, |shown| shown == setting).await;
    };
    read_only("on").await;
    let refused = |line: &str| line.contains("usage and counters cannot be written");
    assert_eq!(complete(&server.base, &key).await.0, 200);
    server.until_logged(1, refused).await;
    server.signal("TERM");
    until(
        "it is draining",
        async || client().get(super::at(&server, "/verify/v1/health")).send().await.is_err(),
        |gone| *gone,
    )
    .await;
    // Two tries and more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    read_only("off").await;
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    booked(&postgres.url(), 2).await;
}
