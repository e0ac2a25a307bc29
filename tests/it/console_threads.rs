//! Console requests use only a few of the server's threads, however many wait for the database.
#![cfg(target_os = "linux")]

use std::time::Duration;

use futures_util::future::{join, join_all};
use mk::api::Service;
use mk::clock::Clock;
use mk::keys::{self, NewKey};
use mk::secret::ExposeSecret;
use mk::storage::Store;
use rusqlite::Connection;
use serde_json::json;

use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

/// More than the threads allowed below, but within a key's limit per minute.
const CALLERS: usize = 24;
/// The writer, the readers, and a few background threads that were idle before.
const ALLOWED: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_changes_and_reads_use_few_threads() {
    let mk = serve::call("http://127.0.0.1:0/v1", "");
    let data = data_dir(mk.home());
    let key = {
        let now = Clock::system().now();
        let store = Store::open(&data, now).unwrap();
        let app = store.app("default").unwrap();
        keys::create(&store, &NewKey::new(Service::Console, &app.id), now).unwrap().0
    };
    let server = Serve::start(&mk);
    let apps = format!("{}/v1/apps", server.base);
    let read = async || {
        let asked = client().get(&apps).bearer_auth(key.expose_secret()).send();
        let asked =
            tokio::time::timeout(Duration::from_secs(8), asked).await.expect("the read waits for a writer");
        assert_eq!(asked.unwrap().status(), 200);
    };
    read().await;
    let before = server.threads();

    let other = Connection::open(data.join("mk.db")).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let change = async |number: usize| {
        let made = client().post(&apps).bearer_auth(key.expose_secret());
        made.json(&json!({"name": format!("app-{number}")})).send().await.unwrap().status()
    };
    let changes = join_all((0..CALLERS).map(change));
    let pages = async {
        // The changes wait for the lock; the reads in between do not.
        join_all((0..CALLERS).map(|_| read())).await;
        other.execute_batch("ROLLBACK").unwrap();
    };
    let (made, ()) = join(changes, pages).await;
    assert!(made.iter().all(|status| *status == 201), "{made:?}");
    // Idle threads stay alive for some seconds, so the peak is still visible.
    let more = server.threads().saturating_sub(before);
    assert!(more <= ALLOWED, "{more} more threads than the {before} before");
}
