//! Invalid input under `/v1`: reported by name, checked in the documented order, and nothing is written.

use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::console::{Console, server, text};
use crate::support::raw::exchange;

const HUGE: &str = "1000000000000000000000000000000";

/// Sends a body as it is.
async fn raw(console: &Console, method: Method, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let request = console.request(method, path).header("content-type", "application/json").body(body);
    let response = Console::ask(request).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn an_invalid_parameter_is_named_by_its_path() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "console"})).await;
    let (apps, app, keys) =
        ("/v1/apps".to_owned(), format!("/v1/apps/{app}"), format!("/v1/apps/{app}/keys"));
    let rotate = format!("{key}/rotate");
    let before = console.audit().await;
    let (invalid, missing, unknown) = ("invalid_parameter", "missing_parameter", "unsupported_parameter");
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(65));
    let (post, patch) = (Method::POST, Method::PATCH);
    for (method, path, body, code, param) in [
        (&post, &apps, "{}", missing, "name"),
        (&post, &apps, r#"{"name":null}"#, invalid, "name"),
        (&post, &apps, r#"{"name":7}"#, invalid, "name"),
        (&post, &apps, r#"{"name":" "}"#, invalid, "name"),
        (&post, &apps, r#"{"name":"a\nb"}"#, invalid, "name"),
        (&post, &apps, &long, invalid, "name"),
        (&post, &apps, r#"{"name":"x","budget_usd":"5"}"#, invalid, "budget_usd"),
        (&post, &apps, r#"{"name":"x","budget_usd":-1}"#, invalid, "budget_usd"),
        (&post, &apps, r#"{"name":"x","budget_usd":1000000001}"#, invalid, "budget_usd"),
        (&post, &apps, r#"{"name":"x","budget_usd":1e-10}"#, invalid, "budget_usd"),
        (&post, &apps, r#"{"name":"x","budget":5}"#, unknown, "budget"),
        (&patch, &app, r#"{"name":null}"#, invalid, "name"),
        (&patch, &app, r#"{"name":["x"]}"#, invalid, "name"),
        (&patch, &app, r#"{"budget_usd":[]}"#, invalid, "budget_usd"),
        (&patch, &app, r#"{"id":"app_1"}"#, unknown, "id"),
        (&post, &keys, "{}", missing, "service"),
        (&post, &keys, r#"{"service":"Verify"}"#, invalid, "service"),
        (&post, &keys, r#"{"service":"verify","name":{}}"#, invalid, "name"),
        (&post, &keys, r#"{"service":"verify","name":""}"#, invalid, "name"),
        (&post, &keys, r#"{"service":"verify","expires_at":1795176000}"#, invalid, "expires_at"),
        (&post, &keys, r#"{"service":"verify","expires_at":"tomorrow"}"#, invalid, "expires_at"),
        (&post, &keys, r#"{"service":"verify","expires_at":"2026-11-20T12:00:00Z"}"#, invalid, "expires_at"),
        (&post, &keys, r#"{"service":"verify","limits":[60]}"#, invalid, "limits"),
        (&post, &keys, r#"{"service":"verify","limits":{"per_minute":-1}}"#, invalid, "limits.per_minute"),
        (&post, &keys, r#"{"service":"verify","limits":{"per_day":1.5}}"#, invalid, "limits.per_day"),
        (&post, &keys, r#"{"service":"verify","limits":{"per_day":4294967296}}"#, invalid, "limits.per_day"),
        (&post, &keys, r#"{"service":"verify","limits":{"per_hour":1}}"#, unknown, "limits.per_hour"),
        (&post, &keys, r#"{"service":"verify","models":"*"}"#, invalid, "models"),
        (&post, &keys, r#"{"service":"verify","models":["*","a/*",3]}"#, invalid, "models[2]"),
        (&post, &keys, r#"{"service":"verify","models":["*","gpt 5"]}"#, invalid, "models[1]"),
        (&post, &keys, r#"{"service":"verify","addresses":[null]}"#, invalid, "addresses[0]"),
        (&post, &keys, r#"{"service":"verify","addresses":["home"]}"#, invalid, "addresses[0]"),
        (&post, &keys, r#"{"service":"console","models":["*"]}"#, invalid, "models"),
        (&post, &keys, r#"{"service":"console","budget_usd":1}"#, invalid, "budget_usd"),
        (&post, &keys, r#"{"service":"verify","key":"mk_x"}"#, unknown, "key"),
        (&patch, &key, r#"{"service":"verify"}"#, unknown, "service"),
        (&patch, &key, r#"{"name":"x","limits":{"per_minute":"5"}}"#, invalid, "limits.per_minute"),
        (&patch, &key, r#"{"models":["*"]}"#, invalid, "models"),
        (&patch, &key, r#"{"expires_at":"2020-01-01"}"#, invalid, "expires_at"),
        (&post, &rotate, r#"{"grace_seconds":-1}"#, invalid, "grace_seconds"),
        (&post, &rotate, r#"{"grace_seconds":31622401}"#, invalid, "grace_seconds"),
        (&post, &rotate, r#"{"grace":1}"#, unknown, "grace"),
    ] {
        let (status, error) = raw(&console, method.clone(), path, body.to_owned()).await;
        assert_eq!((status, &error["code"]), (400, &json!(code)), "{path} {body}: {error}");
        assert_eq!(error["param"], param, "{path} {body}: {error}");
        assert!(error["message"].as_str().unwrap().contains(param), "{path} {body}: {error}");
    }
    assert_eq!(console.audit().await, before);
    assert_eq!(console.get(&key).await.1["name"], Value::Null);
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_rejected() {
    let (_server, console) = server().await;
    let (deep, huge) = ("[".repeat(200_000), format!(r#"{{"name":"x","budget_usd":{HUGE}}}"#));
    for body in
        [&b""[..], b"{", b"null", b"[]", b"\"name\"", b"{\"name\":\"\xff\"}", b"{} {}", b"\xef\xbb\xbf{}"]
    {
        let (status, error) = raw(&console, Method::POST, "/v1/apps", body).await;
        assert_eq!((status, &error["code"]), (400, &json!("invalid_json")), "{body:?}: {error}");
    }
    for (body, code) in [(format!(r#"{{"name":{deep}"#), "invalid_json"), (huge, "invalid_parameter")] {
        let (status, error) = raw(&console, Method::POST, "/v1/apps", body).await;
        assert_eq!((status, &error["code"]), (400, &json!(code)), "{error}");
    }
    assert_eq!(console.walk("/v1/apps?", 50).await.len(), 1);
}

#[tokio::test]
async fn duplicate_parameters_are_rejected() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let keys = format!("/v1/apps/{app}/keys");
    let before = console.audit().await;
    for (path, body, param) in [
        ("/v1/apps", r#"{"name":"a","name":"b"}"#, "name"),
        ("/v1/apps", r#"{"name":"a","n\u0061me":"a"}"#, "name"),
        ("/v1/apps", r#"{"name":"a","x":[1,{"y":{"z":1,"z":1}}]}"#, "x[1].y.z"),
        (&keys, r#"{"service":"verify","limits":{"per_day":1,"per_day":2}}"#, "limits.per_day"),
    ] {
        let (status, error) = raw(&console, Method::POST, path, body).await;
        let told = (&error["code"], &error["param"]);
        assert_eq!((status, told), (400, (&json!("invalid_parameter"), &json!(param))), "{body}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{param}` appears twice")), "{message}");
    }
    assert_eq!(console.audit().await, before);
    let verify = server.verify(&server.key(Service::Verify), &json!({}));
    let twice = verify.body(r#"{"fact":"2 + 2 = 4","fact":"2 + 2 = 5"}"#).send().await.unwrap();
    assert_eq!(
        (twice.status().as_u16(), &twice.json::<Value>().await.unwrap()["param"]),
        (400, &json!("fact"))
    );
}

#[tokio::test]
async fn errors_about_input_are_short_and_without_control_characters() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let long = format!("\u{1b}[2J\u{202e}{}", "é".repeat(200_000));
    let keys = format!("/v1/apps/{app}/keys");
    for body in [
        json!({"service": "verify", "models": [long]}),
        json!({"service": "verify", "addresses": [long]}),
        json!({"service": "verify", &long: 1}),
        json!({"service": "verify", "limits": {&long: 1}}),
        json!({"service": long}),
        json!({"service": "verify", "expires_at": long}),
    ] {
        let (status, error) = console.post(&keys, &body).await;
        let text = error.to_string();
        assert!(status == 400 && text.len() < 900, "{}", text.len());
        assert!(!text.contains("\\u001b") && !text.contains('\u{202e}'), "{text}");
    }
    let (status, error) = console.get(&format!("/v1/apps?%1b[2J{}=1", "x".repeat(5000))).await;
    assert!(status == 400 && error.to_string().len() < 900 && !error.to_string().contains("\\u001b"));
}

#[tokio::test]
async fn unknown_invalid_and_duplicate_query_parameters_are_rejected() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "verify"})).await;
    let keys = format!("/v1/apps/{app}/keys");
    let before = console.audit().await;
    let (get, post, patch) = (Method::GET, Method::POST, Method::PATCH);
    for (method, path, query, param) in [
        (&get, "/v1/apps", "limit=0", "limit"),
        (&get, "/v1/apps", "limit=201", "limit"),
        (&get, "/v1/apps", "limit=ten", "limit"),
        (&get, "/v1/apps", "limit=1&limit=1", "limit"),
        (&get, "/v1/apps", "cursor=1", "cursor"),
        (&get, "/v1/apps", &format!("cursor={}", key.rsplit('/').next().unwrap()), "cursor"),
        (&get, "/v1/apps", "service=verify", "service"),
        (&get, "/v1/apps", "Limit=1", "Limit"),
        (&get, &keys, &format!("cursor={app}"), "cursor"),
        (&get, &keys, "service=all", "service"),
        (&get, &keys, "state=Active", "state"),
        (&get, &keys, "state=active&state=revoked", "state"),
        (&get, "/v1/audit", "object=a&object=b", "object"),
        (&get, "/v1/audit", &format!("cursor={app}"), "cursor"),
        (&get, "/v1/audit", "since=2026", "since"),
        (&get, "/v1/audit", "actor=laptop", "actor"),
        (&get, "/v1/audit", &format!("actor={app}"), "actor"),
        (&get, "/v1/audit", "action=", "action"),
        (&get, "/v1/usage", "to=", "to"),
        (&get, "/v1/usage", "from=2026-11-01&by=", "by"),
        (&get, "/v1/apps", "cursor=", "cursor"),
        (&get, &format!("/v1/apps/{app}"), "full=1", "full"),
        (&get, &key, "full", "full"),
        // Ignoring an unknown `dry_run` would carry out the write.
        (&post, "/v1/apps", "dry_run=true", "dry_run"),
        (&patch, &format!("/v1/apps/{app}"), "dry_run=true", "dry_run"),
        (&Method::DELETE, &format!("/v1/apps/{app}"), "dry_run=true", "dry_run"),
        (&post, &keys, "dry_run=true", "dry_run"),
        (&patch, &key, "dry_run=true", "dry_run"),
        (&Method::DELETE, &key, "dry_run=true", "dry_run"),
        (&post, &format!("{key}/rotate"), "dry_run=true", "dry_run"),
    ] {
        let body = match path.rsplit('/').next() {
            Some("rotate") => json!({}),
            Some("keys") => json!({"service": "verify"}),
            _ => json!({"name": "x"}),
        };
        let (status, error) = console.send(method.clone(), &format!("{path}?{query}"), &body).await;
        assert_eq!((status, &error["param"]), (400, &json!(param)), "{method} {path}?{query}: {error}");
        assert!(error["message"].as_str().unwrap().contains(&format!("`{param}`")), "{error}");
        let is_unknown = error["code"] == "unsupported_parameter";
        assert_eq!(is_unknown, error["message"].as_str().unwrap().contains("unknown"), "{error}");
    }
    let (status, error) = console.post("/v1/apps?dry_run=1", &json!([])).await;
    assert_eq!((status, &error["code"]), (400, &json!("invalid_json")), "JSON is checked before parameters");
    let many = (0..12_000).map(|number| number.to_string()).collect::<Vec<_>>().join("&");
    assert_eq!(console.get(&format!("/v1/apps?{many}")).await.0, 400);
    assert_eq!(console.audit().await, before);
}

#[tokio::test]
async fn checks_run_in_the_documented_order() {
    let (server, console) = server().await;
    let revoked = server.key_with(Service::Verify, |_| {});
    server.app.store.revoke_key(&revoked.1, server.clock.now()).unwrap();
    let elsewhere = |new: &mut mk::keys::NewKey| {
        (new.addresses, new.per_minute) = (vec!["10.0.0.0/8".to_owned()], Some(1));
    };
    let (elsewhere, _) = server.key_with(Service::Console, elsewhere);
    let (used_up, _) = server.key_with(Service::Console, |new| new.per_minute = Some(1));
    Console { key: used_up.clone(), ..console.clone() }.get("/v1/apps").await;
    let large = "x".repeat((1 << 20) + 1);
    let (text, json) = ("text/plain", "application/json");
    for (method, path, key, kind, body, status, code) in [
        ("POST", "/v1/nothing", "", text, &*large, 404, "unknown_route"),
        ("POST", "/v1/apps/", "", text, &large, 404, "unknown_route"),
        ("PUT", "/v1/apps", "", text, &large, 405, "method_not_allowed"),
        ("POST", "/v1/apps", "", text, &large, 401, "missing_api_key"),
        ("POST", "/v1/apps", "mk_console_x", text, &large, 401, "invalid_api_key"),
        ("POST", "/v1/apps", &revoked.0, text, &large, 401, "api_key_revoked"),
        ("POST", "/v1/apps", &server.key(Service::Verify), text, &large, 401, "wrong_service"),
        ("POST", "/v1/apps", &elsewhere, text, &large, 403, "address_not_allowed"),
        ("POST", "/v1/apps", &used_up, text, &large, 429, "rate_limited_minute"),
        ("POST", "/v1/apps", &console.key, text, &large, 413, "body_too_large"),
        ("POST", "/v1/apps", &console.key, text, "{", 415, "unsupported_media_type"),
        ("POST", "/v1/apps", &console.key, json, "{", 400, "invalid_json"),
        ("PATCH", "/v1/apps/app_none", &console.key, json, r#"{"name":7}"#, 400, "invalid_parameter"),
        ("PATCH", "/v1/apps/app_none", &console.key, json, r#"{"name":"x"}"#, 404, "not_found"),
    ] {
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\n");
        let key = if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
        // A body that will not be read is only announced by its length.
        let sent = if body.len() > 100 { "" } else { body };
        let request = format!("{head}{key}content-length: {}\r\n\r\n{sent}", body.len());
        let answer = exchange(server.authority(), request.as_bytes()).await;
        let (head, error) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
        assert!(head.contains("\r\ncache-control: no-store"), "{answer}");
        assert!(error.contains(&format!(r#""code":"{code}""#)), "{method} {path}: {answer}");
    }
    let chunks = large.as_bytes().chunks(1 << 16).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()));
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks.collect::<Vec<_>>()));
    let request = console.request(Method::POST, "/v1/apps").header("content-type", json).body(chunked);
    // The server may respond and close while the body is still being sent, which the client may see as an error.
    if let Ok(response) = request.send().await {
        assert_eq!(response.status(), 413);
    }
    assert_eq!(console.get("/v1/apps").await.1["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_path_reports_its_allowed_methods() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "verify"})).await;
    let app = format!("/v1/apps/{app}");
    for (path, allow) in [
        ("/v1/apps", "GET, HEAD, POST"),
        (&app, "GET, HEAD, PATCH, DELETE"),
        (&format!("{app}/keys"), "GET, HEAD, POST"),
        (&format!("{app}/statement"), "GET, HEAD"),
        (&key, "GET, HEAD, PATCH, DELETE"),
        (&format!("{key}/rotate"), "POST"),
        ("/v1/usage", "GET, HEAD"),
        ("/v1/billing", "GET, HEAD"),
        ("/v1/audit", "GET, HEAD"),
        ("/v1/key", "GET, HEAD"),
        ("/v1/auth/session", "GET, HEAD, POST, DELETE"),
        ("/v1/auth/setup", "POST"),
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"] {
            if allow.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let request = console.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
            let response = Console::ask(request).await;
            assert_eq!(
                (response.status().as_u16(), &*text(&json!(response.headers()["allow"].to_str().unwrap()))),
                (405, allow),
                "{method} {path}"
            );
            let body = response.text().await.unwrap();
            assert_eq!(body.contains("method_not_allowed"), method != "HEAD", "{body}");
        }
    }
    for path in
        ["/v1", "/v1/", "/v1/app", "/v1/apps/a/b", "/v1/apps/a/keys/b/c", "/v1/apps/a/keys/b/rotate/c"]
    {
        let (status, error) = console.get(path).await;
        assert_eq!((status, &error["code"]), (404, &json!("unknown_route")), "{path}");
    }
}

#[tokio::test]
async fn head_returns_the_headers_of_get() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "verify"})).await;
    let app = format!("/v1/apps/{app}");
    for path in ["/v1/apps?limit=1", &app, &format!("{app}/keys"), &key, "/v1/audit", "/v1/apps/none"] {
        let got = Console::ask(console.request(Method::GET, path)).await;
        let head = Console::ask(console.request(Method::HEAD, path)).await;
        assert_eq!(head.status(), got.status(), "{path}");
        assert_eq!(head.headers()["content-type"], "application/json");
        // The request id in an error's body has a fixed length.
        assert_eq!(head.headers()["content-length"], got.headers()["content-length"], "{path}");
        assert!(head.bytes().await.unwrap().is_empty());
    }
}
