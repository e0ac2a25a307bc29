//! Chat completions over real sockets, mostly of providers with a format other than the caller's.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::json::fields::Fields;
use crate::providers::scripted::{Scripted, Step, content, message, response};
use crate::providers::{CompletionRequest, Kind, ResponseMeta, Settings};

const BODY: &str =
    r#"{"model":"acme/m","messages":[{"role":"user","content":"Two plus two?"}],"stream":true}"#;
const FROM_ANTHROPIC: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/providers/anthropic/chat-stream-parallel-tools/stream.txt"
));
const FROM_GOOGLE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/providers/google/chat-stream-parallel-tools/stream.txt"
));

fn provider(server: &Scripted, kind: Kind) -> Provider {
    Provider::new(Settings::new("acme", kind, &server.base_url), Clock::system()).unwrap()
}

fn request(stream: bool) -> CompletionRequest<'static> {
    let fields: Fields<'_> = serde_json::from_str(BODY).unwrap();
    CompletionRequest { fields, stream, include_usage: true, choices: 1, prompt_tokens: 7, native: None }
}

fn meta() -> ResponseMeta {
    ResponseMeta { model: "acme/m".into(), created: 1 }
}

fn stream(body: &str) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    vec![Step::Send(format!("{head}{body}").into_bytes())]
}

/// Everything that a caller receives, and the failure if the stream broke.
async fn collect_stream(provider: &Provider) -> (String, Option<Failure>) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let permit = provider.admit(&"key_1".into(), Instant::now(), deadline).await.unwrap().0;
    let (request, meta) = (request(true), meta());
    let question = CompletionCall { request: &request, meta: &meta };
    let mut stream = provider.stream(permit, &question, "m", deadline).await.unwrap();
    let mut text = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(piece)) => text.extend_from_slice(&piece),
            Some(Err(failure)) => return (String::from_utf8(text).unwrap(), Some(failure)),
            None => return (String::from_utf8(text).unwrap(), None),
        }
    }
}

#[tokio::test]
async fn streams_in_other_formats_are_translated() {
    for (kind, body, line, calls) in [
        (Kind::Anthropic, FROM_ANTHROPIC, "POST /v1/messages HTTP/1.1\r\n", 3),
        (Kind::Google, FROM_GOOGLE, "POST /v1/models/m:streamGenerateContent?alt=sse HTTP/1.1\r\n", 3),
    ] {
        let server = Scripted::start(vec![stream(body)]).await;
        let (text, failure) = collect_stream(&provider(&server, kind)).await;
        assert_eq!(failure, None, "{text}");
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
        assert_eq!(text.matches("\"type\":\"function\"").count(), calls, "{text}");
        assert_eq!(text.matches("\"finish_reason\":\"tool_calls\"").count(), 1, "{text}");
        let request = server.requests().remove(0);
        assert!(request.starts_with(line), "{request}");
    }
}

#[tokio::test]
async fn a_stream_in_another_format_that_ends_early_is_cut() {
    for (kind, body) in [(Kind::Anthropic, FROM_ANTHROPIC), (Kind::Google, FROM_GOOGLE)] {
        let half = body.split_inclusive("\n\n").take(2).collect::<String>();
        let server = Scripted::start(vec![stream(&half)]).await;
        let (text, failure) = collect_stream(&provider(&server, kind)).await;
        assert_eq!(failure, Some(Failure::Cut), "{text}");
        assert!(!text.contains("[DONE]"), "{text}");
    }
}

#[tokio::test]
async fn complete_responses_in_other_formats_are_translated() {
    for (kind, turn) in [(Kind::Anthropic, message("4")), (Kind::Google, content("4"))] {
        let server = Scripted::start(vec![turn]).await;
        let provider = provider(&server, kind);
        let deadline = Instant::now() + Duration::from_secs(20);
        let permit = provider.admit(&"key_1".into(), Instant::now(), deadline).await.unwrap().0;
        let (request, meta) = (request(false), meta());
        let question = CompletionCall { request: &request, meta: &meta };
        let completed = provider.complete(permit, &question, "m", deadline).await.unwrap();
        let body: Value = serde_json::from_slice(&completed.body).unwrap();
        let message = json!({"role": "assistant", "content": "4"});
        assert_eq!(body["choices"][0], json!({"index": 0, "message": message, "finish_reason": "stop"}));
        assert_eq!(body["model"], "acme/m");
    }
}

#[tokio::test]
async fn a_caller_s_mistake_teaches_nothing_about_the_model() {
    let refusal = r#"{"error":{"message":"Unknown parameter: 'stream_options.nonsense'."}}"#;
    let refused = || response(400, "", refusal);
    let whole =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Scripted::start(vec![refused(), refused(), stream(whole)]).await;
    let provider = provider(&server, Kind::OpenAi);
    let deadline = Instant::now() + Duration::from_secs(20);
    let permit = provider.admit(&"key_1".into(), Instant::now(), deadline).await.unwrap().0;
    let (request, meta) = (request(true), meta());
    let question = CompletionCall { request: &request, meta: &meta };
    let opened = provider.stream(permit, &question, "m", deadline).await;
    assert!(matches!(opened.err().unwrap().failure, Failure::Rejected { .. }));
    let (text, failure) = collect_stream(&provider).await;
    assert_eq!((failure, text.matches("[DONE]").count()), (None, 1));
    let requested_usage: Vec<bool> =
        server.requests().iter().map(|request| request.contains("include_usage")).collect();
    assert_eq!(requested_usage, [true, false, true], "the next caller's stream is asked for its usage");
}
