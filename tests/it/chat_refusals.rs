//! What a caller did wrong, as providers say it inside of a stream: the caller's error, as it is unstreamed.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::chat::{Gateway, chunks, gateway_with, hello, hello_stream, text_of};
use crate::support::provider::{Reply, StreamStep, role_chunk, stream, text_chunk};

const FALLBACK: &str = "[inference.fallbacks]\n\"fake/m\" = [\"fake/n\"]\n";

/// As Groq refuses a call that its model made of the caller's tools.
fn refusal() -> Value {
    json!({
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=f>{\"a\":\u{1b}[31m}\n</function>",
    })
}

/// The refusal as an event, with its status.
fn refusing_event() -> StreamStep {
    let mut error = refusal();
    error["status_code"] = json!(400);
    StreamStep::Send(format!("event: error\ndata: {}\n\n", json!({"error": error})))
}

/// A gateway whose model `m` replies with these steps, with a retry and a fallback to be wary of.
async fn streaming(steps: Vec<StreamStep>) -> Gateway {
    let settings = "breaker_failures = 3\nbreaker_pause = \"5m\"";
    let gateway = gateway_with(
        settings,
        FALLBACK,
        |setup| setup,
        move |ask| match ask.model.as_str() {
            "m" => Reply::Stream(steps.clone()),
            _ => stream(&["from the fallback"]),
        },
    );
    gateway.await
}

#[tokio::test]
async fn a_refusal_before_anything_else_is_the_caller_s_400_streamed_or_not() {
    let refused = |body: &Value| {
        let fields = ["error", "code", "message", "failed_generation", "provider"];
        fields.map(|name| body[name].as_str().unwrap_or_default().to_owned())
    };
    let expected = [
        "Bad Request",
        "tool_use_failed",
        "the provider fake refused the request: Failed to call a function. Please adjust your prompt.",
        "<function=f>{\"a\":[31m}\n</function>",
        "fake",
    ];
    let whole =
        gateway_with("", "", |setup| setup, |_| Reply::status(400, &json!({"error": refusal()}))).await;
    let (status, body) = whole.json(&hello()).await;
    assert_eq!((status, refused(&body)), (400, expected.map(str::to_owned)), "{body}");

    // The role alone says nothing yet.
    for steps in [vec![refusing_event()], vec![role_chunk(), refusing_event()]] {
        let sent = steps.iter().map(|step| match step {
            StreamStep::Send(text) => text.as_str(),
            other => panic!("{other:?}"),
        });
        let gateway = streaming(vec![StreamStep::Send(sent.collect())]).await;
        for _ in 0..5 {
            let (status, body) = gateway.json(&hello_stream()).await;
            assert_eq!((status, refused(&body)), (400, expected.map(str::to_owned)), "{body}");
        }
        assert!(gateway.provider.requests().iter().all(|ask| ask.model == "m"));
        assert_eq!(gateway.provider.requests().len(), 5);
    }
}

#[tokio::test]
async fn a_refusal_after_a_part_of_the_answer_has_its_own_code_and_asks_nobody_else() {
    let gateway =
        streaming(vec![role_chunk(), text_chunk("Let me"), StreamStep::APART, refusing_event()]).await;
    for _ in 0..5 {
        let list = chunks(&gateway.stream(&hello_stream()).await);
        assert_eq!(text_of(&list, 0), "Let me");
        let end = list.last().unwrap();
        assert_eq!(end["choices"][0]["finish_reason"], "error");
        let error = &end["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("Bad Request"), &json!("tool_use_failed")));
        assert_eq!(error["failed_generation"], "<function=f>{\"a\":[31m}\n</function>");
        assert!(!error["message"].as_str().unwrap().contains("try again"), "{error}");
    }
    assert_eq!(gateway.provider.requests().len(), 5);
}

#[tokio::test]
async fn refusals_inside_of_streams_do_not_pause_the_model_for_everyone() {
    let count = AtomicUsize::new(0);
    let gateway = gateway_with(
        "breaker_failures = 3\nbreaker_pause = \"5m\"",
        "",
        |setup| setup,
        move |_| match count.fetch_add(1, Ordering::SeqCst) {
            0..8 => Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::APART, refusing_event()]),
            _ => stream(&["hello"]),
        },
    )
    .await;
    for _ in 0..8 {
        assert!(gateway.stream(&hello_stream()).await.contains("tool_use_failed"));
    }
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "hello");
}
