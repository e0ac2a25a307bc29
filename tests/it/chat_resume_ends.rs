//! What stops the attempt to resume a broken stream: content filters, timeouts, disconnects, revocations, shutdown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::json;

use crate::support::breaks::{CUT, FALLBACK, broken, desk_retrying, ended_broken, outcomes, row, unbroken};
use crate::support::chat::{Desk, desk_with, hello_stream};
use crate::support::provider::{Beat, Turn, done, finish_chunk, role_chunk, stream, text_chunk};
use crate::support::{PROMPT, eventually};

#[tokio::test]
async fn a_content_filter_is_never_resumed() {
    // As a finish reason, as an error inside the stream, and as the response to the retry.
    let filtered = desk_retrying(2, FALLBACK, |_, _| {
        Turn::Stream(vec![role_chunk(), text_chunk("Hello"), finish_chunk("content_filter"), done()])
    })
    .await;
    let raw = filtered.stream(&hello_stream()).await;
    assert!(raw.contains("\"finish_reason\":\"content_filter\"") && !raw.contains("\"error\""), "{raw}");
    assert_eq!(filtered.provider.asks().len(), 1);

    let refusal = "data: {\"error\":{\"message\":\"no\",\"code\":\"content_filter\"}}\n\n";
    let inside =
        desk_retrying(2, FALLBACK, move |_, _| broken(&["Hello"], vec![Beat::Send(refusal.into())])).await;
    let raw = inside.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"content_filter\"") && raw.ends_with("data: [DONE]\n\n"), "{raw}");
    assert_eq!(inside.provider.asks().len(), 1);

    let again = desk_retrying(2, FALLBACK, |call, _| match call {
        0 => broken(&["Hello"], vec![Beat::Cut]),
        _ => Turn::status(400, &json!({"error": {"code": "content_filter"}})),
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
    let desk = desk_with(
        "",
        &(patience.to_owned() + &fallbacks),
        |setup| setup.options(|options| options.keep_alive = Duration::from_millis(150)),
        move |ask| match (calls.fetch_add(1, Ordering::SeqCst), ask.model.as_str()) {
            (0, _) => broken(&["Hello"], vec![Beat::Cut]),
            (_, "second") => Turn::Stream(vec![Beat::Stall]),
            _ => stream(&["Hello!"]),
        },
    )
    .await;
    let raw = desk.stream(&hello_stream()).await;
    assert!(raw.matches(": keep-alive\n\n").count() >= 2, "{raw}");
    assert_eq!(unbroken(&raw.replace(": keep-alive\n\n", "")), "Hello!");
    assert_eq!(
        outcomes(&desk),
        [row("fake/m", "cut"), row("fake/second", "timeout"), row("fake/third", "ok")]
    );
}

#[tokio::test]
async fn resuming_does_not_restart_the_total_timeout() {
    let desk = desk_with(
        "total_timeout = \"2s\"",
        FALLBACK,
        |setup| setup,
        |_| {
            let mut beats = vec![role_chunk()];
            for _ in 0..200 {
                beats.extend([text_chunk("a"), Beat::Pause(Duration::from_millis(20))]);
            }
            Turn::Stream(beats)
        },
    )
    .await;
    let raw = desk.stream(&hello_stream()).await;
    assert!(raw.contains("\"code\":\"provider_timeout\""), "{raw}");
    assert_eq!(desk.provider.asks().len(), 1);
}

/// A stream whose second answer stalls before it catches up with the first; also the id of its key.
async fn waiting() -> (Desk, reqwest::Response, String) {
    let calls = AtomicUsize::new(0);
    let desk = desk_with(
        "idle_timeout = \"20s\"",
        "",
        |setup| {
            let setup = setup.config(|config| config.providers[0].retries = 1);
            setup.options(|options| options.drain = Duration::from_millis(200))
        },
        move |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => broken(&["Hello"], vec![Beat::Cut]),
            _ => Turn::Stream(vec![role_chunk(), text_chunk("Hel"), Beat::Stall]),
        },
    )
    .await;
    let (key, id) = desk.server.key_with(Service::Inference, |_| {});
    let response = desk.post_as(&key, hello_stream().to_string()).send().await.unwrap();
    (desk, response, id)
}

/// Waits until the second answer has started.
async fn second_answer_started(desk: &Desk) {
    eventually("the second answer has started", || {
        desk.provider.asks().len() == 2 && desk.provider.in_flight() == 1
    })
    .await;
}

#[tokio::test]
async fn a_disconnect_while_resuming_stops_the_provider_and_is_billed() {
    let (desk, response, _) = waiting().await;
    let mut body = response.bytes_stream();
    let reader = tokio::spawn(async move { while body.next().await.is_some() {} });
    second_answer_started(&desk).await;
    let left = Instant::now();
    reader.abort();
    eventually("the call is abandoned", || desk.provider.abandoned() == 1).await;
    assert!(left.elapsed() < PROMPT);
    eventually("both attempts are booked", || desk.rows().len() == 2).await;
    assert_eq!(outcomes(&desk), [row("fake/m", "cut"), row("fake/m", "cancelled")]);
    assert!(desk.rows().iter().all(|row| row.prompt_tokens == 6));
}

#[tokio::test]
async fn a_revocation_ends_a_resuming_stream() {
    let (desk, response, id) = waiting().await;
    let reader = tokio::spawn(response.text());
    second_answer_started(&desk).await;
    let began = Instant::now();
    desk.server.app.store.revoke_key(&id, desk.server.clock.now()).unwrap();
    let raw = reader.await.unwrap().unwrap();
    assert!(began.elapsed() < PROMPT);
    let error = r#"{"message":"API key has been revoked","type":"Unauthorized","code":"api_key_revoked"}"#;
    assert_eq!(ended_broken(&raw, error), "Hello");
    eventually("the provider call is cancelled", || desk.provider.in_flight() == 0).await;
    eventually("both attempts are booked", || desk.rows().len() == 2).await;
}

#[tokio::test]
async fn a_shutdown_ends_a_resuming_stream_and_books_every_attempt() {
    let (mut desk, response, _) = waiting().await;
    let reader = tokio::spawn(response.text());
    second_answer_started(&desk).await;
    desk.server.begin_shutdown();
    let raw = reader.await.unwrap().unwrap();
    assert!(raw.contains(r#""code":"shutting_down""#) && raw.ends_with("data: [DONE]\n\n"), "{raw}");
    let dir = desk.server.dir.clone();
    desk.server.shutdown().await;
    let store = mk::storage::Store::open(&dir.path().join("data"), crate::support::server::NOON).unwrap();
    let outcomes: Vec<String> =
        store.attempts_of("req-1").unwrap().into_iter().map(|row| row.outcome.into()).collect();
    assert_eq!(outcomes, ["cut", "cancelled"]);
}
