//! What stops the attempt to resume a broken stream: content filters, timeouts, disconnects, revocations, shutdown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::json;

use crate::support::breaks::{
    CUT, FALLBACK, broken, ended_broken, gateway_retrying, outcomes, row, unbroken,
};
use crate::support::chat::{Gateway, gateway_with, hello_stream};
use crate::support::provider::{Reply, StreamStep, done, finish_chunk, role_chunk, stream, text_chunk};
use crate::support::{PROMPT, eventually};

#[tokio::test]
async fn a_content_filter_is_never_resumed() {
    // As a finish reason, as an error inside the stream, and as the response to the retry.
    let filtered = gateway_retrying(2, FALLBACK, |_, _| {
        Reply::Stream(vec![role_chunk(), text_chunk("Hello"), finish_chunk("content_filter"), done()])
    })
    .await;
    let raw = filtered.stream(&hello_stream()).await;
    assert!(raw.contains("\"finish_reason\":\"content_filter\"") && !raw.contains("\"error\""), "{raw}");
    assert_eq!(filtered.provider.requests().len(), 1);

    let refusal = "data: {\"error\":{\"message\":\"no\",\"code\":\"content_filter\"}}\n\n";
    let inside =
        gateway_retrying(2, FALLBACK, move |_, _| broken(&["Hello"], vec![StreamStep::Send(refusal.into())]))
            .await;
    let raw = inside.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"content_filter\"") && raw.ends_with("data: [DONE]\n\n"), "{raw}");
    assert_eq!(inside.provider.requests().len(), 1);

    let again = gateway_retrying(2, FALLBACK, |call, _| match call {
        0 => broken(&["Hello"], vec![StreamStep::Cut]),
        _ => Reply::status(400, &json!({"error": {"code": "content_filter"}})),
    })
    .await;
    assert_eq!(ended_broken(&again.stream(&hello_stream()).await, CUT), "Hello");
    assert_eq!(outcomes(&again), [row("fake/m", "cut"), row("fake/m", "refused")]);
}

#[tokio::test]
async fn keep_alives_are_sent_while_resuming_and_silent_fallbacks_are_skipped() {
    let calls = AtomicUsize::new(0);
    let patience = "[inference]\nfirst_token_timeout_with_fallback = \"1s\"\n";
    let fallbacks = FALLBACK.replace("[\"fake/second\"]", "[\"fake/second\", \"fake/third\"]");
    let gateway = gateway_with(
        "",
        &(patience.to_owned() + &fallbacks),
        |setup| setup.options(|options| options.keep_alive = Duration::from_millis(150)),
        move |ask| match (calls.fetch_add(1, Ordering::SeqCst), ask.model.as_str()) {
            (0, _) => broken(&["Hello"], vec![StreamStep::Cut]),
            (_, "second") => Reply::Stream(vec![StreamStep::Stall]),
            _ => stream(&["Hello!"]),
        },
    )
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.matches(": keep-alive\n\n").count() >= 2, "{raw}");
    assert_eq!(unbroken(&raw.replace(": keep-alive\n\n", "")), "Hello!");
    assert_eq!(
        outcomes(&gateway),
        [row("fake/m", "cut"), row("fake/second", "timeout"), row("fake/third", "ok")]
    );
}

#[tokio::test]
async fn resuming_does_not_restart_the_total_timeout() {
    let calls = AtomicUsize::new(0);
    // The first answer breaks after three quarters of the time. The second catches up at once and goes on for as long,
    // so that with a limit of its own it would end by breaking, and not by a timeout.
    let gateway = gateway_with(
        "total_timeout = \"4s\"",
        FALLBACK,
        |setup| setup,
        move |_| {
            let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
            let mut steps = vec![role_chunk()];
            for nth in 0..60 {
                if is_first && nth == 30 {
                    steps.push(StreamStep::Cut);
                    break;
                }
                steps.push(text_chunk("a"));
                if is_first || nth >= 30 {
                    steps.push(StreamStep::Pause(Duration::from_millis(100)));
                }
            }
            Reply::Stream(steps)
        },
    )
    .await;
    let raw = gateway.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"provider_timeout\""), "{raw}");
    assert_eq!(gateway.provider.requests().len(), 2);
}

/// A stream whose second answer stalls before it catches up with the first; also the id of its key.
async fn waiting() -> (Gateway, reqwest::Response, String) {
    let calls = AtomicUsize::new(0);
    let gateway = gateway_with(
        "idle_timeout = \"20s\"",
        "",
        |setup| {
            let setup = setup.config(|config| config.providers[0].call_policy.retries = 1);
            setup.options(|options| options.drain = Duration::from_millis(200))
        },
        move |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => broken(&["Hello"], vec![StreamStep::Cut]),
            _ => Reply::Stream(vec![role_chunk(), text_chunk("Hel"), StreamStep::Stall]),
        },
    )
    .await;
    let (key, id) = gateway.server.key_with(Service::Inference, |_| {});
    let response = gateway.post_as(&key, hello_stream().to_string()).send().await.unwrap();
    (gateway, response, id)
}

/// Waits until the second answer has started.
async fn second_answer_started(gateway: &Gateway) {
    eventually("the second answer has started", || {
        gateway.provider.requests().len() == 2 && gateway.provider.in_flight() == 1
    })
    .await;
}

#[tokio::test]
async fn a_disconnect_while_resuming_stops_the_provider_and_is_billed() {
    let (gateway, response, _) = waiting().await;
    let mut body = response.bytes_stream();
    let reader = tokio::spawn(async move { while body.next().await.is_some() {} });
    second_answer_started(&gateway).await;
    let left = Instant::now();
    reader.abort();
    eventually("the call is abandoned", || gateway.provider.abandoned() == 1).await;
    assert!(left.elapsed() < PROMPT);
    eventually("both attempts are booked", || gateway.rows().len() == 2).await;
    assert_eq!(outcomes(&gateway), [row("fake/m", "cut"), row("fake/m", "cancelled")]);
    assert!(gateway.rows().iter().all(|row| row.prompt_tokens == 6));
}

#[tokio::test]
async fn a_revocation_ends_a_resuming_stream() {
    let (gateway, response, id) = waiting().await;
    let reader = tokio::spawn(response.text());
    second_answer_started(&gateway).await;
    let began = Instant::now();
    gateway.server.app.store.revoke_key(&id, gateway.server.clock.now()).unwrap();
    let raw = reader.await.unwrap().unwrap();
    assert!(began.elapsed() < PROMPT);
    let error = r#"{"message":"API key has been revoked","type":"Unauthorized","code":"api_key_revoked"}"#;
    assert_eq!(ended_broken(&raw, error), "Hello");
    eventually("the provider call is cancelled", || gateway.provider.in_flight() == 0).await;
    eventually("both attempts are booked", || gateway.rows().len() == 2).await;
}

#[tokio::test]
async fn a_shutdown_ends_a_resuming_stream_and_books_every_attempt() {
    let (mut gateway, response, _) = waiting().await;
    let reader = tokio::spawn(response.text());
    second_answer_started(&gateway).await;
    gateway.server.begin_shutdown();
    let raw = reader.await.unwrap().unwrap();
    assert!(raw.contains(r#""code":"shutting_down""#) && raw.ends_with("data: [DONE]\n\n"), "{raw}");
    let dir = gateway.server.dir.clone();
    gateway.server.shutdown().await;
    let store = mk::storage::Store::open(&dir.path().join("data"), crate::support::server::NOON).unwrap();
    let outcomes: Vec<String> =
        store.attempts_of("req-1").unwrap().into_iter().map(|row| row.outcome.into()).collect();
    assert_eq!(outcomes, ["cut", "cancelled"]);
}
