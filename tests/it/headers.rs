//! The headers of every response, whatever its status.

use mk::api::Service;
use serde_json::Value;

use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::{exchange, head, post, request};
use crate::support::server::Setup;

#[tokio::test]
async fn every_response_has_rate_limit_headers_and_a_request_id() {
    let (server, _provider) = agreeing_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(100));
    let other = server.key(Service::Console);
    let (elsewhere, _) = server.key_with(Service::Verify, |new| new.addresses = vec!["10.0.0.0/8".into()]);
    let (used_up, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    exchange(server.authority(), post(&used_up, &[("connection", "close")], "{}").as_bytes()).await;

    let verify = |key: &str, headers: &[(&str, &str)], body: &str| {
        post(key, &[&[("connection", "close"), ("x-request-id", "mine")], headers].concat(), body)
            .into_bytes()
    };
    let fact = r#"{"fact":"The Eiffel Tower is in Paris."}"#;
    let get = |method: &str, path: &str| request(method, path, &[("x-request-id", "mine")], "");
    let large = format!("/{}", "a".repeat(70_000));
    let cases: [(Vec<u8>, u16, bool); 18] = [
        (get("GET", "/verify/v1/health"), 200, true),
        (get("HEAD", "/inference/v1/health"), 200, true),
        (verify(&key, &[], fact), 200, true),
        (verify(&key, &[("accept", "application/json")], fact), 200, true),
        (verify(&key, &[], "{"), 400, true),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n".to_vec(), 400, false),
        (b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\nGARBAGE\r\n\r\n".to_vec(), 200, false),
        (verify("mk_verify_nonsense", &[], fact), 401, true),
        (verify(&other, &[], fact), 401, true),
        (verify(&elsewhere, &[], fact), 403, true),
        (get("GET", "/nowhere"), 404, true),
        (get("OPTIONS", "*"), 404, true),
        (get("TRACE", "/verify/v1/stream"), 405, true),
        (head(&key, &[("x-request-id", "mine"), ("content-length", "99999999")]).into_bytes(), 413, true),
        (get("GET", &large), 414, false),
        (verify(&key, &[("content-encoding", "br")], fact), 415, true),
        (verify(&used_up, &[], fact), 429, true),
        (request("GET", "/", &[("x", &"y".repeat(300_000))], ""), 431, false),
    ];
    for (bytes, status, has_readable_head) in cases {
        let answer = exchange(server.authority(), &bytes).await;
        // If there are two responses on the connection, the last one is checked; it is hyper's own.
        let last = answer.rfind("HTTP/1.1 ").unwrap();
        let (head, body) = answer[last..].split_once("\r\n\r\n").unwrap();
        if last == 0 {
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        }
        for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit-policy"] {
            assert_eq!(head.matches(&format!("\r\n{name}: ")).count(), 1, "{status}: {name} in {head}");
        }
        let id = if has_readable_head { "x-request-id: mine" } else { "x-request-id: req_" };
        assert!(head.contains(id), "{status}: {head}");
        if status >= 400 {
            let error: Value = serde_json::from_str(body).unwrap();
            assert!(head.contains(error["request_id"].as_str().unwrap()), "{status}: {head}");
        }
    }
}

#[tokio::test]
async fn a_request_with_two_keys_is_refused() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let second = format!("Bearer {key}");
    let request = post(
        &key,
        &[("authorization", &second), ("connection", "close")],
        r#"{"fact":"The Eiffel Tower is in Paris."}"#,
    );
    let answer = exchange(server.authority(), request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn a_key_used_from_a_wrong_address_is_limited_by_address_and_not_by_key() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.limits.failed_auth_per_minute = 2)
        .start()
        .await;
    let (key, id) = server.key_with(Service::Verify, |new| new.addresses = vec!["10.0.0.0/8".into()]);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(server.verify(&key, &serde_json::json!({})).send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [403, 403, 429]);
    server.app.flush().unwrap();
    assert_eq!(server.app.store.day_count(&id, server.clock.now().utc_day()).unwrap(), 0);
}

#[tokio::test]
async fn the_name_of_an_unknown_parameter_is_sanitised_and_shortened() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let body = format!(r#"{{"fact":"x","\u001b[2J\u202e{}":1}}"#, "é".repeat(500));
    let answer = exchange(server.authority(), post(&key, &[("connection", "close")], &body).as_bytes()).await;
    let error: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(error["code"], "unsupported_parameter");
    let text = error.to_string();
    assert!(!text.contains("\\u001b") && !text.contains('\u{202e}') && text.len() < 700, "{text}");
}

#[tokio::test]
async fn a_100_continue_is_sent_only_for_a_valid_key() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let expecting = |key: &str| {
        let headers = [("expect", "100-continue"), ("content-length", "2"), ("connection", "close")];
        head(key, &headers)
    };
    let refused = exchange(server.authority(), expecting("wrong").as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let asked = exchange(server.authority(), format!("{}{{}}", expecting(&key)).as_bytes()).await;
    assert!(asked.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "), "{asked}");
}
