//! Connections that break after a commit was executed but before its result arrives: everything is written exactly
//! once.

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::{CountingProvider, TwoServers, assert_recorded, check_key, complete, until};
use crate::support::console::{Console, text};
use crate::support::cutter::Cutter;
use crate::support::postgres::Postgres;
use crate::support::serve::Serve;

/// Two servers whose connections to the database are cut now and then.
async fn two(provider: &str) -> (Postgres, Cutter, TwoServers) {
    let postgres = Postgres::start();
    let cutter = Cutter::start(&postgres).await;
    let two = TwoServers::start(&cutter.url(), provider).await;
    (postgres, cutter, two)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn usage_is_recorded_once_when_the_result_of_a_commit_is_lost() {
    let provider = CountingProvider::start().await;
    let (postgres, cutter, two) = two(&provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({"limits": {"per_minute": 0, "per_day": 100_000}})).await;
    let mut passed = 0;
    for round in 1..=6_usize {
        cutter.cut(1 + round % 2);
        let expected = cutter.done() + 1 + round % 2;
        let send_requests = async || {
            for server in &two.servers {
                let reply = complete(&server.base, &key).await;
                assert!([200, 503].contains(&reply.0), "{reply:?}");
            }
            cutter.done()
        };
        until("the connections were cut", send_requests, |done| *done >= expected).await;
        passed = provider.calls();
    }
    assert_recorded(&postgres.url(), passed).await;
    // The spending is exact as well.
    let TwoServers { servers, consoles, .. } = two;
    let spent = consoles[0].get(&path).await.1["spent_usd"].as_f64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let expected = passed as f64 * super::COST;
    assert!((spent - expected).abs() < 1e-9, "{spent} of {expected}");
    for server in servers {
        server.signal("TERM");
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn days_are_counted_once_when_the_result_of_a_commit_is_lost() {
    let (postgres, cutter, two) = two("http://127.0.0.1:0/v1").await;
    let (key, _) = two.key("verify", &json!({"limits": {"per_minute": 0, "per_day": 100_000}})).await;
    let base = &two.servers[0].base;
    let admitted = AtomicI64::new(0);
    for round in 1..=4_usize {
        cutter.cut(1);
        let send_requests = async || {
            let reply = check_key(base, &key).await;
            assert!([400, 503].contains(&reply.0), "{reply:?}");
            admitted.fetch_add(i64::from(reply.0 == 400), Ordering::SeqCst);
            cutter.done()
        };
        until("the connection was cut", send_requests, |done| *done >= round).await;
    }
    let admitted = admitted.into_inner();
    let TwoServers { servers, .. } = two;
    for server in servers {
        server.signal("TERM");
        tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    }
    let url = postgres.url();
    let server = Serve::start_beside(&super::call(&url, "http://127.0.0.1:0/v1")).await;
    let answer = super::invalid_request(&server.base, &key).send().await.unwrap();
    let left: i64 = answer.headers()["x-ratelimit-remaining"].to_str().unwrap().parse().unwrap();
    // At midnight the counts start over.
    assert!(left == 100_000 - admitted - 1 || left > 99_990, "{left} requests are left after {admitted}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn an_operator_is_told_the_truth_when_the_result_of_a_commit_is_lost() {
    let (postgres, cutter, two) = two("http://127.0.0.1:0/v1").await;
    let console = &two.consoles[0];
    for round in 0..5 {
        let name = format!("app {round}");
        cutter.cut(1);
        let (status, made) = console.post("/v1/apps", &json!({"name": name})).await;
        assert!([201, 503].contains(&status), "{made}");
        cutter.cut(0);
        let listed = two.consoles[1].walk("/v1/apps?", 100).await;
        let found: Vec<String> =
            listed.iter().filter(|app| app["name"] == name).map(|app| text(&app["id"])).collect();
        assert!(found.len() <= 1, "{found:?}");
        if status == 201 {
            assert_eq!(found, [text(&made["id"])]);
        }

        let (key, path) = two.key("verify", &json!({})).await;
        cutter.cut(1);
        let (status, reply) = console.delete(&path).await;
        assert!([200, 503].contains(&status), "{reply}");
        cutter.cut(0);
        let (again, reply) = console.delete(&path).await;
        assert_eq!(again, 200, "{reply}");
        assert_eq!(check_key(&two.servers[1].base, &key).await, (401, "api_key_revoked".to_owned()));
    }
    assert!(cutter.done() > 0, "no connection was cut");
    // Each write has one audit entry.
    let direct = Console { base: two.servers[1].base.clone(), ..console.clone() };
    let entries = direct.audit().await;
    let mut objects: Vec<(String, String)> = entries
        .iter()
        .filter(|entry| ["app.created", "key.created", "key.revoked"].iter().any(|of| entry["action"] == *of))
        .map(|entry| (text(&entry["action"]), text(&entry["object"])))
        .collect();
    let total = objects.len();
    objects.sort();
    objects.dedup();
    assert_eq!(objects.len(), total, "{entries:?}");
    drop(postgres);
}
