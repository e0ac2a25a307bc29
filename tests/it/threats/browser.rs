//! Attacks through a browser that can reach the server: DNS rebinding, planted cookies, frames.

use mk::api::Service;
use reqwest::Method;
use serde_json::json;

use crate::support::browser::{Browser, refusal, set_cookie};
use crate::support::panel::agreeing_panel;
use crate::support::raw::{exchange, request};
use crate::support::server::client;

#[tokio::test]
async fn metrics_are_not_open_to_a_page_after_dns_rebinding() {
    let (server, _provider) = agreeing_panel().await;
    let ask = async |line: &str, host: Option<&str>| {
        let (version, host) = match host {
            Some(host) => ("HTTP/1.1", format!("host: {host}\r\n")),
            None => ("HTTP/1.0", String::new()),
        };
        let request = format!("GET {line} {version}\r\n{host}connection: close\r\n\r\n");
        let answer = exchange(server.authority(), request.as_bytes()).await;
        let status: u16 =
            answer.get(9..12).unwrap_or_default().parse().unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(status == 200, answer.ends_with("# EOF\n"), "{answer}");
        status
    };
    for host in [
        "127.0.0.1",
        "127.0.0.1:9",
        "[::1]:9",
        "192.0.2.1",
        "localhost",
        "LOCALHOST:9",
        "localhost.",
        "mk.localhost:9",
    ] {
        assert_eq!(ask("/metrics", Some(host)).await, 200, "{host}");
    }
    assert_eq!(ask("/metrics", None).await, 200, "no browser uses HTTP/1.0");
    for host in [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evillocalhost",
        "",
        "a b",
        "127.0.0.1@evil.example",
    ] {
        assert_eq!(ask("/metrics", Some(host)).await, 401, "{host:?}");
    }
    assert_eq!(ask("http://evil.example/metrics", Some("localhost")).await, 401);
    let console = server.key(Service::Console);
    let by_key = client()
        .get(format!("{}/metrics", server.base))
        .header("host", "mk.example.com")
        .bearer_auth(console);
    assert_eq!(by_key.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn dns_rebinding_gives_access_to_open_pages_only() {
    let (server, _provider) = agreeing_panel().await;
    let host = [("host", "evil.example")];
    for path in ["/v1/apps", "/v1/audit", "/v1/usage", "/v1/key", "/v1/auth/session", "/inference/v1/models"]
    {
        // `request` sends its own Host header, which is replaced here.
        let request = String::from_utf8(request("GET", path, &[], "")).unwrap();
        let request = request.replace("host: localhost", &format!("{}: {}", host[0].0, host[0].1));
        let answer = exchange(server.authority(), request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control-"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn no_response_is_shared_with_another_origin() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    for method in [Method::GET, Method::POST, Method::OPTIONS] {
        for path in ["/", "/v1/apps", "/verify/v1/stream", "/metrics", "/openapi.json"] {
            let answer = client()
                .request(method.clone(), format!("{}{path}", server.base))
                .header("origin", "https://evil.example")
                .header("access-control-request-method", "POST")
                .bearer_auth(&key)
                .send()
                .await
                .unwrap();
            let shares = answer.headers().keys().any(|name| name.as_str().starts_with("access-control-"));
            assert!(!shares, "{method} {path}: {:?}", answer.headers());
        }
    }
}

#[tokio::test]
async fn a_planted_cookie_never_becomes_a_session() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Console);
    let planted = "mk_session=AAAAAAAAAAAAAAAAAAAAAAAAAA";
    let login = client()
        .post(format!("{}/v1/auth/session", server.base))
        .header("cookie", planted)
        .header("origin", &server.base)
        .json(&json!({"key": key}));
    let response = login.send().await.unwrap();
    assert_eq!(response.status(), 201);
    let browser = Browser::with(&server, &set_cookie(&response));
    assert_ne!(browser.cookie, planted);
    assert_eq!(browser.get("/v1/apps").await.status(), 200);
    let victim = client().get(format!("{}/v1/apps", server.base)).header("cookie", planted);
    assert_eq!(refusal(victim.send().await.unwrap()).await, (401, "invalid_session".to_owned()));
    let again = Browser::log_in(&server, &key).await;
    assert_ne!(again.cookie, browser.cookie, "each login starts a new session");
}

#[tokio::test]
async fn no_page_can_be_framed() {
    let (server, _provider) = agreeing_panel().await;
    for (method, path, status) in [
        (Method::GET, "/", 200),
        (Method::GET, "/assets/dashboard.js", 200),
        (Method::GET, "/assets/nothing.js", 404),
        (Method::POST, "/", 405),
        (Method::PUT, "/assets/dashboard.js", 405),
        (Method::GET, "/nowhere", 404),
        (Method::GET, "/setup/x", 404),
    ] {
        let answer = client().request(method.clone(), format!("{}{path}", server.base)).send().await.unwrap();
        assert_eq!(answer.status(), status, "{method} {path}");
        let header =
            |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert!(header("content-security-policy").contains("default-src 'none'"), "{method} {path}");
        assert!(header("content-security-policy").contains("frame-ancestors 'none'"), "{method} {path}");
        assert_eq!(header("x-frame-options"), "DENY", "{method} {path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{method} {path}");
    }
}
