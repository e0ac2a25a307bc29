//! Calls over real sockets.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::providers::scripted::{Scripted, Step, completion, content, message, response};
use crate::providers::{Chat, Effort, Message, Prompt, Role, Schema};
use crate::secret::SecretString;

fn provider(base_url: &str, change: impl FnOnce(&mut Settings)) -> Provider {
    let mut settings = Settings::new("acme", Kind::OpenAi, base_url);
    settings.api_key = Some(SecretString::from("sk-secret"));
    change(&mut settings);
    Provider::new(settings, Clock::system()).unwrap()
}

fn chat() -> Chat {
    let messages = vec![Message { role: Role::User, content: "Two plus two?".into() }];
    let schema = Some(Schema::new("answer", json!({"type": "object"})));
    Chat { messages, temperature: Some(0.0), max_tokens: Some(10), schema, effort: Effort::Lowest }
}

async fn ask(provider: &Provider) -> Result<String, Failure> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let permit = provider.admit(&"key_1".into(), Instant::now(), deadline).await?.0;
    let answer = provider.complete(permit, &Prompt::from(chat()), "m/1", deadline).await;
    answer.map(|answer| answer.text).map_err(|failed| failed.failure)
}

fn plain(text: &str) -> Vec<Step> {
    vec![Step::Send(text.as_bytes().to_vec())]
}

#[tokio::test]
async fn a_call_carries_key_agent_and_body() {
    let server = Scripted::start(vec![completion("4")]).await;
    assert_eq!(ask(&provider(&server.base_url, |_| {})).await, Ok("4".to_owned()));
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    for header in ["authorization: Bearer sk-secret", "content-type: application/json", "user-agent: mk/"] {
        assert!(request.contains(header), "{request}");
    }
    assert!(!request.contains("accept-encoding"), "{request}");
    assert!(request.ends_with(r#""schema":{"type":"object"}}}}"#), "{request}");
}

#[tokio::test]
async fn the_key_is_sent_in_the_configured_header_and_nowhere_else() {
    for (kind, header, expected) in [
        (Kind::OpenAi, "api-key", "api-key: sk-secret\r\n"),
        (Kind::Anthropic, "authorization", "authorization: Bearer sk-secret\r\n"),
    ] {
        let server =
            Scripted::start(vec![if kind == Kind::OpenAi { completion("4") } else { message("4") }]).await;
        let provider = provider(&server.base_url, |settings| {
            settings.kind = kind;
            settings.api_key_header = Settings::parse_key_header(header);
        });
        assert_eq!(ask(&provider).await, Ok("4".to_owned()));
        let request = server.requests().remove(0);
        assert!(request.contains(expected) && request.matches("sk-secret").count() == 1, "{request}");
    }
    for taken in ["Content-Type", "host", "transfer-encoding", "", "a b", "ä"] {
        assert_eq!(Settings::parse_key_header(taken), None, "{taken}");
    }
}

#[tokio::test]
async fn each_format_has_its_own_path_and_key_header() {
    let server = Scripted::start(vec![message("4"), content("4")]).await;
    for kind in [Kind::Anthropic, Kind::Google] {
        let provider = provider(&server.base_url, |settings| settings.kind = kind);
        assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    }
    let requests = server.requests();
    let expected = [
        ("POST /v1/messages HTTP/1.1\r\n", "x-api-key: sk-secret\r\n"),
        ("POST /v1/models/m%2F1:generateContent HTTP/1.1\r\n", "x-goog-api-key: sk-secret\r\n"),
    ];
    for (request, (line, key)) in requests.iter().zip(expected) {
        assert!(request.starts_with(line), "{request}");
        assert!(request.contains(key) && !request.contains("authorization"), "{request}");
    }
    assert!(requests[0].contains("anthropic-version: 2023-06-01\r\n"), "{}", requests[0]);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Scripted::start(vec![completion("4")]).await;
    let location = format!("location: {}\r\n", elsewhere.base_url);
    let server = Scripted::start(vec![response(307, &location, "")]).await;
    assert_eq!(ask(&provider(&server.base_url, |_| {})).await, Err(Failure::Malformed));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn silence_before_the_first_byte_times_out() {
    let short = |settings: &mut Settings| settings.call_policy.first_byte_timeout = Duration::from_millis(50);
    let server = Scripted::start(vec![vec![Step::Hang]]).await;
    assert_eq!(ask(&provider(&server.base_url, short)).await, Err(Failure::Timeout));
    // Headers alone are not the first byte of the body.
    let mut head = plain("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n");
    head.push(Step::Hang);
    let server = Scripted::start(vec![head]).await;
    assert_eq!(ask(&provider(&server.base_url, short)).await, Err(Failure::Timeout));
}

#[tokio::test]
async fn silence_within_the_body_times_out() {
    let mut turn = plain("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choi");
    turn.push(Step::Hang);
    let server = Scripted::start(vec![turn]).await;
    let provider =
        provider(&server.base_url, |settings| settings.call_policy.idle_timeout = Duration::from_millis(50));
    assert_eq!(ask(&provider).await, Err(Failure::Timeout));
}

#[tokio::test]
async fn a_body_that_trickles_in_ends_at_the_total_timeout() {
    let mut turn = plain("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
    for _ in 0..200 {
        turn.extend([Step::Send(b" ".to_vec()), Step::Pause(Duration::from_millis(10))]);
    }
    let server = Scripted::start(vec![turn]).await;
    let provider = provider(&server.base_url, |settings| {
        settings.call_policy.total_timeout = Duration::from_millis(150);
    });
    assert_eq!(ask(&provider).await, Err(Failure::Timeout));
}

#[tokio::test]
async fn a_body_that_ends_early_is_cut() {
    for turn in [
        plain("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choi"),
        plain("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n"),
        plain("HTTP/1.1 200 OK\r\ncont"),
        Vec::new(),
    ] {
        let server = Scripted::start(vec![turn]).await;
        assert_eq!(ask(&provider(&server.base_url, |_| {})).await, Err(Failure::Cut));
    }
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read() {
    let announced = plain("HTTP/1.1 200 OK\r\ncontent-length: 9000000\r\n\r\n");
    let mut counted = plain("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    counted.extend(vec![Step::Send(vec![b' '; 1 << 20]); 9]);
    for (turn, least) in [(announced, 9_000_000), (counted, 8 << 20)] {
        let server = Scripted::start(vec![turn]).await;
        match ask(&provider(&server.base_url, |_| {})).await {
            Err(Failure::TooLarge { bytes }) => assert!(bytes >= least && bytes <= 10_000_000, "{bytes}"),
            other => panic!("{other:?}"),
        }
    }
    let error = plain("HTTP/1.1 500 Oh\r\ncontent-length: 9000000\r\n\r\n");
    let server = Scripted::start(vec![error]).await;
    assert_eq!(ask(&provider(&server.base_url, |_| {})).await, Err(Failure::Malformed));
}

#[tokio::test]
async fn an_address_without_a_server_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(ask(&provider(&address, |_| {})).await, Err(Failure::Unreachable));
    // A server that does not speak TLS.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}/v1", listener.local_addr().unwrap());
    let peer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example ready\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
    });
    assert_eq!(ask(&provider(&address, |_| {})).await, Err(Failure::Unreachable));
    peer.await.unwrap();
}

#[tokio::test]
async fn a_refused_schema_is_replaced_by_json_mode_and_remembered() {
    let refusal = r#"{"error":{"message":"'response_format' of type 'json_schema' is not supported"}}"#;
    let server = Scripted::start(vec![response(400, "", refusal), completion("4"), completion("5")]).await;
    let provider = provider(&server.base_url, |_| {});
    assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    assert_eq!(ask(&provider).await, Ok("5".to_owned()));
    let weak: Vec<bool> =
        server.requests().iter().map(|request| request.contains(r#"{"type":"json_object"}"#)).collect();
    assert_eq!(weak, [false, true, true]);
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_in_other_formats_too() {
    let error = |message: &str| {
        let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        response(400, "", &body.to_string())
    };
    let server = Scripted::start(vec![
        error("`temperature` is deprecated for this model."),
        error("output_config: Extra inputs are not permitted"),
        message("4"),
        message("5"),
    ])
    .await;
    let provider = provider(&server.base_url, |settings| settings.kind = Kind::Anthropic);
    assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    assert_eq!(ask(&provider).await, Ok("5".to_owned()));
    let requests = server.requests();
    let with = |field: &str| requests.iter().map(|request| request.contains(field)).collect::<Vec<_>>();
    assert_eq!(with("temperature"), [true, false, false, false]);
    assert_eq!(with("output_config"), [true, true, false, false]);

    let refusal = r#"{"error":{"code":400,"message":"JSON mode is not enabled for models/m","status":"X"}}"#;
    let refusal = || response(400, "", refusal);
    let server = Scripted::start(vec![refusal(), refusal(), content("4")]).await;
    let provider = self::provider(&server.base_url, |settings| settings.kind = Kind::Google);
    assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    let requests = server.requests();
    let with = |field: &str| requests.iter().map(|request| request.contains(field)).collect::<Vec<_>>();
    assert_eq!(with("responseJsonSchema"), [true, false, false]);
    assert_eq!(with("responseMimeType"), [true, true, false]);
}

#[tokio::test]
async fn an_answer_limit_that_is_too_large_is_left_out_and_that_is_remembered() {
    for refusal in [
        "max_tokens is too large: 4096. This model supports at most 2048 completion tokens.",
        "This model's maximum context length is 4096 tokens. However, you requested 4814 tokens (718 in the \
         messages, 4096 in the completion).",
    ] {
        let refusal = json!({"error": {"message": refusal}}).to_string();
        let server =
            Scripted::start(vec![response(400, "", &refusal), completion("4"), completion("5")]).await;
        let provider = provider(&server.base_url, |_| {});
        assert_eq!(ask(&provider).await, Ok("4".to_owned()));
        assert_eq!(ask(&provider).await, Ok("5".to_owned()));
        let requests = server.requests();
        let with: Vec<bool> = requests.iter().map(|request| request.contains("max_tokens")).collect();
        assert_eq!(with, [true, false, false]);
    }
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "max_tokens: 4096 > 2048, which is the maximum allowed number of output tokens for m"}});
    let server = Scripted::start(vec![response(400, "", &refusal.to_string()), message("4")]).await;
    let provider = provider(&server.base_url, |settings| settings.kind = Kind::Anthropic);
    assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    assert!(server.requests()[1].contains("\"max_tokens\":2048"));
}

#[tokio::test]
async fn a_refusal_of_what_a_statement_says_teaches_nothing_about_the_model() {
    let refusal = r#"{"error":{"message":"Flagged: 'the temperature of the sun'"}}"#;
    let refused = || response(400, "", refusal);
    let server = Scripted::start(vec![refused(), refused(), completion("4")]).await;
    let provider = provider(&server.base_url, |_| {});
    let rejected = Failure::rejected(None, "Flagged: 'the temperature of the sun'");
    assert_eq!(ask(&provider).await, Err(rejected));
    assert_eq!(ask(&provider).await, Ok("4".to_owned()));
    let with: Vec<bool> =
        server.requests().iter().map(|request| request.contains(r#""temperature":0"#)).collect();
    assert_eq!(with, [true, false, true], "the next statement is asked about at a temperature of 0 again");
}

#[tokio::test]
async fn a_refusal_is_final_if_nothing_can_be_left_out() {
    let body = r#"{"error":{"type":"invalid_request_error","message":"say max_completion_tokens"}}"#;
    let server = Scripted::start(vec![response(400, "", body), message("4")]).await;
    let provider = provider(&server.base_url, |settings| settings.kind = Kind::Anthropic);
    let rejected = Failure::rejected(Some("invalid_request_error"), "say max_completion_tokens");
    assert_eq!(ask(&provider).await, Err(rejected));
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let server = Scripted::start(vec![vec![Step::Hang]]).await;
    let provider = provider(&server.base_url, |_| {});
    tokio::select! {
        answer = ask(&provider) => panic!("{answer:?}"),
        () = server.request_received() => {}
    }
    tokio::time::timeout(Duration::from_secs(1), server.client_left()).await.unwrap();
    assert_eq!(provider.calls.free(), 64);
}

#[tokio::test]
async fn another_rejection_is_final() {
    let refusal = r#"{"error":{"message":"no such field"}}"#;
    let server = Scripted::start(vec![response(400, "", refusal), completion("4")]).await;
    let rejected = Failure::rejected(None, "no such field");
    assert_eq!(ask(&provider(&server.base_url, |_| {})).await, Err(rejected));
}

#[tokio::test]
async fn waiting_for_a_permit_ends_at_the_deadline() {
    let provider = provider("http://127.0.0.1:9/v1", |settings| settings.max_concurrent = 1);
    let held = provider
        .admit(&"key_1".into(), Instant::now(), Instant::now() + Duration::from_secs(20))
        .await
        .unwrap();
    let refused =
        provider.admit(&"key_1".into(), Instant::now(), Instant::now() + Duration::from_millis(20)).await;
    assert_eq!(refused.unwrap_err(), Failure::Timeout);
    drop(held);
    assert!(
        provider
            .admit(&"key_1".into(), Instant::now(), Instant::now() + Duration::from_secs(20))
            .await
            .is_ok()
    );
    let now = Instant::now();
    assert_eq!(provider.admit(&"key_1".into(), now, now).await.unwrap_err(), Failure::Timeout);
}

#[test]
fn a_provider_that_could_never_be_called_is_refused() {
    let mut settings = Settings::new("acme", Kind::OpenAi, "https://api.example.com/v1");
    settings.max_concurrent = 0;
    let error = Provider::new(settings, Clock::system()).err().unwrap();
    assert!(error.to_string().starts_with("provider acme: max_concurrent"), "{error}");
}
