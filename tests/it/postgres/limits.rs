//! A limits store beside the database: what both know of a key's day is not waited for from the database, and what only
//! the database knows still counts.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{call, check_key, connect, make_key, until};
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::serve::Serve;

/// The options for a key with a limit per day alone.
const DAILY: [&str; 4] = ["--per-minute", "0", "--per-day", "1000"];

/// A server that has not seen any key yet.
async fn new_server(postgres: &Postgres, redis: &Redis) -> Serve {
    let call = call(&postgres.url(), "http://127.0.0.1:0/v1");
    Serve::start_beside(&call.env("MK_LIMITS_URL", &redis.url())).await
}

/// A key of which both stores have one request today.
async fn key_in_use(server: &Serve, postgres: &Postgres) -> (String, String) {
    let (key, id) = make_key(&postgres.url(), "verify", &DAILY).await;
    assert_eq!(check_key(&server.base, &key).await.0, 400);
    let stored = format!("SELECT count(*) FROM day_counts WHERE key_id = '{id}'");
    until("its count is written", async || postgres.number("mk", &stored), |rows| *rows == 1).await;
    (key, id)
}

/// Makes the database say that the key has reached its limit.
fn use_up_in_database(postgres: &Postgres, id: &str) {
    postgres.sql("mk", &format!("UPDATE day_counts SET used = 1000 WHERE key_id = '{id}'"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_day_that_the_limits_store_knows_is_not_waited_for_from_the_database() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let (key, _) = key_in_use(&new_server(&postgres, &redis).await, &postgres).await;
    let server = new_server(&postgres, &redis).await;
    let holder = connect(&postgres).await;
    holder.batch_execute("BEGIN; LOCK TABLE day_counts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for _ in 0..3 {
        assert_eq!(check_key(&server.base, &key).await.0, 400);
    }
    let reading = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT%day_counts%'";
    let reads = async || postgres.number("mk", reading);
    until("the answers have come first", reads, |reads| *reads == 1).await;
    holder.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_day_of_which_the_limits_store_has_lost_some_is_completed_from_the_database() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let (key, id) = key_in_use(&new_server(&postgres, &redis).await, &postgres).await;
    use_up_in_database(&postgres, &id);
    let server = new_server(&postgres, &redis).await;
    let asked = AtomicUsize::new(0);
    let check = async || {
        asked.fetch_add(1, Ordering::Relaxed);
        check_key(&server.base, &key).await.0
    };
    until("its limit is reached", check, |status| *status == 429).await;
    let asked = asked.into_inner();
    assert!(asked < 100, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn without_the_limits_store_a_day_is_read_from_the_database_first() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let (key, id) = key_in_use(&new_server(&postgres, &redis).await, &postgres).await;
    use_up_in_database(&postgres, &id);
    let server = new_server(&postgres, &redis).await;
    redis.kill();
    assert_eq!(check_key(&server.base, &key).await.0, 429);
}
