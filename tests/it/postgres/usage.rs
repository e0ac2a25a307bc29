//! What is used through several servers is counted once, summed up the same everywhere, and spent from one budget.

use mk::clock::{Clock, Time};
use serde_json::{Value, json};

use super::{COST, Counted, Two, UNLIMITED, booked, call, complete, knock, make_key, operator, until};
use crate::support::console::Console;
use crate::support::postgres::Postgres;
use crate::support::serve::Serve;

/// Sums of a report of today and yesterday, in case midnight passes.
async fn totals_at(console: &Console) -> Value {
    let from = Time::of_utc_day(Clock::system().now().utc_day() - 1).utc_date();
    let (status, report) = console.get(&format!("/v1/usage?by=model&from={from}")).await;
    assert_eq!(status, 200, "{report}");
    report["totals"].clone()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn calls_at_both_are_summed_up_exactly_in_the_reports_of_both() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let (key, path) = two.key("inference", &json!({})).await;
    assert_eq!(two.consoles[1].get(&path).await.1["last_used_at"], Value::Null);
    let callers = (0..8).map(|caller: usize| {
        let (base, key) = (two.servers[caller % 2].base.clone(), key.clone());
        tokio::spawn(async move {
            for _ in 0..15 {
                assert_eq!(complete(&base, &key).await.0, 200);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let totals = booked(&postgres.url(), 120).await;
    assert_eq!(provider.calls(), 120);
    assert_eq!((&totals["total_tokens"], &totals["errors"]), (&json!(120 * 110), &json!(0)));
    for console in &two.consoles {
        assert_eq!(totals_at(console).await, totals);
        let record = console.get(&path).await.1;
        assert!(record["last_used_at"].is_string(), "{record}");
        let spent = record["spent_usd"].as_f64().unwrap();
        assert!((spent - 120.0 * COST).abs() < 1e-9, "{record}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn what_was_spent_at_one_is_missing_at_the_other() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let two = Two::start(&postgres.url(), &provider.provider.base_url).await;
    let [here, there] = [0, 1].map(|at: usize| two.servers[at].base.clone());
    // The most that `hello` may cost is some seven cents.
    let (key, path) = two.key("inference", &json!({"budget_usd": 0.0656})).await;
    assert_eq!(complete(&there, &key).await.0, 200, "it has looked at the budget before");
    let used_up = (402, "budget_exceeded".to_owned());
    let hears = async |base: &str| {
        until("it has heard", async || complete(base, &key).await, |told| *told == used_up).await
    };
    hears(&here).await;
    assert_eq!(two.consoles[0].patch(&path, &json!({"budget_usd": 0.066})).await.0, 200);
    hears(&here).await;
    hears(&there).await;
    // More of it holds at both at once.
    assert_eq!(two.consoles[0].patch(&path, &json!({"budget_usd": 1})).await.0, 200);
    assert_eq!((complete(&there, &key).await.0, complete(&here, &key).await.0), (200, 200));
    booked(&postgres.url(), provider.calls()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_day_is_remembered_over_a_restart() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let (key, id) = make_key(&url, "verify", &["--per-minute", "0", "--per-day", "5"]).await;
    let call = call(&url, "http://127.0.0.1:9/v1");
    let end = async |server: Serve| {
        server.signal("TERM");
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
    };
    let day = Clock::system().now().utc_day();
    let mut told = Vec::new();
    for _ in 0..3 {
        let server = Serve::start_beside(&call).await;
        for _ in 0..2 {
            told.push(knock(&server.base, &key).await.0);
        }
        end(server).await;
    }
    // At midnight counting begins anew.
    if Clock::system().now().utc_day() == day {
        assert_eq!(told, [400, 400, 400, 400, 400, 429]);
    }
    let shown = operator(&url, &["keys", "show", &id, "--json"]).run_beside().await;
    assert!(shown.json()["last_used_at"].is_string(), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_server_that_is_killed_loses_a_second_at_most_and_the_others_nothing() {
    let provider = Counted::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let (key, _) = make_key(&url, "inference", &UNLIMITED).await;
    let call = call(&url, &provider.provider.base_url);
    let (doomed, other) = (Serve::start_beside(&call).await, Serve::start_beside(&call).await);
    let bases = [doomed.base.clone(), other.base.clone()];
    for at in 0..40 {
        assert_eq!(complete(&bases[at % 2], &key).await.0, 200);
    }
    until("all is booked", async || super::totals(&url).await["attempts"].clone(), |found| *found == 40)
        .await;
    doomed.kill();
    for _ in 0..5 {
        assert_eq!(complete(&bases[1], &key).await.0, 200);
    }
    booked(&url, 45).await;
}
