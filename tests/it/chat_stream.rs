//! Streamed chat completions: the exact bytes, whatever a provider's habits, and callers that read slowly or leave.

mod ends;

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::chat::{chunks, gateway, gateway_with, hello_stream, text_of};
use crate::support::provider::{
    Reply, StreamStep, chunk, done, finish_chunk, role_chunk, stream, text_chunk, usage_chunk,
};
use crate::support::tls::Identity;
use crate::support::{PROMPT, eventually};

fn with_usage() -> Value {
    let mut body = hello_stream();
    body["stream_options"] = json!({"include_usage": true});
    body
}

/// A chunk as this server writes it.
fn line(rest: &str) -> String {
    let head =
        r#"{"id":"chatcmpl-up","object":"chat.completion.chunk","created":1795000000,"model":"fake/m""#;
    format!("data: {head},{rest}}}\n\n")
}

fn delta(delta: &str, finish: &str) -> String {
    line(&format!(r#""choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]"#))
}

#[tokio::test]
async fn a_stream_has_the_documented_bytes() {
    let gateway = gateway(|_| stream(&["Hel", "lo"])).await;
    let response = gateway.ask(&hello_stream()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()["x-mk-model"], "fake/m");
    assert_eq!(response.headers()["x-mk-attempts"], "1");
    let whole = [
        delta(r#"{"role":"assistant","content":""}"#, "null"),
        delta(r#"{"content":"Hel"}"#, "null"),
        delta(r#"{"content":"lo"}"#, "null"),
        delta("{}", "\"stop\""),
    ];
    assert_eq!(response.text().await.unwrap(), whole.concat() + "data: [DONE]\n\n");
    let usage = r#""choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#;
    let asked = whole.concat() + &line(usage) + "data: [DONE]\n\n";
    assert_eq!(gateway.stream(&with_usage()).await, asked);
    let asks = gateway.provider.requests();
    assert!(asks.iter().all(|ask| ask.body["stream_options"] == json!({"include_usage": true})));
    assert!(gateway.booked().iter().all(|row| (row.1.as_str(), row.2, row.3) == ("ok", 7, 3)));
}

#[tokio::test]
async fn other_stream_options_are_forwarded() {
    let gateway = gateway(|_| stream(&["x"])).await;
    let mut body = hello_stream();
    body["stream_options"] = json!({"include_obfuscation": false, "include_usage": false});
    gateway.stream(&body).await;
    let options = json!({"include_usage": true, "include_obfuscation": false});
    assert_eq!(gateway.provider.requests()[0].body["stream_options"], options);
}

#[tokio::test]
async fn a_request_is_retried_without_stream_options_if_the_provider_rejects_them() {
    let gateway = gateway(|ask| match ask.body.get("stream_options") {
        Some(_) => Reply::status(400, &json!({"error": {"message": "unknown field stream_options"}})),
        None => Reply::Stream(vec![role_chunk(), text_chunk("four score"), finish_chunk("stop"), done()]),
    })
    .await;
    let list = chunks(&gateway.stream(&with_usage()).await);
    let usage = json!({"prompt_tokens": 6, "completion_tokens": 3, "total_tokens": 9, "estimated": true});
    assert_eq!(list.last().unwrap()["usage"], usage);
    assert_eq!(gateway.provider.requests().len(), 2);
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "ok".to_owned(), 6, 3)]);
}

#[tokio::test]
async fn provider_quirks_are_normalised() {
    // No role, content and finish reason in one chunk, usage in a content chunk, prompt filter results first, comments,
    // event names and ids, a non-standard finish reason, and content after it.
    let gateway = gateway(|_| {
        Reply::Stream(vec![
            StreamStep::Send(": PROCESSING\n\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\n\n".into()),
            StreamStep::Send("event: message\nid: 1\n".into()),
            StreamStep::Send(
                "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\r\n\r\n".into(),
            ),
            StreamStep::Send("data: {\"choices\":[{\"index\":0,\n".into()),
            StreamStep::Send("data: \"delta\":{\"content\":\" you\"},\"finish_reason\":\"eos\"}],\"fingerprint\":1}\n\n".into()),
            text_chunk(" there"),
            usage_chunk(),
            done(),
        ])
    })
    .await;
    let raw = gateway.stream(&with_usage()).await;
    let list = chunks(&raw);
    let choices: Vec<Value> = list.iter().map(|chunk| chunk["choices"].clone()).collect();
    let one = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    assert_eq!(
        choices,
        [
            one(json!({"role": "assistant", "content": ""}), Value::Null),
            one(json!({"content": "Hi"}), Value::Null),
            one(json!({"content": " you"}), Value::Null),
            one(json!({"content": " there"}), Value::Null),
            one(json!({}), json!("stop")),
            json!([]),
        ]
    );
    assert!(list.iter().all(|chunk| chunk["id"] == list[0]["id"] && chunk["model"] == "fake/m"));
    assert!(list[..5].iter().all(|chunk| chunk.get("usage").is_none()));
    assert_eq!(list[5]["usage"]["completion_tokens"], 3);
}

#[tokio::test]
async fn several_choices_and_tool_calls_are_streamed() {
    let gateway = gateway(|_| {
        let call = json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]);
        Reply::Stream(vec![
            chunk(&json!([{"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": null}])),
            chunk(&json!([{"index": 0, "delta": {}, "finish_reason": "length"}])),
            StreamStep::Pause(Duration::from_millis(700)),
            chunk(&json!([{"index": 1, "delta": {"role": "assistant", "tool_calls": call}, "finish_reason": null}])),
            chunk(&json!([{"index": 1, "delta": {}, "finish_reason": "tool_calls"}])),
            done(),
        ])
    })
    .await;
    let mut body = hello_stream();
    body["n"] = json!(2);
    let list = chunks(&gateway.stream(&body).await);
    let finishes: Vec<_> =
        list.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(finishes, ["length", "tool_calls"]);
    assert_eq!(list[1]["choices"][0]["delta"]["tool_calls"][0]["id"], "c");
}

#[tokio::test]
async fn a_malformed_chunk_is_dropped_from_a_complete_stream() {
    let gateway = gateway(|_| {
        Reply::Stream(vec![
            StreamStep::Send("data: {\"choices\": [{\"del\n\n".into()),
            role_chunk(),
            text_chunk("a"),
            StreamStep::Send("data: {\"choices\": 7}\n\ndata: \u{1}\n\n".into()),
            text_chunk("b"),
            finish_chunk("stop"),
            done(),
        ])
    })
    .await;
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "ab");
}

#[tokio::test]
async fn invalid_utf_8_replaces_only_one_character() {
    let gateway = gateway(|_| {
        let half = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"caf\xc3 au\"}}]}\n\n".to_vec();
        Reply::Stream(vec![
            role_chunk(),
            text_chunk("un "),
            StreamStep::Bytes(half),
            text_chunk(" lait"),
            finish_chunk("stop"),
            done(),
        ])
    })
    .await;
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "un caf\u{fffd} au lait");
    assert_eq!(gateway.booked()[0].1, "ok");
}

#[tokio::test]
async fn a_disconnect_stops_the_provider_and_bills_what_was_streamed() {
    let gateway = gateway(|_| {
        Reply::Stream(vec![role_chunk(), text_chunk("eight more"), text_chunk("12"), StreamStep::Stall])
    })
    .await;
    let mut body = gateway.ask(&hello_stream()).await.bytes_stream();
    let mut seen = String::new();
    while !seen.contains("12") {
        seen.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    let left = Instant::now();
    drop(body);
    eventually("the call is abandoned", || gateway.provider.abandoned() == 1).await;
    assert!(left.elapsed() < PROMPT);
    eventually("the attempt is booked", || !gateway.rows().is_empty()).await;
    assert_eq!(gateway.booked(), [("fake/m".to_owned(), "cancelled".to_owned(), 6, 3)]);
    assert_eq!(gateway.rows()[0].cost.unwrap().0, 12_000);
}

#[tokio::test]
async fn streams_and_disconnects_work_over_http_2() {
    let identity = Identity::new();
    let acceptor = identity.tls();
    let gateway = gateway_with(
        "",
        "",
        |setup| setup.options(|options| options.tls = Some(acceptor)),
        |ask| match ask.model.as_str() {
            "m" => Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall]),
            _ => stream(&["whole"]),
        },
    )
    .await;
    let client = identity.client().build().unwrap();
    let ask = |model: &str| {
        let mut body = hello_stream();
        body["model"] = json!(model);
        let base = gateway.server.base.replace("http://127.0.0.1", "https://localhost");
        let request = client.post(format!("{base}/inference/v1/chat/completions")).bearer_auth(&gateway.key);
        request.header("x-request-id", "req-1").json(&body).send()
    };
    let whole = ask("fake/n").await.unwrap();
    assert_eq!(whole.version(), reqwest::Version::HTTP_2);
    assert_eq!(text_of(&chunks(&whole.text().await.unwrap()), 0), "whole");
    let stalled = ask("fake/m").await.unwrap();
    drop(stalled);
    eventually("the call is abandoned", || gateway.provider.abandoned() == 1).await;
    eventually("both attempts are booked", || gateway.rows().len() == 2).await;
    assert_eq!(gateway.booked()[1].1, "cancelled");
}

#[tokio::test]
async fn a_slow_reader_applies_backpressure_to_the_provider() {
    const LINES: usize = 6000;
    let text = "x".repeat(16 * 1024);
    let gateway = gateway(move |_| {
        let StreamStep::Send(line) = text_chunk(&text) else { unreachable!() };
        Reply::Stream(vec![role_chunk(), StreamStep::Repeat(line, LINES), finish_chunk("stop"), done()])
    })
    .await;
    let body = hello_stream().to_string();
    let head = format!(
        "POST /inference/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        gateway.key,
        body.len()
    );
    let mut caller = TcpStream::connect(gateway.server.authority()).await.unwrap();
    caller.write_all(head.as_bytes()).await.unwrap();
    // The caller reads nothing, so the provider must come to a halt far below the 96 MB it has to send.
    let mut taken = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = gateway.provider.streamed();
        if now == taken && now > 0 {
            break;
        }
        taken = now;
    }
    assert!(taken < 32 * 1024 * 1024, "{taken} bytes were accepted for a caller who reads nothing");
    let mut rest = vec![0; 256 * 1024];
    let mut tail = Vec::new();
    while !tail.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n") {
        let count = caller.read(&mut rest).await.unwrap();
        assert!(count > 0, "ended early");
        tail.extend_from_slice(&rest[..count]);
        tail.drain(..tail.len().saturating_sub(100));
    }
    assert!(gateway.provider.streamed() > LINES * 16 * 1024);
}

#[tokio::test]
async fn the_connection_of_a_complete_stream_is_reused() {
    let gateway = gateway(|_| stream(&["a"])).await;
    for _ in 0..8 {
        gateway.stream(&hello_stream()).await;
        // The end of the provider's response follows its `[DONE]` and is read a moment later.
        eventually("the provider has finished", || gateway.provider.in_flight() == 0).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(gateway.provider.connections() <= 2, "{} connections", gateway.provider.connections());
}
