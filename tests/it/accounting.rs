//! Every call of a model is booked in the ledger exactly once, and the totals in the response match the ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use mk::storage::{AttemptRow, Store};
use serde_json::{Value, json};

use crate::support::events::{Events, read_until};
use crate::support::eventually;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::server::{NOON, Setup, TestServer};

const LONG: Duration = Duration::from_secs(30);

/// A server with two standby models and one retry.
async fn server(
    model_timeout: Duration,
    script: impl Fn(&ModelRequest, usize) -> Reply + Send + Sync + 'static,
) -> (TestServer, FakeProvider, String) {
    let counts = std::sync::Mutex::new(BTreeMap::<String, usize>::new());
    let provider = FakeProvider::start(move |ask| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(ask.model.clone()).or_default();
        *count += 1;
        script(ask, *count)
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| {
            config.providers[0].call_policy.retries = 1;
            config.verify.general.standby = vec!["fake/four".into(), "fake/five".into()];
            config.verify.general.model_timeout = model_timeout;
        })
        .options(|options| options.drain = Duration::from_millis(200))
        .start()
        .await;
    let key = server.key(Service::Verify);
    (server, provider, key)
}

fn rows_of(server: &TestServer, id: &str) -> Vec<AttemptRow> {
    server.app.flush().unwrap();
    server.app.store.attempts_of(id).unwrap()
}

/// Model and outcome of each row, sorted.
fn outcomes(rows: &[AttemptRow]) -> Vec<(&str, &str)> {
    let mut all: Vec<_> =
        rows.iter().map(|row| (row.model.trim_start_matches("fake/"), &*row.outcome)).collect();
    all.sort_unstable();
    all
}

fn assert_sums(usage: &Value, rows: &[AttemptRow]) {
    let sum = |of: fn(&AttemptRow) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(usage["promptTokens"], sum(|row| row.prompt_tokens));
    assert_eq!(usage["completionTokens"], sum(|row| row.completion_tokens));
    assert_eq!(usage["totalTokens"], sum(|row| row.prompt_tokens + row.completion_tokens));
    let extraction = usage["extractionTokens"].as_u64().unwrap();
    assert_eq!(extraction + usage["verificationTokens"].as_u64().unwrap(), usage["totalTokens"]);
    for model in usage["modelUsage"].as_array().unwrap() {
        let of_model = rows.iter().filter(|row| model["model"] == *row.model);
        let tokens: u64 = of_model.map(|row| row.prompt_tokens + row.completion_tokens).sum();
        assert_eq!(model["totalTokens"], tokens, "{model}");
    }
    let listed: u64 = usage["modelUsage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["totalTokens"].as_u64().unwrap())
        .sum();
    assert_eq!(usage["totalTokens"], listed);
}

#[tokio::test]
async fn every_attempt_is_booked_once_whatever_its_outcome() {
    let (server, provider, key) =
        server(Duration::from_secs(2), |ask, count| match (ask.model.as_str(), count) {
            ("extractor", 1) => Reply::status(503, &json!({})),
            ("extractor", _) => finds_eiffel(),
            ("one", 1) => Reply::Text("no json".into()),
            ("two", _) => Reply::status(400, &json!({"error": {"message": "no"}})),
            ("three", _) => Reply::Hang,
            ("four", _) => Reply::Text("never json".into()),
            _ => ask.choose("Paris"),
        })
        .await;
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let result = events.end("completed");
    let rows = rows_of(&server, result["requestId"].as_str().unwrap());
    assert_eq!(
        outcomes(&rows),
        [
            ("extractor", "ok"),
            ("extractor", "overloaded"),
            ("five", "ok"),
            ("four", "ok"),
            ("four", "ok"),
            ("one", "ok"),
            ("one", "ok"),
            ("three", "timeout"),
            ("two", "rejected"),
        ]
    );
    assert_eq!(rows.len(), provider.requests().len(), "one row per call");
    assert_sums(&result["tokenUsage"], &rows);
    assert!(rows.iter().all(|row| !row.key_id.is_empty() && !row.app_id.is_empty() && row.at == NOON));
}

#[tokio::test]
async fn the_total_usage_includes_attempts_cut_off_by_the_deadline() {
    let provider = FakeProvider::start(|ask| match ask.model.as_str() {
        "extractor" => finds_eiffel(),
        "three" => Reply::Hang,
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.deadline = Duration::from_secs(2))
        .start()
        .await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let result = events.end("completed");
    let rows = rows_of(&server, result["requestId"].as_str().unwrap());
    let outcomes = outcomes(&rows);
    assert_eq!(outcomes[..3], [("extractor", "ok"), ("one", "ok"), ("three", "timeout")]);
    assert_eq!(rows.len(), 4);
    assert_sums(&result["tokenUsage"], &rows);
}

/// Opens a stream whose panel hangs; returns the verification's id and the stream.
async fn hanging(
    server: &TestServer,
    key: &str,
) -> (String, impl StreamExt<Item = reqwest::Result<bytes::Bytes>> + Unpin + use<>) {
    let response =
        server.verify(key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    let mut stream = Box::pin(response.bytes_stream());
    let mut seen = String::new();
    while !seen.contains("event: verifying_claim\n") {
        seen.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    let starting = Events::parse(seen.split_inclusive("\n\n").next().unwrap().to_owned());
    (starting.one("starting")["requestId"].as_str().unwrap().to_owned(), stream)
}

fn hanging_script(ask: &ModelRequest, _: usize) -> Reply {
    if ask.task == "claims" { finds_eiffel() } else { Reply::Hang }
}

const CUT: [(&str, &str); 4] =
    [("extractor", "ok"), ("one", "cancelled"), ("three", "cancelled"), ("two", "cancelled")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_loses_no_attempts() {
    for _ in 0..6 {
        let (mut server, provider, key) = server(LONG, hanging_script).await;
        let (id, mut stream) = hanging(&server, &key).await;
        eventually("the panel is called", || provider.in_flight() == 3).await;
        server.begin_shutdown();
        while stream.next().await.is_some() {}
        let dir = server.dir.clone();
        server.shutdown().await;
        // Read as the next process would.
        let rows = Store::open(&dir.path().join("data"), NOON).unwrap().attempts_of(&id).unwrap();
        assert_eq!(outcomes(&rows), CUT);
        assert!(rows.iter().all(|row| row.prompt_tokens > 0), "the prompts were sent: {rows:?}");
    }
}

#[tokio::test]
async fn attempts_cancelled_by_a_disconnect_or_a_revocation_are_booked() {
    let (server, provider, key) = server(LONG, hanging_script).await;
    let (left, stream) = hanging(&server, &key).await;
    eventually("the panel is called", || provider.in_flight() == 3).await;
    drop(stream);
    eventually("all calls have stopped", || provider.in_flight() == 0).await;
    let (revoked, id) = server.key_with(Service::Verify, |_| {});
    let (cut, mut stream) = hanging(&server, &revoked).await;
    eventually("the panel is called", || provider.in_flight() == 3).await;
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    read_until(&mut stream, "error").await;
    eventually("all calls have stopped", || provider.in_flight() == 0).await;
    for id in [left, cut] {
        eventually("the attempts are booked", || rows_of(&server, &id).len() == 4).await;
        assert_eq!(outcomes(&rows_of(&server, &id)), CUT);
    }
}

#[tokio::test]
async fn a_failed_verification_is_billed() {
    let (server, provider, key) = server(LONG, |ask, _| match ask.task.as_str() {
        "claims" => finds_eiffel(),
        _ => Reply::Text("no json".into()),
    })
    .await;
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let id = events.end("error")["requestId"].as_str().unwrap();
    let rows = rows_of(&server, id);
    assert_eq!(rows.len(), 11, "one extraction, and five models with one repair each");
    assert_eq!(rows.len(), provider.requests().len());
    assert!(rows.iter().all(|row| (row.prompt_tokens, row.completion_tokens) == (100, 10)));
}
