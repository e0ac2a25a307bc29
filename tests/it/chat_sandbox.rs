//! Chat with the sandbox's simulated models: answers, streaming, simulated failures, unsupported parameters.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::{Gateway, chunks, gateway, gateway_with, text_of};
use crate::support::provider::Reply;

fn say(text: &str, more: &Value) -> Value {
    let mut body = json!({"model": "sandbox/alpha", "messages": [{"role": "user", "content": text}]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

const CAPITAL: &str = "What is the capital of Australia?";
const ANSWER: &str = "Canberra. (A simulated answer of the sandbox.)";

async fn sandbox() -> Gateway {
    gateway(|_| Reply::Hang).await
}

#[tokio::test]
async fn the_sandbox_answers_at_once_or_word_by_word() {
    let gateway = sandbox().await;
    let tuned = json!({"temperature": 0.5, "max_tokens": 100, "seed": 7, "n": 1, "tools": [], "stop": null});
    let (status, body) = gateway.json(&say(CAPITAL, &tuned)).await;
    assert_eq!((status, &body["choices"][0]["message"]["content"]), (200, &json!(ANSWER)));
    assert_eq!((&body["model"], &body["system_fingerprint"]), (&json!("sandbox/alpha"), &json!("sandbox")));
    assert_eq!(body["mode"], "sandbox");
    assert!(body["usage"].get("estimated").is_none());
    let list = chunks(&gateway.stream(&say(CAPITAL, &json!({"stream": true}))).await);
    assert_eq!(text_of(&list, 0), ANSWER);
    assert!(
        list.iter().filter(|chunk| !chunk["choices"][0].is_null()).all(|chunk| chunk["mode"] == "sandbox")
    );
    assert_eq!(list.len(), 2 + ANSWER.split(' ').count());
    assert!(gateway.rows().iter().all(|row| row.outcome == "ok" && row.cost.unwrap().0 == 0));
    let parts = json!([{"type": "text", "text": "What is "}, {"type": "text", "text": "6 × 7?"}]);
    let (_, body) = gateway.json(&say("", &json!({"messages": [{"role": "user", "content": parts}]}))).await;
    assert!(body["choices"][0]["message"]["content"].as_str().unwrap().starts_with("42. "));
    let (_, body) = gateway.json(&say("Write a poem.", &json!({}))).await;
    assert!(body["choices"][0]["message"]["content"].as_str().unwrap().contains("simulated"));
}

#[tokio::test]
async fn sandbox_answers_respect_the_token_limit() {
    let gateway = sandbox().await;
    for (limits, text, reason) in [
        (json!({"max_tokens": 1}), "Canb", "length"),
        (json!({"max_completion_tokens": 2, "max_tokens": 9}), "Canberra", "length"),
        (json!({"max_completion_tokens": 12}), ANSWER, "stop"),
    ] {
        let (_, body) = gateway.json(&say(CAPITAL, &limits)).await;
        let choice = &body["choices"][0];
        assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(text), &json!(reason)));
        assert_eq!(body["usage"]["completion_tokens"], text.len().div_ceil(4));
        let mut streamed = say(CAPITAL, &limits);
        streamed["stream"] = json!(true);
        let list = chunks(&gateway.stream(&streamed).await);
        let end = list.iter().rfind(|chunk| chunk["choices"][0].is_object()).unwrap();
        assert_eq!(
            (text_of(&list, 0), &end["choices"][0]["finish_reason"]),
            (text.to_owned(), &json!(reason))
        );
    }
}

#[tokio::test]
async fn unsupported_sandbox_parameters_are_rejected_by_name() {
    let gateway = sandbox().await;
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    for (name, value) in [
        ("tools", tools),
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("response_format", json!({"type": "json_object"})),
        ("stop", json!(["x"])),
        ("frobnicate", json!(1)),
    ] {
        for stream in [true, false] {
            let (status, body) = gateway.json(&say(CAPITAL, &json!({name: value, "stream": stream}))).await;
            assert_eq!((status, &body["code"]), (400, &json!("unsupported_parameter")));
            assert_eq!(body["param"], name);
        }
    }
    let image = json!([{"type": "image_url", "image_url": {"url": "data:,"}}]);
    let (_, body) = gateway.json(&say("", &json!({"messages": [{"role": "user", "content": image}]}))).await;
    assert_eq!(body["param"], "messages[0].content[0].type");
}

#[tokio::test]
async fn trigger_words_make_the_sandbox_fail_like_a_provider() {
    let gateway = gateway_with(
        "",
        "",
        |setup| {
            setup.config(|config| {
                for provider in &mut config.providers {
                    provider.call_policy.retries = 0;
                    provider.call_policy.idle_timeout = Duration::from_secs(2);
                    provider.call_policy.total_timeout = Duration::from_secs(2);
                }
            })
        },
        |_| Reply::Hang,
    )
    .await;
    for (word, status, code) in [
        ("fail", 502, "provider_error"),
        ("refuse", 400, "content_filter"),
        ("garbage", 502, "provider_error"),
        ("stall", 504, "provider_timeout"),
    ] {
        let text = format!("{CAPITAL} [sandbox:{word}]");
        let (found, body) = gateway.json(&say(&text, &json!({}))).await;
        assert_eq!((found, body["code"].as_str()), (status, Some(code)), "{word}");
        assert_eq!(body["provider"], "sandbox");
    }
    for (word, status) in [("fail", 502), ("refuse", 400)] {
        let text = format!("{CAPITAL} [sandbox:{word}]");
        assert_eq!(gateway.json(&say(&text, &json!({"stream": true}))).await.0, status, "{word}");
    }
    let began = Instant::now();
    for (word, code) in [("garbage", "provider_invalid_response"), ("stall", "provider_timeout")] {
        let text = format!("{CAPITAL} [sandbox:{word}]");
        let raw = gateway.stream(&say(&text, &json!({"stream": true}))).await;
        assert!(raw.contains(&format!("\"code\":\"{code}\"")), "{word}: {raw}");
        assert!(text_of(&chunks(&raw), 0).len() < ANSWER.len());
    }
    assert!(began.elapsed() < Duration::from_secs(15));
}
