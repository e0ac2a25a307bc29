//! Connections that break when a commit was carried out, and nobody has heard of it: what was written is written once.

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::{Counted, Two, booked, complete, knock, until};
use crate::support::console::{Console, text};
use crate::support::cutter::Cutter;
use crate::support::postgres::Postgres;
use crate::support::serve::Serve;

/// Two servers whose only way to the database is cut off now and then.
async fn two(provider: &str) -> (Postgres, Cutter, Two) {
    let postgres = Postgres::start();
    let cutter = Cutter::start(&postgres).await;
    let two = Two::start(&cutter.url(), provider).await;
    (postgres, cutter, two)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn usage_is_booked_once_when_the_answer_to_a_commit_is_lost() {
    let provider = Counted::start().await;
    let (postgres, cutter, two) = two(&provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({"limits": {"per_minute": 0, "per_day": 100_000}})).await;
    let mut passed = 0;
    for round in 1..=6_usize {
        cutter.cut(1 + round % 2);
        let expected = cutter.done() + 1 + round % 2;
        let keep_on = async || {
            for server in &two.servers {
                let told = complete(&server.base, &key).await;
                assert!([200, 503].contains(&told.0), "{told:?}");
            }
            cutter.done()
        };
        until("they were cut off", keep_on, |done| *done >= expected).await;
        passed = provider.calls();
    }
    booked(&postgres.url(), passed).await;
    // The day too: both servers have written what they admitted, each request once.
    let Two { servers, consoles, .. } = two;
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
async fn days_are_counted_once_when_the_answer_to_a_commit_is_lost() {
    let (postgres, cutter, two) = two("http://127.0.0.1:9/v1").await;
    let (key, _) = two.key("verify", &json!({"limits": {"per_minute": 0, "per_day": 100_000}})).await;
    let base = &two.servers[0].base;
    let admitted = AtomicI64::new(0);
    for round in 1..=4_usize {
        cutter.cut(1);
        let keep_on = async || {
            let told = knock(base, &key).await;
            assert!([400, 503].contains(&told.0), "{told:?}");
            admitted.fetch_add(i64::from(told.0 == 400), Ordering::SeqCst);
            cutter.done()
        };
        until("it was cut off", keep_on, |done| *done >= round).await;
    }
    let admitted = admitted.into_inner();
    let Two { servers, .. } = two;
    for server in servers {
        server.signal("TERM");
        tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    }
    let url = postgres.url();
    let server = Serve::start_beside(&super::call(&url, "http://127.0.0.1:9/v1")).await;
    let answer = super::knocking(&server.base, &key).send().await.unwrap();
    let left: i64 = answer.headers()["x-ratelimit-remaining"].to_str().unwrap().parse().unwrap();
    // At midnight counting begins anew.
    assert!(left == 100_000 - admitted - 1 || left > 99_990, "{left} are left after {admitted}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn an_operator_is_told_the_truth_when_the_answer_to_a_commit_is_lost() {
    let (postgres, cutter, two) = two("http://127.0.0.1:9/v1").await;
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
        let (status, told) = console.delete(&path).await;
        assert!([200, 503].contains(&status), "{told}");
        cutter.cut(0);
        let (again, told) = console.delete(&path).await;
        assert_eq!(again, 200, "{told}");
        assert_eq!(knock(&two.servers[1].base, &key).await, (401, "api_key_revoked".to_owned()));
    }
    assert!(cutter.done() > 0, "nothing was cut off");
    // Each is noted once.
    let direct = Console { base: two.servers[1].base.clone(), ..console.clone() };
    let entries = direct.audit().await;
    let mut objects: Vec<(String, String)> = entries
        .iter()
        .filter(|entry| ["app.created", "key.created", "key.revoked"].iter().any(|of| entry["action"] == *of))
        .map(|entry| (text(&entry["action"]), text(&entry["object"])))
        .collect();
    let noted = objects.len();
    objects.sort();
    objects.dedup();
    assert_eq!(objects.len(), noted, "{entries:?}");
    drop(postgres);
}
