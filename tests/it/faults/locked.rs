//! A database that another process keeps locked for longer than the server waits.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rusqlite::Connection;

use super::fixture::{Fixture, assert_store_unavailable, problems, provider, reports};
use crate::support::database::{assert_intact, copy};
use crate::support::mk::operator;
use crate::support::serve::{self, Serve};

/// Takes the write locks of both databases.
fn lock(data: &Path) -> [Connection; 2] {
    ["mk.db", "ledger.db"].map(|name| {
        let database = Connection::open(data.join(name)).unwrap();
        database.busy_timeout(Duration::from_secs(20)).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        database
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_once_for_a_locked_database_and_then_report_it() {
    let provider = provider().await;
    let fixture = Fixture::start(&provider).await;
    fixture.chat_must_succeed().await;
    let locks = lock(&fixture.data);
    let started = Instant::now();
    let command = operator(&fixture.data, &["keys", "create", "--service", "verify"]);
    let (writes, reads, command) = tokio::join!(
        // Each waits its own ten seconds, and does not queue behind the others.
        join_all((0..8).map(|_| async {
            assert_store_unavailable(fixture.create().await).await;
            started.elapsed()
        })),
        async {
            fixture.chat_must_succeed().await;
            fixture.verify_must_succeed().await;
            started.elapsed()
        },
        command.run_beside(),
    );
    let slowest = writes.into_iter().max().unwrap();
    assert!(slowest < Duration::from_secs(40), "{slowest:?}");
    assert!(reads < slowest, "reads do not wait for the lock: {reads:?}");
    assert_eq!((command.code(), command.stdout.as_str()), (1, ""), "{command:?}");
    assert!(command.stderr.contains("another process has been writing to it"), "{command:?}");

    // A second server can start meanwhile, as the tables exist already.
    let second = serve::call(&provider.base_url, "").env("MK_DATA_DIR", fixture.data.to_str().unwrap());
    drop(Serve::start_beside(&second).await);

    drop(locks);
    assert_eq!(fixture.create().await.status(), 201);
    fixture.chat_must_succeed().await;
    assert_intact(copy(&fixture.data).path());
    let log = fixture.end().await;
    assert!(
        reports(&log, &["the database is unavailable", "another process has been writing"]),
        "{:?}",
        problems(&log)
    );
    assert!(problems(&log).len() <= 3, "{:?}", problems(&log));
}
