//! A database that answers, but not as it should: the trouble stays where it is, and ends with its cause.

use futures_util::future::join_all;
use serde_json::json;

use super::{Counted, Two, UNLIMITED, beside, complete, limited, make_key, stranger, until};
use crate::support::postgres::Postgres;
use crate::support::serve::Serve;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_database_that_takes_no_writes_lets_nobody_pass() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({})).await;
    let throw_out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mk'";
    postgres.sql("postgres", "ALTER DATABASE mk SET default_transaction_read_only = on");
    postgres.sql("postgres", throw_out);
    for server in &two.servers {
        // It may know of a revocation too late, as a copy of the database would.
        assert_eq!(complete(&server.base, &key).await, (503, "store_unavailable".to_owned()));
    }
    postgres.sql("postgres", "ALTER DATABASE mk RESET default_transaction_read_only");
    for server in &two.servers {
        until("it lets pass again", async || complete(&server.base, &key).await.0, |status| *status == 200)
            .await;
    }
    assert_eq!(two.consoles[0].delete(&path).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_was_compiled_for_other_columns_is_forgotten() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, _) = two.key("inference", &json!({})).await;
    let base = &two.servers[0].base;
    join_all((0..20).map(|_| complete(base, &key))).await;
    postgres.sql("mk", "ALTER TABLE keys ALTER name TYPE varchar(300)");
    assert_eq!(complete(base, &key).await.0, 503);
    postgres.sql("mk", r#"ALTER TABLE keys ALTER name TYPE text COLLATE "C""#);
    until("it lets pass again", async || complete(base, &key).await.0, |status| *status == 200).await;
    // On each connection at most once.
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
async fn whoever_has_to_wait_keeps_up_nobody_else() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (known, _) = two.key("inference", &json!({})).await;
    let (new, _) = two.key("inference", &json!({})).await;
    let base = &two.servers[0].base;
    assert_eq!(complete(base, &known).await.0, 200);
    let locker = beside(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE day_counts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // What the day of this one has counted cannot be told.
    let waiting = tokio::spawn({
        let (base, new) = (base.clone(), new.clone());
        async move { join_all((0..64).map(|_| complete(&base, &new))).await }
    });
    for _ in 0..40 {
        assert_eq!(complete(base, &known).await.0, 200);
    }
    assert!(!waiting.is_finished(), "nobody had to wait");
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert!(waiting.await.unwrap().iter().all(|(status, _)| *status == 200));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_flood_of_unknown_keys_leaves_the_database_to_others() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let call = limited(&postgres.url(), &provider.provider.base_url);
    let (known, _) = make_key(&postgres.url(), "inference", &UNLIMITED).await;
    let server = Serve::start_beside(&call).await;
    let stranger = stranger().await;
    for _ in 0..5 {
        assert_eq!(complete(&server.base, &stranger).await.0, 401);
    }
    assert_eq!(complete(&server.base, &stranger).await.0, 429);
    let locker = beside(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let flood = tokio::spawn({
        let base = server.base.clone();
        async move { join_all((0..32).map(|_| complete(&base, &stranger))).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let mut most = 0;
    while !flood.is_finished() {
        most = most.max(postgres.number("postgres", waiting));
    }
    // One that was given up may still end there.
    assert!((1..=2).contains(&most), "{most} at a time");
    assert!(flood.await.unwrap().iter().all(|(status, _)| [429, 503].contains(status)));
    locker.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(complete(&server.base, &known).await.0, 200, "a good key passes from there");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn look_ups_that_were_given_up_leave_no_connection_behind() {
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), "http://127.0.0.1:9/v1").await;
    let (key, _) = two.key("inference", &json!({})).await;
    let locker = beside(&postgres).await;
    locker.batch_execute("BEGIN; LOCK TABLE keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for _ in 0..3 {
        let told = join_all((0..32).map(|_| complete(&two.servers[0].base, &key))).await;
        assert!(told.iter().all(|(status, _)| *status == 503), "{told:?}");
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mk' AND application_name = 'mk'";
    // Of two servers.
    let count = postgres.number("postgres", open);
    assert!(count <= 32, "{count}");
    locker.batch_execute("ROLLBACK").await.unwrap();
}
