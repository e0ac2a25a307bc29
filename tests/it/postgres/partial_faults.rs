//! A database that works only partly: a fault affects only the requests that it concerns, and ends with its cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{
    CountingProvider, TwoServers, UNLIMITED, complete, completion_request, connect, limited, make_key,
    unknown_key, until,
};
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, stream};
use crate::support::serve::Serve;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_read_only_database_admits_no_requests() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({})).await;
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mk'";
    postgres.sql("postgres", "ALTER DATABASE mk SET default_transaction_read_only = on");
    postgres.sql("postgres", terminate);
    for server in &two.servers {
        // Like a replica, it may learn of a revocation too late.
        assert_eq!(complete(&server.base, &key).await, (503, "store_unavailable".to_owned()));
    }
    postgres.sql("postgres", "ALTER DATABASE mk RESET default_transaction_read_only");
    for server in &two.servers {
        until("the server recovers", async || complete(&server.base, &key).await.0, |status| *status == 200)
            .await;
    }
    assert_eq!(two.consoles[0].delete(&path).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn prepared_statements_are_renewed_after_a_column_changed() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    let base = &two.servers[0].base;
    join_all((0..20).map(|_| complete(base, &key))).await;
    postgres.sql("mk", "ALTER TABLE keys ALTER name TYPE varchar(300)");
    assert_eq!(complete(base, &key).await.0, 503);
    postgres.sql("mk", r#"ALTER TABLE keys ALTER name TYPE text COLLATE "C""#);
    until("the server recovers", async || complete(base, &key).await.0, |status| *status == 200).await;
    // At most once for each connection.
    let mut refused = 0;
    for _ in 0..60 {
        refused += usize::from(complete(base, &key).await.0 != 200);
    }
    assert!(refused <= 8, "{refused}");
    for _ in 0..20 {
        assert_eq!(complete(base, &key).await.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn requests_that_wait_for_a_lock_do_not_delay_others() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let (known, _) = two.key("inference", &json!({})).await;
    let (new, _) = two.key("inference", &json!({})).await;
    let base = &two.servers[0].base;
    assert_eq!(complete(base, &known).await.0, 200);
    let locker = connect(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE day_counts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // The daily count of this key cannot be read. Enough requests to take every connection, if they were let.
    let waiting = tokio::spawn({
        let (base, new) = (base.clone(), new.clone());
        async move { join_all((0..20).map(|_| complete(&base, &new))).await }
    });
    for _ in 0..40 {
        assert_eq!(complete(base, &known).await, (200, String::new()));
    }
    assert!(!waiting.is_finished(), "no request had to wait");
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert!(waiting.await.unwrap().iter().all(|(status, _)| *status == 200));
}

/// How many reads of what was spent wait for a lock.
const WAITING_FOR_SPENDING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%spend%'";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_time_for_which_a_request_waits_for_the_database_is_not_taken_from_its_model() {
    let provider = FakeProvider::start(|_| stream(&["Hi"])).await;
    let postgres = Postgres::start();
    let call = limited(&postgres.url(), &provider.base_url);
    let file = call.home().join("server.toml");
    let fallback = "[providers.fake.models.n]\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n\
                    [inference]\nfirst_token_timeout_with_fallback = \"1s\"\n\
                    [inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";
    let text = std::fs::read_to_string(&file).unwrap() + fallback;
    std::fs::write(&file, text).unwrap();
    let with_budget = [&UNLIMITED[..], &["--budget-usd", "5"]].concat();
    let (budgeted, _) = make_key(&postgres.url(), "inference", &with_budget).await;
    let server = Serve::start_beside(&call).await;
    let locker = connect(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE spend IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let release = async {
        until("it waits", async || postgres.number("postgres", WAITING_FOR_SPENDING), |count| *count > 0)
            .await;
        // Longer than the model may take for its first token, as it has a fallback.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        locker.batch_execute("ROLLBACK").await.unwrap();
    };
    let body = json!({"model": "fake/m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let request = completion_request(&server.base, &budgeted).json(&body);
    let (response, ()) = tokio::join!(request.send(), release);
    let raw = response.unwrap().text().await.unwrap();
    assert!(raw.contains(r#""model":"fake/m""#), "{raw}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn requests_with_a_budget_that_cannot_be_read_take_no_place_at_the_provider() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let call = limited(&postgres.url(), &provider.provider.base_url);
    let file = call.home().join("server.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    // As many as reads of spending that wait for the lock at a time.
    let few = "[providers.fake]\nmax_concurrent = 2\n";
    std::fs::write(&file, text.replacen("[providers.fake]\n", few, 1)).unwrap();
    let (known, _) = make_key(&postgres.url(), "inference", &UNLIMITED).await;
    let with_budget = [&UNLIMITED[..], &["--budget-usd", "5"]].concat();
    let (budgeted, _) = make_key(&postgres.url(), "inference", &with_budget).await;
    let server = Serve::start_beside(&call).await;
    assert_eq!(complete(&server.base, &known).await.0, 200);
    let locker = connect(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE spend IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let waiting = tokio::spawn({
        let (base, ended) = (server.base.clone(), ended.clone());
        let budgeted = budgeted.clone();
        async move {
            let request = async || {
                let outcome = complete(&base, &budgeted).await;
                ended.fetch_add(1, Ordering::SeqCst);
                outcome
            };
            join_all((0..2).map(|_| request())).await
        }
    });
    until("they wait", async || postgres.number("postgres", WAITING_FOR_SPENDING), |count| *count >= 2).await;
    assert_eq!(complete(&server.base, &known).await, (200, String::new()));
    assert_eq!(ended.load(Ordering::SeqCst), 0, "it had to wait for the others");
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert!(waiting.await.unwrap().iter().all(|(status, _)| *status == 200));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_flood_of_unknown_keys_does_not_use_up_the_database() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let call = limited(&postgres.url(), &provider.provider.base_url);
    let (known, _) = make_key(&postgres.url(), "inference", &UNLIMITED).await;
    let server = Serve::start_beside(&call).await;
    let unknown_key = unknown_key().await;
    for _ in 0..5 {
        assert_eq!(complete(&server.base, &unknown_key).await.0, 401);
    }
    assert_eq!(complete(&server.base, &unknown_key).await.0, 429);
    let locker = connect(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let flood = tokio::spawn({
        let base = server.base.clone();
        async move { join_all((0..32).map(|_| complete(&base, &unknown_key))).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let mut most = 0;
    while !flood.is_finished() {
        most = most.max(postgres.number("postgres", waiting));
    }
    // A lookup that has timed out may still be running.
    assert!((1..=2).contains(&most), "{most} at a time");
    assert!(flood.await.unwrap().iter().all(|(status, _)| [429, 503].contains(status)));
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(complete(&server.base, &known).await.0, 200, "a valid key from the same address is admitted");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn lookups_that_time_out_leave_no_connections_behind() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let (key, _) = two.key("inference", &json!({})).await;
    let locker = connect(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for _ in 0..3 {
        let replies = join_all((0..32).map(|_| complete(&two.servers[0].base, &key))).await;
        assert!(replies.iter().all(|(status, _)| *status == 503), "{replies:?}");
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mk' AND application_name = 'mk'";
    // Both servers together.
    let count = postgres.number("postgres", open);
    assert!(count <= 32, "{count}");
    locker.batch_execute("ROLLBACK").await.unwrap();
}
