//! Usage through several servers is counted once, summed up the same at each, and charged to one budget.

use mk::clock::{Clock, Time};
use serde_json::{Value, json};

use super::{
    COST, CountingProvider, TwoServers, UNLIMITED, assert_recorded, call, check_key, complete, make_key,
    operator, until,
};
use crate::support::console::Console;
use crate::support::postgres::Postgres;
use crate::support::serve::Serve;

/// The totals of the console's report for today and yesterday, in case midnight passes.
async fn totals_at(console: &Console) -> Value {
    let from = Time::of_utc_day(Clock::system().now().utc_day() - 1).utc_date();
    let (status, report) = console.get(&format!("/v1/usage?by=model&from={from}")).await;
    assert_eq!(status, 200, "{report}");
    report["totals"].clone()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_reports_of_both_servers_sum_the_calls_of_both_exactly() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
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
    let totals = assert_recorded(&postgres.url(), 120).await;
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
async fn spending_at_one_server_reduces_the_budget_at_the_other() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.provider.base_url).await;
    let [here, there] = [0, 1].map(|at: usize| two.servers[at].base.clone());
    // The maximum cost of `hello` is about seven cents.
    let (key, path) = two.key("inference", &json!({"budget_usd": 0.0656})).await;
    assert_eq!(complete(&there, &key).await.0, 200, "so that the other server has loaded the budget");
    let used_up = (402, "budget_exceeded".to_owned());
    let learns = async |base: &str| {
        until("the server knows", async || complete(base, &key).await, |reply| *reply == used_up).await
    };
    learns(&here).await;
    assert_eq!(two.consoles[0].patch(&path, &json!({"budget_usd": 0.066})).await.0, 200);
    learns(&here).await;
    learns(&there).await;
    // An increase applies at both at once.
    assert_eq!(two.consoles[0].patch(&path, &json!({"budget_usd": 1})).await.0, 200);
    assert_eq!((complete(&there, &key).await.0, complete(&here, &key).await.0), (200, 200));
    assert_recorded(&postgres.url(), provider.calls()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_daily_count_survives_a_restart() {
    let postgres = Postgres::start();
    let url = postgres.url();
    let (key, id) = make_key(&url, "verify", &["--per-minute", "0", "--per-day", "5"]).await;
    let call = call(&url, "http://127.0.0.1:0/v1");
    let end = async |server: Serve| {
        server.signal("TERM");
        let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
    };
    let day = Clock::system().now().utc_day();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let server = Serve::start_beside(&call).await;
        for _ in 0..2 {
            statuses.push(check_key(&server.base, &key).await.0);
        }
        end(server).await;
    }
    // At midnight the counts start over.
    if Clock::system().now().utc_day() == day {
        assert_eq!(statuses, [400, 400, 400, 400, 400, 429]);
    }
    let shown = operator(&url, &["keys", "show", &id, "--json"]).run_beside().await;
    assert!(shown.json()["last_used_at"].is_string(), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn usage_recorded_before_a_server_is_killed_is_kept_and_others_lose_nothing() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let url = postgres.url();
    let (key, _) = make_key(&url, "inference", &UNLIMITED).await;
    let call = call(&url, &provider.provider.base_url);
    let (doomed, other) = (Serve::start_beside(&call).await, Serve::start_beside(&call).await);
    let bases = [doomed.base.clone(), other.base.clone()];
    for at in 0..40 {
        assert_eq!(complete(&bases[at % 2], &key).await.0, 200);
    }
    until(
        "all attempts are recorded",
        async || super::totals(&url).await["attempts"].clone(),
        |found| *found == 40,
    )
    .await;
    doomed.kill();
    for _ in 0..5 {
        assert_eq!(complete(&bases[1], &key).await.0, 200);
    }
    assert_recorded(&url, 45).await;
}
