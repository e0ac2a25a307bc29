//! Callers on a budget who leave early: their calls are read on until the usage is known, or charged as reserved.
//!
//! A provider of these tests sends the usage half a second after the caller has left. Should the server notice that
//! later than the usage, the same must be booked.

use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use mk::keys;
use mk::money::NanoUsd;
use mk::storage::{AttemptRow, Store};
use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, gateway_with, hello, hello_stream};
use crate::support::events::read_until;
use crate::support::eventually;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{
    FakeProvider, ModelRequest, Reply, StreamStep, done, finish_chunk, role_chunk, text_chunk,
};
use crate::support::server::{NOON, Setup};

const LATER: Duration = Duration::from_millis(500);

/// A key with this budget, and its id.
fn key_of(gateway: &Gateway, budget: u64) -> (String, String) {
    gateway.server.key_with(Service::Inference, |new| new.budget = Some(NanoUsd(budget)))
}

fn short(mut body: Value) -> Value {
    body["max_tokens"] = json!(50_000);
    body
}

/// The most that [`short`] may cost, streamed: as many prompt tokens as it has bytes, and 50,000 of the answer.
fn most(body: &Value) -> u64 {
    (body.to_string().len() as u64 - 1) * 1_000 + 50_000 * 2_000
}

/// A stream whose provider counts 30,000 tokens, most of which nobody sees.
fn thinks_long() -> Reply {
    let usage = json!({"prompt_tokens": 50, "completion_tokens": 30_000, "total_tokens": 30_050});
    let usage = StreamStep::Send(format!("data: {}\n\n", json!({"choices": [], "usage": usage})));
    Reply::Stream(vec![
        role_chunk(),
        text_chunk("four char"),
        StreamStep::Pause(LATER),
        text_chunk("s"),
        finish_chunk("stop"),
        usage,
        done(),
    ])
}

/// Reads a stream until this text, and leaves.
async fn read_and_leave(gateway: &Gateway, key: &str, body: &Value, text: &str) {
    let response = gateway.post_as(key, body.to_string()).send().await.unwrap();
    let mut stream = Box::pin(response.bytes_stream());
    let mut seen = String::new();
    while !seen.contains(text) {
        seen.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
}

/// Sends a request and leaves before there is an answer.
async fn ask_and_leave(gateway: &Gateway, key: &str, body: &Value) {
    let waiting = tokio::spawn(gateway.post_as(key, body.to_string()).send());
    eventually("the provider is called", || gateway.provider.in_flight() == 1).await;
    waiting.abort();
}

async fn only_row(gateway: &Gateway) -> AttemptRow {
    eventually("the attempt is booked", || gateway.rows().len() == 1).await;
    gateway.rows().remove(0)
}

fn tokens(row: &AttemptRow) -> (u64, u64, bool) {
    (row.prompt_tokens, row.completion_tokens, row.is_estimated)
}

#[tokio::test]
async fn a_stream_that_was_left_is_read_on_until_its_usage_is_known() {
    let gateway = gateway(|_| thinks_long()).await;
    let (key, id) = key_of(&gateway, 1_000_000_000);
    read_and_leave(&gateway, &key, &short(hello_stream()), "four char").await;
    let row = only_row(&gateway).await;
    assert_eq!((tokens(&row), row.cost), ((50, 30_000, false), Some(NanoUsd(60_050_000))));
    assert_eq!(keys::spent(&gateway.server.app.store, &id, NOON).unwrap(), NanoUsd(60_050_000));
    assert_eq!((gateway.provider.requests().len(), gateway.provider.abandoned()), (1, 0));
}

#[tokio::test]
async fn a_budget_runs_out_however_early_its_callers_leave() {
    let gateway = gateway(|_| thinks_long()).await;
    let (key, _) = key_of(&gateway, 250_000_000);
    let body = short(hello_stream());
    for calls in 1..=3 {
        read_and_leave(&gateway, &key, &body, "four char").await;
        eventually("the attempt is booked", || gateway.rows().len() == calls).await;
    }
    let refused = gateway.post_as(&key, body.to_string()).send().await.unwrap();
    assert_eq!(refused.status(), 402, "3 × $0.06 are spent, and the next may cost $0.10");
}

#[tokio::test]
async fn an_answer_that_was_left_before_it_began_is_read_too() {
    for (body, reply, used) in [
        (short(hello()), Reply::Text("Hi".to_owned()), (100, 10, false)),
        (short(hello_stream()), thinks_long(), (50, 30_000, false)),
    ] {
        let gateway = gateway(move |_| reply.clone().after(LATER)).await;
        let (key, _) = key_of(&gateway, 1_000_000_000);
        ask_and_leave(&gateway, &key, &body).await;
        let row = only_row(&gateway).await;
        assert_eq!((tokens(&row), &*row.outcome), (used, "cancelled"));
        assert_eq!(gateway.provider.abandoned(), 0);
    }
}

#[tokio::test]
async fn a_call_that_failed_late_without_cost_is_not_charged() {
    let gateway = gateway(|_| Reply::status(500, &json!({})).after(LATER)).await;
    let (key, _) = key_of(&gateway, 1_000_000_000);
    ask_and_leave(&gateway, &key, &short(hello())).await;
    let row = only_row(&gateway).await;
    assert_eq!((tokens(&row), row.cost), ((0, 0, false), Some(NanoUsd(0))));
}

#[tokio::test]
async fn what_will_never_be_known_is_charged_as_reserved() {
    let steps = vec![role_chunk(), text_chunk("four char"), StreamStep::Stall];
    let change = |setup: Setup| setup;
    let gateway =
        gateway_with("idle_timeout = \"1s\"", "", change, move |_| Reply::Stream(steps.clone())).await;
    let (key, id) = key_of(&gateway, 1_000_000_000);
    let body = short(hello_stream());
    read_and_leave(&gateway, &key, &body, "four char").await;
    let row = only_row(&gateway).await;
    let charged = NanoUsd(most(&body));
    assert_eq!((&*row.outcome, row.cost, row.is_estimated), ("cancelled", Some(charged), true));
    assert_eq!(row.completion_tokens, 3, "the tokens that were seen");
    assert_eq!(keys::spent(&gateway.server.app.store, &id, NOON).unwrap(), charged);
    eventually("the provider is stopped", || gateway.provider.in_flight() == 0).await;
}

#[tokio::test]
async fn a_shutdown_charges_what_is_read_on_as_reserved() {
    let Gateway { server, provider, key: _ } = gateway(|_| Reply::Hang).await;
    let gateway = Gateway { key: String::new(), server, provider };
    let (key, _) = key_of(&gateway, 1_000_000_000);
    let body = short(hello());
    ask_and_leave(&gateway, &key, &body).await;
    let Gateway { server, provider, .. } = gateway;
    let dir = server.dir.clone();
    server.shutdown().await;
    let row = Store::open(&dir.path().join("data"), NOON).unwrap().attempts_of("req-1").unwrap().remove(0);
    assert_eq!((row.cost, row.is_estimated), (Some(NanoUsd(most(&body))), true));
    eventually("the provider is stopped", || provider.in_flight() == 0).await;
}

#[tokio::test]
async fn without_a_budget_calls_end_with_their_callers() {
    let gateway =
        gateway(|_| Reply::Stream(vec![role_chunk(), text_chunk("four char"), StreamStep::Stall])).await;
    read_and_leave(&gateway, &gateway.key, &short(hello_stream()), "four char").await;
    eventually("the provider is stopped", || gateway.provider.abandoned() == 1).await;
    let row = only_row(&gateway).await;
    assert_eq!((&*row.outcome, tokens(&row)), ("cancelled", (6, 3, true)));
}

#[tokio::test]
async fn the_calls_of_a_verification_are_read_on_too() {
    let script = |ask: &ModelRequest| match ask.task.as_str() {
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris").after(LATER),
    };
    let provider = FakeProvider::start(script).await;
    let server =
        Setup::new(config(&provider.base_url)).config(crate::budgets_verify::price_all).start().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.budget = Some(NanoUsd(1_000_000_000)));
    let request = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .header("x-request-id", "req-1");
    let mut stream = request.send().await.unwrap().bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    eventually("the panel is called", || provider.in_flight() == 3).await;
    drop(stream);
    let rows = || {
        server.app.flush().unwrap();
        server.app.store.usage(&mk::storage::UsageQuery::days(0, i64::from(u16::MAX))).unwrap()
    };
    eventually("all is booked", || rows().first().is_some_and(|sum| sum.counts.attempts == 4)).await;
    let counts = rows()[0].counts;
    assert_eq!((counts.prompt_tokens, counts.completion_tokens), (400, 40));
    assert_eq!((counts.estimated_attempts, provider.abandoned()), (0, 0));
}
