//! A database that is far away, or has other things to do: what others promise they keep all the same.

use std::time::Duration;

use super::{at, beside, call, knock, make_key, start, until};
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::server::client;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_slow_database_makes_no_store_of_limits_gone() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let url = postgres.url();
    let (key, _) = make_key(&url, "verify", &[]).await;
    let server = start(&call(&url, "http://127.0.0.1:9/v1").env("MK_LIMITS_URL", &redis.url())).await;
    assert_eq!(knock(&server.base, &key).await.0, 400);
    // It has to ask the database what was counted today.
    redis.command(&["FLUSHALL"]);
    let holder = beside(&postgres).await;
    holder.batch_execute("BEGIN; LOCK TABLE day_counts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let asked = tokio::spawn({
        let base = server.base.clone();
        async move { knock(&base, &key).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT%day_counts%'";
    until("it asks", async || postgres.number("mk", waiting), |count| *count > 0).await;
    // Longer than the store of limits is waited for.
    tokio::time::sleep(Duration::from_millis(700)).await;
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(asked.await.unwrap().0, 400);
    let page = client().get(at(&server, "/metrics")).send().await.unwrap().text().await.unwrap();
    assert!(page.lines().any(|line| line == "mk_limits_store_up 1"), "{page}");
    assert!(!server.logged().contains("the limits store cannot be used"), "{}", server.logged());
}
