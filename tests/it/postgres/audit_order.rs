//! Many operators at two servers at once: the audit log has each acknowledged write once, in the order of the writes.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use serde_json::json;

use super::TwoServers;
use crate::support::console::{Console, ids, text};
use crate::support::postgres::Postgres;

const OPERATORS: usize = 8;
const STEPS: usize = 12;

/// Renames a shared key repeatedly and creates others; returns how often it did each.
async fn operate(console: &Console, list: &str, shared: &str, numbers: &AtomicUsize) -> (usize, usize) {
    let (mut renamed, mut made) = (0, 0);
    for step in 0..STEPS {
        let name = format!("name {}", numbers.fetch_add(1, Ordering::SeqCst));
        let (status, answer) = if step % 3 == 2 {
            made += 1;
            console.post(list, &json!({"service": "verify", "name": name})).await
        } else {
            renamed += 1;
            console.patch(shared, &json!({"name": name})).await
        };
        assert!([200, 201].contains(&status), "{answer}");
    }
    (renamed, made)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_audit_log_has_the_writes_of_both_servers_in_order() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let (_, shared) = two.key("verify", &json!({"name": "first"})).await;
    let list = format!("/v1/apps/{}/keys", two.app);
    let numbers = AtomicUsize::new(0);
    let operators = (0..OPERATORS).map(|at| operate(&two.consoles[at % 2], &list, &shared, &numbers));
    let done = join_all(operators).await;
    let renamed: usize = done.iter().map(|(renamed, _)| renamed).sum();
    let made: usize = done.iter().map(|(_, made)| made).sum();

    let [here, there] = &two.consoles;
    let entries = here.audit().await;
    assert_eq!(there.audit().await, entries);
    let of = |action: &str| entries.iter().filter(|entry| entry["action"] == action).collect::<Vec<_>>();
    // Including the console's key and the one that is renamed.
    assert_eq!(of("key.created").len(), made + 2);
    let of_shared = of("key.updated");
    assert_eq!(of_shared.len(), renamed);
    let mut name = json!("first");
    for entry in of_shared {
        assert_eq!(entry["details"]["name"]["from"], name, "out of order: {entry}");
        name = entry["details"]["name"]["to"].clone();
    }
    assert_eq!(there.get(&shared).await.1["name"], name);
    let all = ids(&entries);
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(all, sorted);
    let times: Vec<String> = entries.iter().map(|entry| text(&entry["at"])).collect();
    assert!(times.iter().all(|at| at.ends_with('Z')), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn paging_through_a_growing_list_misses_nothing_and_repeats_nothing() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let [here, there] = &two.consoles;
    let list = format!("/v1/apps/{}/keys", two.app);
    let make = async |console: &Console, count: usize| {
        let mut made = Vec::new();
        for _ in 0..count {
            let (status, key) = console.post(&list, &json!({"service": "verify"})).await;
            assert_eq!(status, 201, "{key}");
            made.push(text(&key["id"]));
        }
        made
    };
    let before = make(here, 20).await;
    let pages = format!("{list}?");
    let (later, walked) = tokio::join!(make(here, 15), there.walk(&pages, 3));
    let walked = ids(&walked);
    let mut once = walked.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), walked.len(), "{walked:?}");
    assert!(before.iter().all(|id| walked.contains(id)), "{walked:?}");
    let all = ids(&there.walk(&pages, 3).await);
    assert!(before.iter().chain(&later).all(|id| all.contains(id)));
}
