//! Cross-site request forgery: what a page of another site cannot make the server do.

use mk::api::Service;
use mk::secret::ExposeSecret;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;

use crate::support::browser::{Browser, log_in, refusal, set_cookie};
use crate::support::panel::idle_setup;
use crate::support::server::{NOON, TestServer, client};
use crate::support::tls::Identity;

const SESSION: &str = "/v1/auth/session";

async fn with_browser() -> (TestServer, Browser) {
    let server = idle_setup().start().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    (server, browser)
}

/// Whether a request is rejected because of its origin; otherwise it must be authenticated.
async fn is_foreign(request: RequestBuilder) -> bool {
    let response = request.send().await.unwrap();
    if response.status() != 403 {
        assert_ne!(response.status(), 401);
        return false;
    }
    assert!(!response.headers().contains_key("set-cookie"));
    assert_eq!(refusal(response).await.1, "origin_not_allowed");
    true
}

#[tokio::test]
async fn writes_by_cookie_require_the_server_s_own_origin() {
    let (server, browser) = with_browser().await;
    let (port, own) = (server.authority().rsplit_once(':').unwrap().1, server.base.as_str());
    let write = || browser.request(Method::POST, "/v1/apps").json(&json!({}));
    assert!(is_foreign(write()).await, "no origin");
    for origin in [
        "null",
        "",
        "https://evil.example",
        &format!("http://evil.example:{port}"),
        &format!("http://127.0.0.1.evil.example:{port}"),
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "127.0.0.1",
        &format!("ftp://127.0.0.1:{port}"),
    ] {
        assert!(is_foreign(write().header("origin", origin)).await, "{origin:?}");
    }
    assert!(is_foreign(write().header("origin", own).header("origin", own)).await, "two origins");
    assert!(is_foreign(write().header("origin", &b"\xff"[..])).await);
    for site in ["cross-site", "same-site", ""] {
        let forged = write().header("origin", own).header("sec-fetch-site", site);
        assert!(is_foreign(forged).await, "{site:?}");
    }
    for method in [Method::PATCH, Method::DELETE] {
        assert!(is_foreign(browser.request(method, "/v1/apps/app_1").json(&json!({}))).await);
    }

    assert!(!is_foreign(write().header("origin", own)).await);
    for site in ["same-origin", "none"] {
        assert!(!is_foreign(write().header("origin", own).header("sec-fetch-site", site)).await);
    }
    let read = browser.request(Method::GET, "/v1/apps").header("sec-fetch-site", "same-origin");
    assert!(!is_foreign(read).await, "reads need no origin");
    assert!(!is_foreign(browser.request(Method::HEAD, "/v1/apps")).await);
    let by_key = client().post(format!("{own}/v1/apps")).bearer_auth(server.key(Service::Console));
    assert!(
        !is_foreign(by_key.json(&json!({}))).await,
        "nor do requests with a key, which no browser sends by itself"
    );
}

#[tokio::test]
async fn a_foreign_page_can_neither_log_in_nor_log_out_nor_set_up() {
    let (server, browser) = with_browser().await;
    let key = server.key(Service::Console);
    let token = server.app.setup.issue(NOON).unwrap();
    let logging_in = || client().post(format!("{}{SESSION}", server.base)).json(&json!({"key": key}));
    let setting_up = || {
        let body = json!({"token": token.expose_secret()});
        client().post(format!("{}/v1/auth/setup", server.base)).json(&body)
    };
    for (name, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        assert!(is_foreign(logging_in().header(name, value)).await, "{name}: {value}");
        assert!(is_foreign(setting_up().header(name, value)).await, "{name}: {value}");
    }
    assert!(!is_foreign(logging_in().header("origin", &server.base)).await);
    assert!(!is_foreign(setting_up()).await, "clients other than browsers send no origin");

    let logging_out = || browser.request(Method::DELETE, SESSION);
    assert!(is_foreign(logging_out()).await);
    assert!(is_foreign(logging_out().header("origin", "https://evil.example")).await);
    assert_eq!(browser.get(SESSION).await.status(), 200);
}

#[tokio::test]
async fn rejected_origins_count_as_failed_authentication() {
    let server = idle_setup().config(|config| config.limits.failed_auth_per_minute = 2).start().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    for status in [403, 403, 429] {
        let response = browser.request(Method::POST, "/v1/apps").json(&json!({})).send().await.unwrap();
        assert_eq!(response.status(), status);
    }
    assert_eq!(browser.get(SESSION).await.status(), 200);
}

#[tokio::test]
async fn forwarded_host_and_scheme_of_a_trusted_proxy_are_believed() {
    let server = idle_setup()
        .config(|config| config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start()
        .await;
    let key = server.key(Service::Console);
    let through = |request: RequestBuilder, proto: &str| {
        let request = request.header("x-forwarded-proto", proto).header("x-forwarded-host", "mk.example.org");
        request.header("x-forwarded-for", "192.0.2.7").header("origin", "https://mk.example.org")
    };
    let post = client().post(format!("{}{SESSION}", server.base)).json(&json!({"key": key}));
    let response = through(post, "https, http").send().await.unwrap();
    assert_eq!(response.status(), 201);
    let cookie = set_cookie(&response);
    let attributes = cookie.strip_prefix("__Host-mk_session=").unwrap().split_once("; ").unwrap().1;
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Secure");

    let browser = Browser::with(&server, &cookie);
    let write = || browser.request(Method::POST, "/v1/apps").json(&json!({}));
    assert!(!is_foreign(through(write(), "https")).await);
    assert!(is_foreign(through(write(), "https").header("origin", "https://evil.example")).await);
    let plain = through(browser.request(Method::GET, SESSION), "http").send().await.unwrap();
    assert_eq!(plain.status(), 401, "a `__Host-` cookie is not accepted over plain HTTP");
    let renamed = Browser::with(&server, &browser.cookie.replace("__Host-", ""));
    let get = through(renamed.request(Method::GET, SESSION), "https").send().await.unwrap();
    assert_eq!(get.status(), 401, "nor is an unprefixed cookie over HTTPS, which another site may have set");
    let gone = through(browser.request(Method::DELETE, SESSION), "https").send().await.unwrap();
    assert_eq!(set_cookie(&gone), "__Host-mk_session=; HttpOnly; SameSite=Strict; Path=/; Secure; Max-Age=0");
}

#[tokio::test]
async fn forwarded_host_and_scheme_of_anyone_else_are_ignored() {
    let (server, browser) = with_browser().await;
    let write = browser.request(Method::POST, "/v1/apps").json(&json!({}));
    let forged = write.header("x-forwarded-host", "evil.example").header("origin", "https://evil.example");
    assert!(is_foreign(forged).await);
    let get = browser.request(Method::GET, SESSION).header("x-forwarded-proto", "https");
    assert_eq!(get.send().await.unwrap().status(), 200, "the forwarded scheme is ignored");
    let response = log_in(&server, &server.key(Service::Console)).await;
    assert!(!set_cookie(&response).contains("Secure"));
}

#[tokio::test]
async fn over_tls_the_cookie_is_secure_in_both_http_versions() {
    let identity = Identity::new();
    let server = idle_setup().options(|options| options.tls = Some(identity.tls())).start().await;
    let key = server.key(Service::Console);
    let base = format!("https://localhost:{}", server.authority().rsplit_once(':').unwrap().1);
    for client in [identity.client().http1_only().build().unwrap(), identity.client().build().unwrap()] {
        let ask = |method: Method, path: &str| {
            client.request(method, format!("{base}{path}")).header("origin", base.as_str())
        };
        let response = ask(Method::POST, SESSION).json(&json!({"key": key})).send().await.unwrap();
        assert_eq!(response.status(), 201);
        let cookie = set_cookie(&response);
        assert!(cookie.starts_with("__Host-mk_session=") && cookie.ends_with("; Secure"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        let write = || ask(Method::POST, "/v1/apps").header("cookie", cookie).json(&json!({}));
        assert!(!is_foreign(write()).await);
        let foreign = client.post(format!("{base}/v1/apps")).header("cookie", cookie).json(&json!({}));
        assert!(is_foreign(foreign.header("origin", "https://evil.example")).await);
        let shown: Response = ask(Method::GET, SESSION).header("cookie", cookie).send().await.unwrap();
        assert_eq!(shown.status(), 200);
    }
}
