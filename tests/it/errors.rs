//! Every error as a caller sees it: its status, its headers and its exact body.

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::{exchange, request};
use crate::support::server::{Setup, TestServer, client};

async fn server() -> TestServer {
    agreeing_panel().await.0
}

/// Sends a verification request with this key and raw body.
async fn post(server: &TestServer, key: &str, body: &str) -> reqwest::Response {
    client()
        .post(format!("{}/verify/v1/stream", server.base))
        .bearer_auth(key)
        .header("content-type", "application/json")
        .body(body.to_owned())
        .send()
        .await
        .unwrap()
}

fn assert_common_headers(response: &reqwest::Response) {
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"] {
        assert!(response.headers().contains_key(name), "{} lacks {name}", response.status());
    }
}

async fn assert_error(response: reqwest::Response, status: u16, error: &str, code: &str) -> Value {
    assert_eq!(response.status().as_u16(), status);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_common_headers(&response);
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let body: Value = response.json().await.unwrap();
    assert_eq!((body["error"].as_str().unwrap(), body["code"].as_str().unwrap()), (error, code), "{body}");
    assert_eq!(body["request_id"], id.as_str());
    assert!(!body["message"].as_str().unwrap().is_empty());
    body
}

#[tokio::test]
async fn an_error_body_is_exactly_these_bytes() {
    let server = server().await;
    let answer = exchange(
        server.authority(),
        &request("POST", "/verify/v1/stream", &[("x-request-id", "my-id.1")], ""),
    )
    .await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{head}");
    assert!(head.contains("\r\nwww-authenticate: Bearer\r\n"), "{head}");
    assert_eq!(
        body,
        r#"{"error":"Unauthorized","message":"Invalid or missing API key","code":"missing_api_key","request_id":"my-id.1"}"#
    );
}

#[tokio::test]
async fn refused_keys_get_the_documented_messages() {
    let server = server().await;
    let verify = |key: String| {
        let server = &server;
        async move { post(server, &key, r#"{"fact":"x"}"#).await }
    };

    let body = assert_error(verify("nonsense".into()).await, 401, "Unauthorized", "invalid_api_key").await;
    assert_eq!(body["message"], "Invalid or missing API key");

    let (unknown, id) = server.key_with(Service::Verify, |_| {});
    let mut typo = unknown.clone();
    typo.pop();
    typo.push(if unknown.ends_with('a') { 'b' } else { 'a' });
    assert_error(verify(typo).await, 401, "Unauthorized", "invalid_api_key").await;

    let other = server.key(Service::Inference);
    let body = assert_error(verify(other).await, 401, "Unauthorized", "wrong_service").await;
    assert_eq!(body["message"], "API key not authorized for this service");

    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let body = assert_error(verify(unknown).await, 401, "Unauthorized", "api_key_revoked").await;
    assert_eq!(body["message"], "API key has been revoked");

    let (expiring, _) = server.key_with(Service::Verify, |new| {
        new.expires_at = Some(server.clock.now().plus(std::time::Duration::from_mins(1)));
    });
    server.clock.advance(std::time::Duration::from_secs(61));
    let body = assert_error(verify(expiring).await, 401, "Unauthorized", "api_key_expired").await;
    assert_eq!(body["message"], "API key has expired");

    let (elsewhere, _) = server.key_with(Service::Verify, |new| new.addresses = vec!["10.1.0.0/16".into()]);
    assert_error(verify(elsewhere).await, 403, "Forbidden", "address_not_allowed").await;
}

#[tokio::test]
async fn a_revoked_key_of_another_service_is_reported_as_revoked() {
    let server = server().await;
    let (key, id) = server.key_with(Service::Inference, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    assert_error(post(&server, &key, "{}").await, 401, "Unauthorized", "api_key_revoked").await;
}

#[tokio::test]
async fn unknown_paths_are_404_and_wrong_methods_are_405() {
    let server = server().await;
    let get = |path: &str| client().get(format!("{}{path}", server.base)).send();
    for path in [
        "/index",
        "/verify",
        "/verify/v1/",
        "/verify/v1/stream/x",
        "/verify/v1/stream%2f",
        "//verify/v1/stream",
    ] {
        assert_error(get(path).await.unwrap(), 404, "Not Found", "unknown_route").await;
    }
    let response = get("/verify/v1/stream").await.unwrap();
    assert_eq!(response.headers()["allow"], "POST");
    assert_error(response, 405, "Method Not Allowed", "method_not_allowed").await;
    let response = client().delete(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_eq!(response.headers()["allow"], "GET, HEAD");
    assert_error(response, 405, "Method Not Allowed", "method_not_allowed").await;
}

#[tokio::test]
async fn requests_are_checked_in_the_documented_order() {
    let server = server().await;
    let send = |key: Option<String>, kind: &'static str, body: &'static str| {
        let mut request = client().post(format!("{}/verify/v1/stream", server.base)).body(body);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        request.send()
    };
    let key = server.key(Service::Verify);
    let json = "application/json; charset=utf-8";
    // Each request also fails every later check, so that the reply shows which check comes first.
    assert_error(send(None, "", "{").await.unwrap(), 401, "Unauthorized", "missing_api_key").await;
    let response = send(Some(key.clone()), "", "{").await.unwrap();
    assert_error(response, 415, "Unsupported Media Type", "unsupported_media_type").await;
    let response = send(Some(key.clone()), "text/plain", "{}").await.unwrap();
    assert_error(response, 415, "Unsupported Media Type", "unsupported_media_type").await;
    assert_error(send(Some(key.clone()), json, "{").await.unwrap(), 400, "Bad Request", "invalid_json").await;
    assert_error(send(Some(key), json, "{}").await.unwrap(), 400, "Bad Request", "missing_parameter").await;
}

#[tokio::test]
async fn errors_name_the_invalid_parameter_and_the_allowed_values() {
    let server = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(0));
    let long = format!(r#"{{"fact":"{}"}}"#, "x".repeat(200_001));
    let cases: [(&str, &str, &str, &str); 29] = [
        ("", "invalid_json", "", "empty"),
        ("[]", "invalid_json", "", "an array"),
        ("\"x\"", "invalid_json", "", "a string"),
        ("{\"fact\":\"x\"", "invalid_json", "", "EOF"),
        ("{}", "missing_parameter", "fact", "required"),
        (r#"{"fact":1}"#, "invalid_parameter", "fact", "a string, not a number"),
        (r#"{"fact":null}"#, "invalid_parameter", "fact", "not null"),
        (r#"{"fact":" \n "}"#, "invalid_parameter", "fact", "empty"),
        (&long, "invalid_parameter", "fact", "characters, and the limit is 200000"),
        (
            r#"{"fact":"France\u0000is Paris"}"#,
            "invalid_parameter",
            "fact",
            "a NUL character (U+0000) at position 6",
        ),
        (r#"{"fact":"x","domain":"medical"}"#, "invalid_parameter", "domain", "`general` or `legal`"),
        (
            r#"{"fact":"x","domain":1}"#,
            "invalid_parameter",
            "domain",
            "must be `general` or `legal`, not a number",
        ),
        (r#"{"fact":"x","minRequired":1}"#, "invalid_parameter", "minRequired", "2 or 3"),
        (r#"{"fact":"x","minRequired":4}"#, "invalid_parameter", "minRequired", "2 or 3"),
        (r#"{"fact":"x","minRequired":2.5}"#, "invalid_parameter", "minRequired", "2 or 3"),
        (r#"{"fact":"x","asOf":20261120}"#, "invalid_parameter", "asOf", "must be a date such as 2026-11-20"),
        (r#"{"fact":"x","minRequired":"2"}"#, "invalid_parameter", "minRequired", "not a string"),
        (r#"{"fact":"x","totalModels":1}"#, "invalid_parameter", "totalModels", "2 or 3"),
        (r#"{"fact":"x","totalModels":4}"#, "invalid_parameter", "totalModels", "2 or 3"),
        (
            r#"{"fact":"x","minRequired":3,"totalModels":2}"#,
            "invalid_parameter",
            "totalModels",
            "must be 3, not 2; 3 models are configured for this domain",
        ),
        (r#"{"fact":"x","asOf":"yesterday"}"#, "invalid_parameter", "asOf", "2026-11-20"),
        (r#"{"fact":"x","explain":"yes"}"#, "invalid_parameter", "explain", "true or false"),
        (r#"{"fact":"x","context":[]}"#, "invalid_parameter", "context", "a string"),
        (r#"{"fact":"x","context":""}"#, "invalid_parameter", "context", "leave it out"),
        ("{\"fact\":\"\u{200b}\"}", "invalid_parameter", "fact", "empty"),
        ("{\"fact\":\"x\",\"context\":\"\u{2060}\"}", "invalid_parameter", "context", "leave it out"),
        (
            r#"{"fact":"x","context":"y\u0000"}"#,
            "invalid_parameter",
            "context",
            "position 1; send plain text",
        ),
        (r#"{"fact":"x","context":" \n"}"#, "invalid_parameter", "context", "leave it out"),
        (r#"{"fact":"x","minrequired":2}"#, "unsupported_parameter", "minrequired", "minRequired"),
    ];
    for (body, code, param, words) in cases {
        let error = assert_error(post(&server, &key, body).await, 400, "Bad Request", code).await;
        assert_eq!(error["param"].as_str().unwrap_or_default(), param, "{body:.60}");
        assert!(error["message"].as_str().unwrap().contains(words), "{body:.60}: {error}");
    }
    let accepted = r#"{"fact":"x","minRequired":2.0,"totalModels":null,"context":null}"#;
    assert_eq!(post(&server, &key, accepted).await.status(), 200);
}

#[tokio::test]
async fn a_panel_of_one_model_cannot_verify() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.panel.truncate(1))
        .start()
        .await;
    let key = server.key(Service::Verify);
    for body in [r#"{"fact":"x"}"#, r#"{"fact":"x","totalModels":3}"#, r#"{"fact":"x","minRequired":3}"#] {
        let response = post(&server, &key, body).await;
        assert!(response.headers().contains_key("retry-after"));
        assert_error(response, 503, "Service Unavailable", "no_provider_available").await;
    }
}

#[tokio::test]
async fn a_failed_json_response_forwards_the_retry_after_of_the_provider() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => Reply::Raw(429, vec![("retry-after", "277".to_owned())], "{}".to_owned()),
        _ => Reply::Hang,
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let body = json!({"fact": "The Eiffel Tower is in Paris."});
    let request = server.verify(&server.key(Service::Verify), &body).header("accept", "application/json");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "277");
    assert_error(response, 503, "Service Unavailable", "provider_rate_limited").await;
}

#[tokio::test]
async fn health_needs_no_key_and_reports_the_version() {
    let server = server().await;
    let response = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_common_headers(&response);
    assert_eq!(response.text().await.unwrap(), r#"{"status":"ok"}"#);
    let response = client().get(format!("{}/inference/v1/health", server.base)).send().await.unwrap();
    assert_eq!(
        response.json::<Value>().await.unwrap(),
        json!({"status": "ok", "service": "inference", "version": env!("CARGO_PKG_VERSION")})
    );
    let response = client().head(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_eq!(response.status(), 200);
}
