//! The caller disconnects: provider calls stop, and what was used until then is booked.

use futures_util::StreamExt;
use mk::api::Service;
use serde_json::{Value, json};

use crate::support::events::read_until;
use crate::support::eventually;
use crate::support::panel::hanging_panel;

#[tokio::test]
async fn disconnecting_from_a_stream_stops_the_provider_calls_and_books_their_usage() {
    let (server, provider) = hanging_panel().await;
    let key = server.key(Service::Verify);
    let mut stream = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    let first = stream.next().await.unwrap().unwrap();
    let data = std::str::from_utf8(&first).unwrap().split("data: ").nth(1).unwrap();
    let starting: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    let id = starting["requestId"].as_str().unwrap().to_owned();
    if !std::str::from_utf8(&first).unwrap().contains("event: verifying_claim\n") {
        read_until(&mut stream, "verifying_claim").await;
    }
    eventually("the panel is called", || provider.in_flight() == 3).await;

    drop(stream);

    eventually("the calls are abandoned", || provider.in_flight() == 0 && provider.abandoned() == 3).await;
    let outcomes = || {
        let rows = server.app.store.attempts_of(&id).unwrap();
        let mut outcomes: Vec<String> = rows.into_iter().map(|row| row.outcome.into()).collect();
        outcomes.sort();
        outcomes
    };
    eventually("the attempts are booked", || outcomes() == ["cancelled", "cancelled", "cancelled", "ok"])
        .await;
    let rows = server.app.store.attempts_of(&id).unwrap();
    assert_eq!(rows.iter().find(|row| row.outcome == "ok").unwrap().prompt_tokens, 100);
}

#[tokio::test]
async fn disconnecting_from_a_json_request_stops_the_provider_calls() {
    let (server, provider) = hanging_panel().await;
    let key = server.key(Service::Verify);
    let request = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .header("accept", "application/json")
        .send();
    let waiting = tokio::spawn(request);
    eventually("the panel is called", || provider.in_flight() == 3).await;
    waiting.abort();
    eventually("the calls are abandoned", || provider.in_flight() == 0 && provider.abandoned() == 3).await;
}
