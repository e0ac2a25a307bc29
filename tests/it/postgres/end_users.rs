//! End users whose requests go through several servers: one database sums them, one store counts their limits.

use serde_json::{Value, json};

use super::{COST, CountingProvider, call, make_key, operator, status_and_code, until};
use crate::support::chat::hello;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::serve::Serve;
use crate::support::server::client;

/// Status and error code of a request for a completion for this end user.
async fn ask(base: &str, key: &str, user: &str, model: &str) -> (u16, String) {
    let mut body = hello();
    (body["user"], body["model"], body["max_tokens"]) = (json!(user), json!(model), json!(1));
    let request = client().post(format!("{base}/inference/v1/chat/completions")).bearer_auth(key);
    status_and_code(request.json(&body).send().await.unwrap()).await
}

/// The rows of a report by end user, of the last two days in case midnight passes.
async fn by_user(database: &str) -> Vec<(String, i64)> {
    let ran = operator(database, &["usage", "--since", "2d", "--by", "user", "--json"]).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let report = ran.json();
    let row = |row: &Value| (row["user"].as_str().unwrap().to_owned(), row["requests"].as_i64().unwrap());
    let mut rows: Vec<_> = report["data"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and Redis, which `cargo test` may not ask for; runs in .ci/run"]
async fn two_servers_limit_and_sum_an_end_user_together() {
    let provider = CountingProvider::start().await;
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let database = postgres.url();
    let unlimited = ["--per-minute", "0", "--per-day", "0"];
    let (key, _) = make_key(&database, "inference", &unlimited).await;
    let start = async || {
        let call = call(&database, &provider.provider.base_url).env("MK_LIMITS_URL", &redis.url());
        let file = call.home().join("server.toml");
        // Enough for three requests.
        let budget = COST * 3.2;
        let limits = format!("[limits.end_users]\nper_day = 30\nbudget_usd_per_month = {budget}\n");
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &limits).unwrap();
        Serve::start_beside(&call).await
    };
    let servers = [start().await, start().await];
    let bases = servers.each_ref().map(|server| server.base.clone());

    // What one server has booked, the other knows.
    for _ in 0..3 {
        assert_eq!(ask(&bases[0], &key, "ann", "fake/m").await, (200, String::new()));
    }
    let booked = [("ann".to_owned(), 3)];
    until("it is booked", async || by_user(&database).await, |rows| rows == &booked).await;
    for base in &bases {
        assert_eq!(ask(base, &key, "ann", "fake/m").await, (402, "budget_exceeded".to_owned()));
    }
    // A request that is refused for its price has counted.
    for at in 0..30 {
        assert_eq!(ask(&bases[at % 2], &key, "cleo", "fake/n").await, (403, "price_unknown".to_owned()));
    }
    for base in &bases {
        assert_eq!(ask(base, &key, "cleo", "fake/n").await, (429, "rate_limited_day".to_owned()));
        assert_eq!(ask(base, &key, "bob", "fake/m").await, (200, String::new()));
    }
    let expected = [("ann".to_owned(), 3), ("bob".to_owned(), 2)];
    until("all is summed", async || by_user(&database).await, |rows| rows == &expected).await;
    assert_eq!(postgres.number("mk", "SELECT count(*) FROM spend WHERE subject LIKE '%ann%'"), 0);

    let forgotten = operator(&database, &["usage", "forget", "ann", "--yes"]).run_beside().await;
    assert_eq!(forgotten.code(), 0, "{forgotten:?}");
    assert_eq!(by_user(&database).await, [(String::new(), 3), ("bob".to_owned(), 2)]);
}
