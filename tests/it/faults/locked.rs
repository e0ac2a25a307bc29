//! A database that another process goes on writing to, for longer than anybody waits.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rusqlite::Connection;

use super::desk::{Desk, must_be_unavailable, provider, tells, troubles};
use crate::support::database::{copy, must_be_whole};
use crate::support::mk::operator;
use crate::support::serve::{self, Serve};

/// Takes the locks of writers.
fn lock(data: &Path) -> [Connection; 2] {
    ["mk.db", "ledger.db"].map(|name| {
        let database = Connection::open(data.join(name)).unwrap();
        database.busy_timeout(Duration::from_secs(20)).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        database
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_database_is_waited_for_once_and_then_said() {
    let provider = provider().await;
    let desk = Desk::start(&provider).await;
    desk.must_chat().await;
    let locks = lock(&desk.data);
    let begun = Instant::now();
    let command = operator(&desk.data, &["keys", "create", "--service", "verify"]);
    let (writes, reads, command) = tokio::join!(
        // Each waits its ten seconds, not those of the others before it as well.
        join_all((0..8).map(|_| async {
            must_be_unavailable(desk.create().await).await;
            begun.elapsed()
        })),
        async {
            desk.must_chat().await;
            desk.must_verify().await;
            begun.elapsed()
        },
        command.run_beside(),
    );
    let slowest = writes.into_iter().max().unwrap();
    assert!(slowest < Duration::from_secs(40), "{slowest:?}");
    assert!(reads < slowest, "who only reads waits for nobody: {reads:?}");
    assert_eq!((command.code(), command.stdout.as_str()), (1, ""), "{command:?}");
    assert!(command.stderr.contains("another process has been writing to it"), "{command:?}");

    // One can be started meanwhile: its tables are there.
    let second = serve::call(&provider.base_url, "").env("MK_DATA_DIR", desk.data.to_str().unwrap());
    drop(Serve::start_beside(&second).await);

    drop(locks);
    assert_eq!(desk.create().await.status(), 201);
    desk.must_chat().await;
    must_be_whole(copy(&desk.data).path());
    let log = desk.end().await;
    assert!(
        tells(&log, &["the store cannot be used", "another process has been writing"]),
        "{:?}",
        troubles(&log)
    );
    assert!(troubles(&log).len() <= 3, "{:?}", troubles(&log));
}
