//! What becomes of providers' failures: statuses, bytes, retries, fallbacks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::chat::chunks;
use crate::support::chat::{Desk, desk, desk_with, hello, hello_stream, text_of};
use crate::support::provider::{Ask, Beat, Turn, finish_chunk, role_chunk, stream, text_chunk};

/// Two fallbacks of `fake/m`, one set for the model's provider, one for chat completions.
const FALLBACKS: &str = r#"
[inference.fallbacks]
"fake/m" = ["fake/second", "fake/third"]
"#;

async fn with_fallbacks(script: impl Fn(&Ask) -> Turn + Send + Sync + 'static) -> Desk {
    desk_with("", FALLBACKS, |setup| setup, script).await
}

fn failing(status: u16, error: &Value) -> Turn {
    Turn::status(status, &json!({"error": error}))
}

#[tokio::test]
async fn a_failure_byte_for_byte() {
    let desk = desk(|_| failing(401, &json!({"message": "bad key sk-secret"}))).await;
    let response = desk.ask(&hello()).await;
    assert_eq!(response.status(), 502);
    assert_eq!(response.headers()["x-should-retry"], "false");
    assert_eq!(response.headers()["x-request-id"], "req-1");
    assert_eq!(response.headers()["x-ratelimit-remaining"], "59");
    let expected = concat!(
        r#"{"error":"Bad Gateway","message":"the provider fake does not accept this server's key; "#,
        r#"its operator has to check it","code":"provider_auth_failed","request_id":"req-1","provider":"fake"}"#
    );
    assert_eq!(response.text().await.unwrap(), expected);
}

#[tokio::test]
async fn every_failure_has_its_status_streamed_or_not() {
    let long = format!("no {}\u{202e}\u{1b}[31m", "x".repeat(1000));
    let cases: Vec<(Turn, u16, &str)> = vec![
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
        (Turn::status(200, &json!({"error": {"code": 503}})), 503, "provider_overloaded"),
        (Turn::Raw(200, Vec::new(), "no json".to_owned()), 502, "provider_invalid_response"),
        (Turn::status(200, &json!({"choices": []})), 502, "provider_invalid_response"),
        (
            Turn::Raw(302, vec![("location", "http://127.0.0.1:9/".to_owned())], String::new()),
            502,
            "provider_invalid_response",
        ),
        (
            Turn::Stream(vec![Beat::Send("data: {\"error\":{\"code\":429}}\n\n".into())]),
            503,
            "provider_rate_limited",
        ),
        (Turn::Stream(vec![Beat::Send("data: nonsense\n\n".into())]), 502, "provider_invalid_response"),
        (Turn::Stream(vec![Beat::Send("data: [DONE]\n\n".into())]), 502, "provider_error"),
        (Turn::Cut, 502, "provider_error"),
        (Turn::Hang, 504, "provider_timeout"),
        (Turn::Stream(vec![Beat::Send(": hi\n\n".into()), Beat::Stall]), 504, "provider_timeout"),
    ];
    for (turn, status, code) in cases {
        let shown = format!("{turn:?}");
        let only_streams = matches!(turn, Turn::Stream(_));
        let timeouts = "first_byte_timeout = \"2s\"\nidle_timeout = \"2s\"";
        let desk = desk_with(timeouts, "", |setup| setup, move |_| turn.clone()).await;
        for body in [hello_stream(), hello()].iter().take(if only_streams { 1 } else { 2 }) {
            let response = desk.ask(body).await;
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
async fn nobody_at_the_address() {
    let mut desk = desk(|_| Turn::Hang).await;
    let gone = crate::support::provider::FakeProvider::start(|_| Turn::Hang).await;
    let config = crate::support::chat::config(&gone.base_url, "", "");
    drop(gone);
    desk.server = crate::support::server::Setup::new(config).start().await;
    desk.key = desk.server.key(mk::api::Service::Inference);
    // The port may close a moment later than the provider is dropped.
    let mut answer = desk.json(&hello()).await;
    for _ in 0..50 {
        if answer.1["code"] == "provider_unreachable" {
            break;
        }
        answer = desk.json(&hello()).await;
    }
    assert_eq!((answer.0, &answer.1["code"]), (502, &json!("provider_unreachable")));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_as_the_provider_asks() {
    for body in [hello(), hello_stream()] {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let desk = desk_with(
            "",
            "",
            |setup| setup.config(|config| config.providers[0].retries = 2),
            move |ask| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Turn::Raw(429, vec![("retry-after-ms", "200".to_owned())], "{}".to_owned()),
                1 => Turn::Stream(vec![Beat::Cut]),
                _ if ask.body["stream"] == true => stream(&["ok"]),
                _ => Turn::Text("ok".to_owned()),
            },
        )
        .await;
        let began = Instant::now();
        let response = desk.ask(&body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-mk-attempts"], "3");
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert!(response.text().await.unwrap().contains("\"content\":\"ok\""));
        let outcomes: Vec<_> = desk.rows().into_iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes.len(), 3);
        assert!(
            ["rate_limited", "cut", "ok"].iter().all(|one| outcomes.iter().any(|outcome| outcome == one))
        );
    }
}

#[tokio::test]
async fn retry_after_of_a_provider_reaches_the_caller() {
    let desk = desk(|_| Turn::Raw(429, vec![("retry-after", "77".to_owned())], "{}".to_owned())).await;
    let response = desk.ask(&hello()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"77".parse().unwrap())
    );
}

#[tokio::test]
async fn fallbacks_answer_in_their_order_and_by_their_name() {
    for body in [hello(), hello_stream()] {
        let desk = with_fallbacks(|ask| match ask.model.as_str() {
            "m" => failing(400, &json!({"code": "context_length_exceeded"})),
            "second" => failing(401, &json!({})),
            _ if ask.body["stream"] == true => stream(&["hello"]),
            _ => Turn::Text("hello".to_owned()),
        })
        .await;
        let response = desk.ask(&body).await;
        assert_eq!(response.headers()["x-mk-model"], "fake/third");
        assert_eq!(response.headers()["x-mk-attempts"], "3");
        let text = response.text().await.unwrap();
        assert!(text.contains(r#""model":"fake/third""#) && !text.contains("fake/m\""), "{text}");
        let mut booked: Vec<_> =
            desk.rows().into_iter().map(|row| (row.model.to_string(), row.outcome.to_string())).collect();
        booked.sort();
        let row = |model: &str, outcome: &str| (model.to_owned(), outcome.to_owned());
        assert_eq!(
            booked,
            [row("fake/m", "context_overflow"), row("fake/second", "auth_failed"), row("fake/third", "ok")]
        );
    }
}

#[tokio::test]
async fn a_refusal_and_a_wrong_request_are_never_routed_around() {
    for (error, code) in
        [(json!({"code": "content_filter"}), "content_filter"), (json!({"code": "bad"}), "bad")]
    {
        let desk = with_fallbacks(move |ask| match ask.model.as_str() {
            "m" => failing(400, &error),
            _ => Turn::Text("hello".to_owned()),
        })
        .await;
        let (status, body) = desk.json(&hello()).await;
        assert_eq!((status, body["code"].as_str()), (400, Some(code)));
        assert_eq!(desk.provider.asks().len(), 1);
    }
    let filtered = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null},
                          "finish_reason": "content_filter"}]});
    let desk = with_fallbacks(move |_| Turn::status(200, &filtered)).await;
    let (status, body) = desk.json(&hello()).await;
    assert_eq!((status, body["choices"][0]["finish_reason"].as_str()), (200, Some("content_filter")));
    assert_eq!(desk.provider.asks().len(), 1);
}

#[tokio::test]
async fn the_parameter_that_a_provider_names_is_named() {
    let desk = desk(|ask| {
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
    assert_eq!(desk.ask(&hello()).await.text().await.unwrap(), expected);
    let mut body = hello();
    body["messages"][0]["content"] = json!("odd");
    let (status, answer) = desk.json(&body).await;
    assert_eq!((status, answer["code"].as_str(), answer.get("param")), (400, Some("odd"), None));
}

#[tokio::test]
async fn a_silent_model_is_left_for_its_fallback_but_an_only_one_is_waited_for() {
    let script = |ask: &Ask| match ask.model.as_str() {
        "m" => Turn::Stream(vec![
            Beat::Pause(Duration::from_secs(6)),
            role_chunk(),
            text_chunk("slow"),
            finish_chunk("stop"),
        ]),
        _ => stream(&["quick"]),
    };
    let patience = format!("[inference]\nfirst_token_timeout_with_fallback = \"2s\"\n{FALLBACKS}");
    let desk = desk_with("", &patience, |setup| setup, script).await;
    assert_eq!(text_of(&chunks(&desk.stream(&hello_stream()).await), 0), "quick");
    let mut outcomes: Vec<_> = desk.rows().into_iter().map(|row| row.outcome).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["ok", "timeout"]);
    crate::support::eventually("the silent call is given up", || desk.provider.in_flight() == 0).await;
    let alone = crate::support::chat::desk(script).await;
    assert_eq!(text_of(&chunks(&alone.stream(&hello_stream()).await), 0), "slow");
}

#[tokio::test]
async fn a_long_pause_is_not_waited_out_where_another_model_can_answer() {
    let desk = desk_with(
        "",
        FALLBACKS,
        |setup| setup.config(|config| config.providers[0].retries = 2),
        |ask| match ask.model.as_str() {
            "m" => Turn::Raw(429, vec![("retry-after", "20".to_owned())], "{}".to_owned()),
            _ => Turn::Text("hello".to_owned()),
        },
    )
    .await;
    let began = Instant::now();
    let response = desk.ask(&hello()).await;
    assert_eq!(response.headers()["x-mk-model"], "fake/second");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(desk.provider.asks_of("m").len(), 1);
}

#[tokio::test]
async fn when_all_fail_the_model_that_was_asked_for_tells_why() {
    let desk = with_fallbacks(|ask| match ask.model.as_str() {
        "m" => failing(503, &json!({})),
        _ => failing(401, &json!({})),
    })
    .await;
    let response = desk.ask(&hello()).await;
    assert!(response.headers().get("x-should-retry").is_none());
    assert_eq!(response.headers()["x-mk-attempts"], "3");
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "provider_overloaded");
    assert_eq!(desk.provider.asks().len(), 3);
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
    let desk = desk_with(
        "",
        &rest,
        |setup| setup,
        |ask| match ask.model.as_str() {
            "m" => failing(503, &json!({})),
            _ => Turn::Text("hello".to_owned()),
        },
    )
    .await;
    for stream in [false, true] {
        let mut body = hello();
        (body["model"], body["seed"], body["stream"]) = (json!("claude/c"), json!(7), json!(stream));
        let response = desk.ask(&body).await;
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
    assert_eq!(desk.rows().len(), 0, "nothing is booked");

    // Six models that are not called leave all calls to the one that can be.
    let mut body = hello();
    body["seed"] = json!(7);
    let response = desk.ask(&body).await;
    assert_eq!(
        (&response.headers()["x-mk-model"], &response.headers()["x-mk-attempts"]),
        (&"fake/last".parse().unwrap(), &"2".parse().unwrap())
    );
    assert_eq!((desk.rows().len(), desk.provider.asks().len()), (2, 2));
}

#[tokio::test]
async fn a_key_s_models_hold_for_fallbacks_too() {
    let desk = with_fallbacks(|ask| match ask.model.as_str() {
        "m" => failing(503, &json!({})),
        _ => Turn::Text("hello".to_owned()),
    })
    .await;
    let (key, _) = desk.server.key_with(mk::api::Service::Inference, |new| {
        new.models = vec!["fake/m".to_owned(), "fake/third".to_owned()];
    });
    let response = desk.post_as(&key, hello().to_string()).send().await.unwrap();
    assert_eq!(response.headers()["x-mk-model"], "fake/third");
    assert_eq!(desk.provider.asks_of("second").len(), 0);
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_reaches_nobody() {
    const KEY: &str = "sk-proj-0123456789abcdef";
    let error = json!({"message": format!("the key {KEY} may not do this"), "code": KEY, "param": KEY});
    let mut within = error.clone();
    within["code"] = json!(400);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, KEY).unwrap();
    let desk = desk_with(
        &format!("api_key_file = {:?}", file.display().to_string()),
        "",
        |setup| setup,
        move |ask| match ask.body["messages"][0]["content"].as_str() {
            Some("break") => {
                let error = Beat::Send(format!("data: {}\n\n", json!({"error": within})));
                Turn::Stream(vec![role_chunk(), text_chunk("a"), Beat::APART, error])
            }
            Some("disguise") => Turn::status(200, &json!({"error": within})),
            _ => failing(400, &error),
        },
    )
    .await;
    for (text, streamed) in [("refuse", false), ("refuse", true), ("disguise", false), ("break", true)] {
        let mut body = if streamed { hello_stream() } else { hello() };
        body["messages"][0]["content"] = json!(text);
        let told = desk.ask(&body).await.text().await.unwrap();
        assert!(told.contains("the key ... may not do this"), "{told}");
        assert!(!told.contains("sk-proj"), "{told}");
    }
}
