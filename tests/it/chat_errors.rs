//! How providers' failures are handled: statuses, bytes, retries, fallbacks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::chunks;
use crate::support::chat::{Gateway, gateway, gateway_with, hello, hello_stream, text_of};
use crate::support::provider::{
    ModelRequest, Reply, StreamStep, finish_chunk, role_chunk, stream, text_chunk,
};

/// Configures two fallbacks for `fake/m`.
const FALLBACKS: &str = r#"
[inference.fallbacks]
"fake/m" = ["fake/second", "fake/third"]
"#;

async fn with_fallbacks(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    gateway_with("", FALLBACKS, |setup| setup, script).await
}

fn failing(status: u16, error: &Value) -> Reply {
    Reply::status(status, &json!({"error": error}))
}

#[tokio::test]
async fn a_provider_failure_has_the_documented_bytes() {
    let gateway = gateway(|_| failing(401, &json!({"message": "bad key sk-secret"}))).await;
    let response = gateway.ask(&hello()).await;
    assert_eq!(response.status(), 502);
    assert_eq!(response.headers()["x-should-retry"], "false");
    assert_eq!(response.headers()["x-request-id"], "req-1");
    assert_eq!(response.headers()["x-ratelimit-remaining"], "59");
    let expected = concat!(
        r#"{"error":"Bad Gateway","message":"the provider fake rejected this server's key; "#,
        r#"its operator has to check it","code":"provider_auth_failed","request_id":"req-1","provider":"fake"}"#
    );
    assert_eq!(response.text().await.unwrap(), expected);
}

#[tokio::test]
async fn every_failure_has_its_status_and_code_streamed_or_not() {
    let long = format!("no {}\u{202e}\u{1b}[31m", "x".repeat(1000));
    let cases: Vec<(Reply, u16, &str)> = vec![
        (failing(400, &json!({"message": long, "code": "bad_thing"})), 400, "bad_thing"),
        (failing(422, &json!({"message": "no"})), 400, "provider_rejected"),
        (failing(400, &json!({"message": "API key not valid", "code": "x"})), 502, "provider_auth_failed"),
        (failing(403, &json!({"message": "no"})), 502, "provider_auth_failed"),
        (failing(402, &json!({"message": "no"})), 502, "provider_quota_exhausted"),
        (failing(429, &json!({"code": "insufficient_quota"})), 502, "provider_quota_exhausted"),
        (failing(404, &json!({"message": "no"})), 404, "model_not_found"),
        (failing(400, &json!({"code": "context_length_exceeded"})), 400, "context_length_exceeded"),
        (failing(400, &json!({"code": "content_filter"})), 400, "content_filter"),
        (failing(429, &json!({"message": "no"})), 503, "provider_rate_limited"),
        (failing(529, &json!({"message": "no"})), 503, "provider_overloaded"),
        (failing(500, &json!({"message": "no"})), 502, "provider_error"),
        (Reply::status(200, &json!({"error": {"code": 503}})), 503, "provider_overloaded"),
        (Reply::Raw(200, Vec::new(), "no json".to_owned()), 502, "provider_invalid_response"),
        (Reply::status(200, &json!({"choices": []})), 502, "provider_invalid_response"),
        (
            Reply::Raw(302, vec![("location", "http://127.0.0.1:9/".to_owned())], String::new()),
            502,
            "provider_invalid_response",
        ),
        (
            Reply::Stream(vec![StreamStep::Send("data: {\"error\":{\"code\":429}}\n\n".into())]),
            503,
            "provider_rate_limited",
        ),
        (
            Reply::Stream(vec![StreamStep::Send("data: nonsense\n\n".into())]),
            502,
            "provider_invalid_response",
        ),
        (Reply::Stream(vec![StreamStep::Send("data: [DONE]\n\n".into())]), 502, "provider_error"),
        (Reply::Cut, 502, "provider_error"),
        (Reply::Hang, 504, "provider_timeout"),
        (
            Reply::Stream(vec![StreamStep::Send(": hi\n\n".into()), StreamStep::Stall]),
            504,
            "provider_timeout",
        ),
    ];
    for (turn, status, code) in cases {
        let shown = format!("{turn:?}");
        let only_streams = matches!(turn, Reply::Stream(_));
        let timeouts = "first_byte_timeout = \"2s\"\nidle_timeout = \"2s\"";
        let gateway = gateway_with(timeouts, "", |setup| setup, move |_| turn.clone()).await;
        for body in [hello_stream(), hello()].iter().take(if only_streams { 1 } else { 2 }) {
            let response = gateway.ask(body).await;
            let headers = response.headers().clone();
            assert_eq!(response.status().as_u16(), status, "{shown}");
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["code"], code, "{shown}");
            assert_eq!(error["provider"], "fake", "{shown}");
            let hopeless = matches!(code, "provider_auth_failed" | "provider_quota_exhausted");
            assert_eq!(headers.contains_key("x-should-retry"), hopeless);
            assert_eq!(headers.contains_key("retry-after"), status == 503);
            let message = error["message"].as_str().unwrap();
            assert!(message.chars().count() < 400 && !message.contains(['\u{1b}', '\u{202e}']), "{message}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_reported() {
    let mut gateway = gateway(|_| Reply::Hang).await;
    let gone = crate::support::provider::FakeProvider::start(|_| Reply::Hang).await;
    let config = crate::support::chat::config(&gone.base_url, "", "");
    drop(gone);
    gateway.server = crate::support::server::Setup::new(config).start().await;
    gateway.key = gateway.server.key(mk::api::Service::Inference);
    // The port may close a moment after the provider is dropped.
    let mut answer = gateway.json(&hello()).await;
    for _ in 0..50 {
        if answer.1["code"] == "provider_unreachable" {
            break;
        }
        answer = gateway.json(&hello()).await;
    }
    assert_eq!((answer.0, &answer.1["code"]), (502, &json!("provider_unreachable")));
}

#[tokio::test]
async fn transient_failures_are_retried_after_the_provider_s_delay() {
    for body in [hello(), hello_stream()] {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let gateway = gateway_with(
            "",
            "",
            |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
            move |ask| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Reply::Raw(429, vec![("retry-after-ms", "200".to_owned())], "{}".to_owned()),
                1 => Reply::Stream(vec![StreamStep::Cut]),
                _ if ask.body["stream"] == true => stream(&["ok"]),
                _ => Reply::Text("ok".to_owned()),
            },
        )
        .await;
        let began = Instant::now();
        let response = gateway.ask(&body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-mk-attempts"], "3");
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert!(response.text().await.unwrap().contains("\"content\":\"ok\""));
        let outcomes: Vec<_> = gateway.rows().into_iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes.len(), 3);
        assert!(
            ["rate_limited", "cut", "ok"].iter().all(|one| outcomes.iter().any(|outcome| outcome == one))
        );
    }
}

#[tokio::test]
async fn a_provider_s_retry_after_reaches_the_caller() {
    let gateway = gateway(|_| Reply::Raw(429, vec![("retry-after", "77".to_owned())], "{}".to_owned())).await;
    let response = gateway.ask(&hello()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"77".parse().unwrap())
    );
}

#[tokio::test]
async fn fallbacks_are_tried_in_order_and_named_in_the_response() {
    for body in [hello(), hello_stream()] {
        let gateway = with_fallbacks(|ask| match ask.model.as_str() {
            "m" => failing(400, &json!({"code": "context_length_exceeded"})),
            "second" => failing(401, &json!({})),
            _ if ask.body["stream"] == true => stream(&["hello"]),
            _ => Reply::Text("hello".to_owned()),
        })
        .await;
        let response = gateway.ask(&body).await;
        assert_eq!(response.headers()["x-mk-model"], "fake/third");
        assert_eq!(response.headers()["x-mk-attempts"], "3");
        let text = response.text().await.unwrap();
        assert!(text.contains(r#""model":"fake/third""#) && !text.contains("fake/m\""), "{text}");
        let mut booked: Vec<_> =
            gateway.rows().into_iter().map(|row| (row.model.to_string(), row.outcome.to_string())).collect();
        booked.sort();
        let row = |model: &str, outcome: &str| (model.to_owned(), outcome.to_owned());
        assert_eq!(
            booked,
            [row("fake/m", "context_overflow"), row("fake/second", "auth_failed"), row("fake/third", "ok")]
        );
    }
}

#[tokio::test]
async fn content_filters_and_bad_requests_never_trigger_a_fallback() {
    for (error, code) in
        [(json!({"code": "content_filter"}), "content_filter"), (json!({"code": "bad"}), "bad")]
    {
        let gateway = with_fallbacks(move |ask| match ask.model.as_str() {
            "m" => failing(400, &error),
            _ => Reply::Text("hello".to_owned()),
        })
        .await;
        let (status, body) = gateway.json(&hello()).await;
        assert_eq!((status, body["code"].as_str()), (400, Some(code)));
        assert_eq!(gateway.provider.requests().len(), 1);
    }
    let filtered = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null},
                          "finish_reason": "content_filter"}]});
    let gateway = with_fallbacks(move |_| Reply::status(200, &filtered)).await;
    let (status, body) = gateway.json(&hello()).await;
    assert_eq!((status, body["choices"][0]["finish_reason"].as_str()), (200, Some("content_filter")));
    assert_eq!(gateway.provider.requests().len(), 1);
}

#[tokio::test]
async fn the_parameter_named_by_a_provider_is_forwarded() {
    let gateway = gateway(|ask| {
        let param = if ask.text() == "odd" { "not\u{1b} a path" } else { "messages[0].content" };
        failing(
            400,
            &json!({"message": "too odd", "type": "invalid_request_error", "param": param, "code": "odd"}),
        )
    })
    .await;
    let expected = concat!(
        r#"{"error":"Bad Request","message":"the provider fake refused the request: too odd","code":"odd","#,
        r#""request_id":"req-1","param":"messages[0].content","provider":"fake"}"#
    );
    assert_eq!(gateway.ask(&hello()).await.text().await.unwrap(), expected);
    let mut body = hello();
    body["messages"][0]["content"] = json!("odd");
    let (status, answer) = gateway.json(&body).await;
    assert_eq!((status, answer["code"].as_str(), answer.get("param")), (400, Some("odd"), None));
}

#[tokio::test]
async fn a_silent_model_is_abandoned_only_if_it_has_a_fallback() {
    let script = |ask: &ModelRequest| match ask.model.as_str() {
        "m" => Reply::Stream(vec![
            StreamStep::Pause(Duration::from_secs(6)),
            role_chunk(),
            text_chunk("slow"),
            finish_chunk("stop"),
        ]),
        _ => stream(&["quick"]),
    };
    let patience = format!("[inference]\nfirst_token_timeout_with_fallback = \"2s\"\n{FALLBACKS}");
    let gateway = gateway_with("", &patience, |setup| setup, script).await;
    assert_eq!(text_of(&chunks(&gateway.stream(&hello_stream()).await), 0), "quick");
    let mut outcomes: Vec<_> = gateway.rows().into_iter().map(|row| row.outcome).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["ok", "timeout"]);
    crate::support::eventually("the silent call is cancelled", || gateway.provider.in_flight() == 0).await;
    let alone = crate::support::chat::gateway(script).await;
    assert_eq!(text_of(&chunks(&alone.stream(&hello_stream()).await), 0), "slow");
}

#[tokio::test]
async fn a_long_retry_after_is_skipped_if_a_fallback_can_answer() {
    let gateway = gateway_with(
        "",
        FALLBACKS,
        |setup| setup.config(|config| config.providers[0].call_policy.retries = 2),
        |ask| match ask.model.as_str() {
            "m" => Reply::Raw(429, vec![("retry-after", "20".to_owned())], "{}".to_owned()),
            _ => Reply::Text("hello".to_owned()),
        },
    )
    .await;
    let began = Instant::now();
    let response = gateway.ask(&hello()).await;
    assert_eq!(response.headers()["x-mk-model"], "fake/second");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(gateway.provider.requests_for("m").len(), 1);
}

#[tokio::test]
async fn if_all_models_fail_the_requested_model_s_error_is_returned() {
    let gateway = with_fallbacks(|ask| match ask.model.as_str() {
        "m" => failing(503, &json!({})),
        _ => failing(401, &json!({})),
    })
    .await;
    let response = gateway.ask(&hello()).await;
    assert!(response.headers().get("x-should-retry").is_none());
    assert_eq!(response.headers()["x-mk-attempts"], "3");
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "provider_overloaded");
    assert_eq!(gateway.provider.requests().len(), 3);
}

#[tokio::test]
async fn what_a_format_cannot_express_is_refused_without_a_call() {
    let others: Vec<String> = (1..=6).map(|number| format!("\"claude/c{number}\"")).collect();
    let others = others.join(", ");
    let rest = format!(
        r#"
[providers.claude]
kind = "anthropic"
base_url = "{{base_url}}"
[inference.fallbacks]
"fake/m" = [{others}, "fake/last"]
"claude/c" = [{others}]
"#
    );
    let gateway = gateway_with(
        "",
        &rest,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" => failing(503, &json!({})),
            _ => Reply::Text("hello".to_owned()),
        },
    )
    .await;
    for stream in [false, true] {
        let mut body = hello();
        (body["model"], body["seed"], body["stream"]) = (json!("claude/c"), json!(7), json!(stream));
        let response = gateway.ask(&body).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-mk-attempts"]),
            (400, &"0".parse().unwrap())
        );
        let told: Value = response.json().await.unwrap();
        assert_eq!(
            (&told["code"], &told["param"]),
            (&json!("unsupported_parameter"), &json!("seed")),
            "{told}"
        );
    }
    assert_eq!(gateway.rows().len(), 0, "nothing is booked");

    // Six models that are not called leave all calls to the one that can be.
    let mut body = hello();
    body["seed"] = json!(7);
    let response = gateway.ask(&body).await;
    assert_eq!(
        (&response.headers()["x-mk-model"], &response.headers()["x-mk-attempts"]),
        (&"fake/last".parse().unwrap(), &"2".parse().unwrap())
    );
    assert_eq!((gateway.rows().len(), gateway.provider.requests().len()), (2, 2));
}

#[tokio::test]
async fn a_key_s_model_restriction_applies_to_fallbacks() {
    let gateway = with_fallbacks(|ask| match ask.model.as_str() {
        "m" => failing(503, &json!({})),
        _ => Reply::Text("hello".to_owned()),
    })
    .await;
    let (key, _) = gateway.server.key_with(mk::api::Service::Inference, |new| {
        new.models = vec!["fake/m".to_owned(), "fake/third".to_owned()];
    });
    let response = gateway.post_as(&key, hello().to_string()).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "fake/third");
    assert_eq!(gateway.provider.requests_for("second").len(), 0);
}

#[tokio::test]
async fn a_provider_key_echoed_in_an_error_is_redacted() {
    const KEY: &str = "sk-proj-0123456789abcdef";
    let error = json!({"message": format!("the key {KEY} may not do this"), "code": KEY, "param": KEY});
    let mut within = error.clone();
    within["code"] = json!(400);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, KEY).unwrap();
    let gateway = gateway_with(
        &format!("api_key_file = {:?}", file.display().to_string()),
        "",
        |setup| setup,
        move |ask| match ask.body["messages"][0]["content"].as_str() {
            Some("break") => {
                let error = StreamStep::Send(format!("data: {}\n\n", json!({"error": within})));
                Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::APART, error])
            }
            Some("disguise") => Reply::status(200, &json!({"error": within})),
            _ => failing(400, &error),
        },
    )
    .await;
    for (text, streamed) in [("refuse", false), ("refuse", true), ("disguise", false), ("break", true)] {
        let mut body = if streamed { hello_stream() } else { hello() };
        body["messages"][0]["content"] = json!(text);
        let told = gateway.ask(&body).await.text().await.unwrap();
        assert!(told.contains("the key ... may not do this"), "{told}");
        assert!(!told.contains("sk-proj"), "{told}");
    }
}
