//! Every provider call for a chat completion is booked exactly once, streamed or not.

use mk::api::Service;
use serde_json::json;

use crate::support::chat::{gateway, gateway_with, hello, hello_stream};
use crate::support::eventually;
use crate::support::provider::{ModelRequest, Reply, StreamStep, role_chunk, stream, text_chunk};

#[tokio::test]
async fn abandoning_an_unstreamed_request_stops_the_provider_and_bills_the_prompt() {
    let gateway = gateway(|_| Reply::Hang).await;
    let waiting = tokio::spawn(gateway.post(hello().to_string()).send());
    eventually("the provider is called", || gateway.provider.in_flight() == 1).await;
    waiting.abort();
    eventually("the call is abandoned", || gateway.provider.abandoned() == 1).await;
    eventually("the attempt is booked", || !gateway.rows().is_empty()).await;
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "cancelled".to_owned(), 6, 0)]);
}

#[tokio::test]
async fn implausible_usage_is_replaced_by_an_estimate() {
    let gateway = gateway(|_| {
        let usage = json!({"prompt_tokens": -7, "completion_tokens": 1e30});
        let choice =
            json!({"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"});
        Reply::status(200, &json!({"choices": [choice], "usage": usage}))
    })
    .await;
    let (_, body) = gateway.json(&hello()).await;
    assert_eq!(body["usage"]["estimated"], true);
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "ok".to_owned(), 6, 1)]);
}

#[tokio::test]
async fn a_model_without_a_price_has_an_unknown_cost() {
    let gateway = gateway(|_| stream(&["x"])).await;
    let mut body = hello_stream();
    body["model"] = json!("fake/n");
    gateway.stream(&body).await;
    let row = gateway.rows().remove(0);
    assert_eq!((row.cost, row.prompt_tokens, row.service), (None, 7, Service::Inference));
    assert!(!row.key_id.is_empty() && !row.app_id.is_empty());
}

#[tokio::test]
async fn usage_reported_before_a_break_is_booked() {
    let gateway = gateway(|_| {
        let usage =
            r#"data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9,"total_tokens":59}}"#;
        Reply::Stream(vec![
            role_chunk(),
            text_chunk("a"),
            StreamStep::Send(format!("{usage}\n\n")),
            StreamStep::APART,
            StreamStep::Cut,
        ])
    })
    .await;
    gateway.stream(&hello_stream()).await;
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "cut".to_owned(), 50, 9)]);
}

#[tokio::test]
async fn usage_beside_an_error_is_booked_as_reported() {
    for place in [
        r#""choices":[],"error":{"message":"no","code":502}"#,
        r#""error":{"message":"no","code":502}"#,
        r#""choices":[{"index":0,"delta":{},"error":{"message":"no","code":502}}]"#,
    ] {
        let usage = r#""usage":{"prompt_tokens":50,"completion_tokens":1,"total_tokens":51}"#;
        let last = format!("data: {{{place},{usage}}}\n\n");
        for text in ["", "more than four characters"] {
            let last = StreamStep::Send(last.clone());
            let steps = if text.is_empty() { vec![last] } else { vec![role_chunk(), text_chunk(text), last] };
            let gateway = gateway(move |_| Reply::Stream(steps.clone())).await;
            let _ = gateway.ask(&hello_stream()).await.text().await;
            assert_eq!(
                gateway.booked(),
                [("fake/m".to_owned(), "provider_error".to_owned(), 50, 1)],
                "{place}"
            );
        }
    }
}

#[tokio::test]
async fn a_call_that_is_reset_before_its_answer_begins_has_used_nothing() {
    let head = |_: &ModelRequest| Reply::Stream(vec![StreamStep::Cut]);
    for body in [hello(), hello_stream()] {
        for gateway in [gateway(|_| Reply::Reset).await, gateway(head).await] {
            assert_eq!(gateway.ask(&body).await.status(), 502);
            let row = gateway.rows().remove(0);
            assert_eq!((&*row.outcome, row.prompt_tokens, row.completion_tokens), ("cut", 0, 0));
            assert_eq!(row.cost.map(|cost| cost.0), Some(0));
        }
    }
}

#[tokio::test]
async fn streams_count_against_the_concurrency_limit_until_they_end() {
    let gateway = gateway_with(
        "max_concurrent = 2",
        "",
        |setup| setup,
        |_| {
            Reply::Stream(vec![
                role_chunk(),
                StreamStep::APART,
                text_chunk("a"),
                crate::support::provider::finish_chunk("stop"),
                crate::support::provider::done(),
            ])
        },
    )
    .await;
    let body = hello_stream();
    let all = (0..6).map(|_| gateway.stream(&body));
    let all = futures_util::future::join_all(all).await;
    assert!(all.iter().all(|raw| raw.ends_with("data: [DONE]\n\n")));
    assert!(gateway.provider.most_in_flight() <= 2, "{}", gateway.provider.most_in_flight());
    assert_eq!(gateway.rows().len(), 6);
}
