//! Interactions between budgets, breakers, fallbacks, resumed streams, metrics and the request log.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use mk::api::Service;
use mk::inference::BreakerState;
use mk::keys;
use mk::money::NanoUsd;
use serde_json::{Value, json};

use crate::support::breaks::{
    CUT, FALLBACK, broken, ended_broken, gateway_retrying, outcomes, row, unbroken,
};
use crate::support::chat::{Gateway, gateway_with, hello, hello_stream};
use crate::support::eventually;
use crate::support::log::{Log, on_this_thread};
use crate::support::provider::{ModelRequest, Reply, StreamStep, role_chunk, stream, text_chunk};
use crate::support::scrape::scrape;
use crate::support::server::NOON;

/// The maximum cost of `fake/m` with an answer of 100 tokens, and the same for a stream.
const MOST: u64 = 281_000;
const MOST_STREAMED: u64 = 295_000;
/// Models at a tenth and ten times the price of `fake/m`.
const CHEAP_AND_DEAR: &str = "
[providers.fake.models.cheap]
input_usd_per_mtok = 0.1
output_usd_per_mtok = 0.2
[providers.fake.models.dear]
input_usd_per_mtok = 10.0
output_usd_per_mtok = 20.0
";

fn fallbacks(of: &[&str]) -> String {
    let list: Vec<String> = of.iter().map(|model| format!("\"fake/{model}\"")).collect();
    format!("[inference.fallbacks]\n\"fake/m\" = [{}]\n{CHEAP_AND_DEAR}", list.join(", "))
}

fn short(mut body: Value) -> Value {
    body["max_tokens"] = json!(100);
    body
}

/// A key with this budget, and its id.
fn key_of(gateway: &Gateway, budget: u64) -> (String, String) {
    gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(budget)))
}

async fn ask(gateway: &Gateway, key: &str, body: Value) -> reqwest::Response {
    gateway.post_as(key, body.to_string()).send().await.unwrap()
}

fn retries_of_m(count: f64) -> (&'static str, f64) {
    (r#"mk_retries_total{provider="fake",model="m"}"#, count)
}

fn fallbacks_of_m(count: f64) -> (&'static str, f64) {
    (r#"mk_fallbacks_total{provider="fake",model="m"}"#, count)
}

#[tokio::test]
async fn a_broken_stream_is_not_resumed_beyond_the_budget() {
    let gateway = gateway_retrying(2, "", |call, _| match call {
        0 => broken(&["Hello"], vec![StreamStep::Cut]),
        _ => stream(&["Hello!"]),
    })
    .await;
    let (key, id) = key_of(&gateway, MOST_STREAMED);
    let raw = ask(&gateway, &key, short(hello_stream())).await.text().await.unwrap();
    // The budget is not mentioned, because it is not what failed.
    assert_eq!(ended_broken(&raw, CUT), "Hello");
    assert_eq!(outcomes(&gateway), [row("fake/m", "cut")]);
    let cost = gateway.rows()[0].cost.unwrap();
    assert_eq!(keys::spent(&gateway.server.app.store, &id, NOON).unwrap(), cost);
    scrape(&gateway.server).await.assert(&[retries_of_m(0.0)]);

    let refused: Value = ask(&gateway, &key, short(hello_stream())).await.json().await.unwrap();
    let left = NanoUsd(MOST_STREAMED).minus(cost);
    assert!(refused["message"].as_str().unwrap().contains(&format!("but {left} is left")), "{refused}");
}

#[tokio::test]
async fn an_affordable_fallback_resumes_a_stream_whose_model_is_too_expensive() {
    let gateway = gateway_retrying(2, &fallbacks(&["dear", "cheap"]), |call, _| match call {
        0 => broken(&["Hello"], vec![StreamStep::Cut]),
        _ => stream(&["Hello!"]),
    })
    .await;
    let (key, _) = key_of(&gateway, MOST_STREAMED);
    let response = ask(&gateway, &key, short(hello_stream())).await;
    assert_eq!(response.headers()["x-mk-attempts"], "1");
    assert_eq!(unbroken(&response.text().await.unwrap()), "Hello!");
    assert_eq!(outcomes(&gateway), [row("fake/m", "cut"), row("fake/cheap", "ok")]);
    // Only calls that were made are counted: no retry of `m`, and none of the model that is too expensive.
    scrape(&gateway.server).await.assert(&[retries_of_m(0.0), fallbacks_of_m(1.0)]);
}

#[tokio::test]
async fn a_fallback_beyond_the_budget_is_skipped() {
    let script = |ask: &ModelRequest| match ask.model.as_str() {
        "m" => Reply::Raw(503, vec![("retry-after", "120".to_owned())], "{}".to_owned()),
        _ => Reply::Text("Hi".to_owned()),
    };
    let gateway = gateway_with("", &fallbacks(&["dear"]), |setup| setup, script).await;
    let (key, _) = key_of(&gateway, MOST);
    let response = ask(&gateway, &key, short(hello())).await;
    let headers = response.headers().clone();
    assert_eq!((response.status().as_u16(), &headers["x-mk-attempts"]), (503, &"1".parse().unwrap()));
    assert_eq!(headers["retry-after"], "120", "the failure of the requested model");
    assert!(!headers.contains_key("x-should-retry"));
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "provider_overloaded");
    scrape(&gateway.server).await.assert(&[
        (r#"mk_attempts_total{provider="fake",model="m",outcome="overloaded"}"#, 1.0),
        fallbacks_of_m(0.0),
    ]);

    let gateway = gateway_with("", &fallbacks(&["dear", "cheap"]), |setup| setup, script).await;
    let (key, _) = key_of(&gateway, MOST);
    let response = ask(&gateway, &key, short(hello())).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-mk-model"]),
        (200, &"fake/cheap".parse().unwrap())
    );
    assert_eq!(outcomes(&gateway), [row("fake/m", "overloaded"), row("fake/cheap", "ok")]);
    scrape(&gateway.server).await.assert(&[fallbacks_of_m(1.0)]);
    // If the requested model itself is beyond the budget, no cheaper one replaces it silently.
    let (poor, _) = key_of(&gateway, MOST - 1);
    assert_eq!(ask(&gateway, &poor, short(hello())).await.status(), 402);
}

#[tokio::test]
async fn a_break_that_opens_the_breaker_moves_the_stream_to_the_fallback() {
    let rest = FALLBACK.replace("[\"fake/second\"]", "[\"fake/paused\", \"fake/second\"]");
    let gateway = gateway_with(
        "breaker_failures = 1\nbreaker_pause = \"5m\"",
        &rest,
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
        |ask| match ask.model.as_str() {
            "m" => broken(&["Hello"], vec![StreamStep::Cut]),
            "paused" => Reply::status(401, &json!({})),
            _ => stream(&["Hello!"]),
        },
    )
    .await;
    let mut paused = hello();
    paused["model"] = json!("fake/paused");
    assert_eq!(gateway.ask(&paused).await.status(), 502);

    assert_eq!(unbroken(&gateway.stream(&hello_stream()).await), "Hello!");
    let response = gateway.ask(&hello_stream()).await;
    assert_eq!(
        (&response.headers()["x-mk-model"], &response.headers()["x-mk-attempts"]),
        (&"fake/second".parse().unwrap(), &"1".parse().unwrap())
    );
    assert_eq!(unbroken(&response.text().await.unwrap()), "Hello!");
    assert_eq!(
        outcomes(&gateway)[1..],
        [row("fake/m", "cut"), row("fake/second", "ok"), row("fake/second", "ok")]
    );
    // The fallbacks count for `m`, although a paused model comes in between.
    scrape(&gateway.server).await.assert(&[
        retries_of_m(0.0),
        fallbacks_of_m(2.0),
        (r#"mk_fallbacks_total{provider="fake",model="paused"}"#, 0.0),
    ]);
}

#[tokio::test]
async fn retry_after_is_that_of_the_model_available_first() {
    let gateway = gateway_with(
        "breaker_failures = 1\nbreaker_pause = \"5m\"\n[providers.fake.models.second]\nbreaker_failures = 0",
        FALLBACK,
        |setup| setup,
        |_| Reply::status(500, &json!({})),
    )
    .await;
    assert_eq!(gateway.ask(&hello()).await.status(), 502);
    let response = gateway.ask(&hello()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-mk-attempts"]),
        (503, &"1".parse().unwrap())
    );
    // `m` is paused for minutes, but its fallback may recover in a moment.
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "no_provider_available");
}

#[tokio::test]
async fn the_log_names_the_model_that_ended_a_resumed_stream() {
    let log = Log::default();
    let guard = log.capture("info");
    let gateway = gateway_with(
        "max_concurrent = 1",
        FALLBACK,
        |setup| setup.options(on_this_thread),
        |ask| match (ask.model.as_str(), ask.text().as_str()) {
            ("m", _) => broken(&["Hello"], vec![StreamStep::Cut]),
            (_, "Leave") => Reply::Stream(vec![role_chunk(), text_chunk("Hello!"), StreamStep::Stall]),
            _ => broken(&["Hello!"], vec![StreamStep::Cut]),
        },
    )
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert_eq!(ended_broken(&raw, CUT), "Hello!");
    eventually("the broken stream is logged", || log.requests().len() == 1).await;

    let leave = hello_stream().to_string().replace("Hello", "Leave");
    let mut answer = gateway.post(leave).send().await.unwrap().bytes_stream();
    let mut seen = String::new();
    while !seen.contains("\"!\"") {
        seen.push_str(std::str::from_utf8(&answer.next().await.unwrap().unwrap()).unwrap());
    }
    drop(answer);
    eventually("the abandoned stream is logged", || log.requests().len() == 2).await;
    drop(guard);
    for (record, outcome) in log.requests().iter().zip(["provider_error", "cancelled"]) {
        let expected = json!([outcome, "fake/m", "fake/second", 2]);
        let found = ["outcome", "model", "answered_by", "attempts"].map(|name| record[name].clone());
        assert_eq!(json!(found), expected);
    }
    eventually("the provider call is cancelled", || gateway.provider.in_flight() == 0).await;
}

#[tokio::test]
async fn a_disconnect_while_resuming_releases_slot_and_breaker() {
    let gateway = gateway_with(
        "max_concurrent = 1\nidle_timeout = \"20s\"\nbreaker_failures = 2",
        "",
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 1),
        {
            let calls = AtomicUsize::new(0);
            move |_| match calls.fetch_add(1, Ordering::SeqCst) {
                0 => broken(&["Hello"], vec![StreamStep::Cut]),
                1 => Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::Stall]),
                _ => Reply::Text("Hi".to_owned()),
            }
        },
    )
    .await;
    let key = gateway.key.clone();
    let mut body = ask(&gateway, &key, short(hello_stream())).await.bytes_stream();
    let reader = tokio::spawn(async move { while body.next().await.is_some() {} });
    eventually("the second answer has started", || {
        gateway.provider.requests().len() == 2 && gateway.provider.in_flight() == 1
    })
    .await;
    reader.abort();
    eventually("both attempts are booked", || gateway.rows().len() == 2).await;
    assert_eq!(outcomes(&gateway), [row("fake/m", "cut"), row("fake/m", "cancelled")]);
    // The only slot is free, and the breaker has counted one failure only.
    assert_eq!(ask(&gateway, &key, short(hello())).await.status(), 200);
}

#[tokio::test]
async fn a_probe_rejected_by_the_budget_makes_room_for_the_next() {
    let calls = AtomicUsize::new(0);
    let gateway = gateway_with(
        "breaker_failures = 1\nbreaker_pause = \"50ms\"",
        "",
        |setup| setup,
        move |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::status(500, &json!({})),
            _ => Reply::Text("Hi".to_owned()),
        },
    )
    .await;
    let (poor, _) = key_of(&gateway, MOST - 1);
    let (rich, _) = key_of(&gateway, MOST);
    assert_eq!(ask(&gateway, &rich, short(hello())).await.status(), 502);
    eventually("the pause ends", || {
        gateway
            .server
            .app
            .configured()
            .gateway
            .breakers()
            .iter()
            .any(|breaker| breaker.state == BreakerState::HalfOpen)
    })
    .await;
    assert_eq!(ask(&gateway, &poor, short(hello())).await.status(), 402);
    assert_eq!(ask(&gateway, &rich, short(hello())).await.status(), 200);
    assert_eq!(
        gateway.server.app.configured().gateway.breakers(),
        [],
        "that call was the probe and closed the breaker"
    );
    assert_eq!(gateway.provider.requests().len(), 2);
}

#[tokio::test]
async fn one_key_leaves_a_place_at_a_provider_to_others() {
    let gateway = gateway_with(
        "max_concurrent = 8",
        "",
        |setup| setup,
        |ask| match &*ask.model {
            "m" => Reply::Hang,
            _ => Reply::Text("hello".to_owned()),
        },
    )
    .await;
    let hanging = hello();
    let mut greedy: Vec<_> = (0..20).map(|_| Box::pin(gateway.ask(&hanging))).collect();
    let crowd = futures_util::future::join_all(greedy.iter_mut());
    let other = gateway.server.key(Service::Inference);
    let answered = async {
        eventually("the first key has its share", || gateway.provider.in_flight() == 7).await;
        for _ in 0..3 {
            let body = json!({"model": "fake/n", "messages": hello()["messages"]});
            assert_eq!(gateway.post_as(&other, body.to_string()).send().await.unwrap().status(), 200);
        }
        assert_eq!(gateway.provider.in_flight(), 7);
    };
    tokio::select! {
        () = answered => {}
        _ = crowd => panic!("a model that hangs has answered"),
    }
}
