//! A database with high latency or under load: timely revocations and the limits store do not depend on its speed.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use super::{at, call, check_key, connect, make_key, until};
use crate::support::chat::hello_stream;
use crate::support::cutter::Cutter;
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Reply, StreamStep, role_chunk, text_chunk};
use crate::support::redis::Redis;
use crate::support::serve::Serve;
use crate::support::server::client;

/// The number of streams, each with its own key.
const STREAMS: u32 = 40;
/// The latency of the database, in milliseconds.
const LATENCY: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn streams_of_many_revoked_keys_end_together_despite_a_slow_database() {
    let provider =
        FakeProvider::start(|_| Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall])).await;
    let postgres = Postgres::start();
    let cutter = Cutter::start(&postgres).await;
    let two = super::TwoServers::start(&cutter.url(), &provider.base_url).await;
    let open_stream = async || {
        let (key, path) = two.key("inference", &json!({})).await;
        let url = at(&two.servers[0], "/inference/v1/chat/completions");
        let stream = client().post(url).bearer_auth(&key).json(&hello_stream()).send().await.unwrap();
        assert_eq!(stream.status(), 200);
        (stream, path)
    };
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(open_stream().await.0);
    }
    let (_open, kept) = open_stream().await;
    let kept = kept.rsplit('/').next().unwrap();
    cutter.delay(LATENCY);
    let revoke = format!(
        "UPDATE keys SET revoked_at = 1 WHERE service = 'inference' AND id <> '{kept}';
         UPDATE writes SET number = number + 1 WHERE lane = 'main'"
    );
    postgres.sql("mk", &revoke);
    let revoked = Instant::now();
    let ends = join_all(streams.into_iter().map(reqwest::Response::text)).await;
    let took = revoked.elapsed();
    for end in ends {
        let end = end.unwrap();
        assert!(end.contains(r#""code":"api_key_revoked""#), "{end}");
    }
    // Looking the keys up one after another would take at least this long.
    assert!(took < STREAMS * Duration::from_millis(LATENCY), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_slow_database_does_not_make_the_limits_store_count_as_down() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let url = postgres.url();
    let (key, _) = make_key(&url, "verify", &[]).await;
    let server =
        Serve::start_beside(&call(&url, "http://127.0.0.1:0/v1").env("MK_LIMITS_URL", &redis.url())).await;
    assert_eq!(check_key(&server.base, &key).await.0, 400);
    let page = async || client().get(at(&server, "/metrics")).send().await.unwrap().text().await.unwrap();
    let decided_locally = |page: &str| {
        let line = page.lines().find(|line| line.starts_with("mk_limits_alone_total "));
        line.unwrap_or_else(|| panic!("{page}")).to_owned()
    };
    let before = decided_locally(&page().await);
    // Now the server has to ask the database for today's count.
    redis.command(&["FLUSHALL"]);
    let holder = connect(&postgres).await;
    holder.batch_execute("BEGIN; LOCK TABLE day_counts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let request = tokio::spawn({
        let base = server.base.clone();
        async move { check_key(&base, &key).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT%day_counts%'";
    until("the server asks", async || postgres.number("mk", waiting), |count| *count > 0).await;
    // Longer than the timeout of the limits store.
    tokio::time::sleep(Duration::from_millis(700)).await;
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(request.await.unwrap().0, 400);
    let page = page().await;
    assert_eq!(decided_locally(&page), before, "the limits store decided in the end");
    assert!(page.lines().any(|line| line == "mk_limits_store_up 1"), "{page}");
    assert!(!server.logged().contains("the limits store is unavailable"), "{}", server.logged());
}
