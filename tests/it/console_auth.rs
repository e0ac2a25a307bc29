//! Logging in to the dashboard: which keys may, how often, and the resulting session.

use std::time::Duration;

use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::browser::{Browser, audit, is_let_in, log_in, refusal, set_cookie};
use crate::support::log::{Log, on_this_thread};
use crate::support::panel::{idle_server, idle_setup};
use crate::support::server::{NOON, Setup, client, header, sandbox};

const SESSION: &str = "/v1/auth/session";
const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_console_key_can_log_in() {
    let server = idle_server().await;
    let (key, id) = server.key_with(Service::Console, |new| new.name = Some("desk".to_owned()));
    let response = log_in(&server, &format!(" {key}\n")).await;
    assert_eq!((response.status().as_u16(), header(&response, "cache-control")), (201, "no-store"));
    assert_eq!(header(&response, "x-ratelimit-limit"), "10");
    let cookie = set_cookie(&response);
    let value = cookie.strip_prefix("mk_session=").unwrap();
    let (token, attributes) = value.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/");
    assert!(token.len() == 43 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{token}");
    let info: Value = response.json().await.unwrap();
    assert_eq!((&info["key"]["id"], &info["key"]["name"]), (&json!(id), &json!("desk")));
    assert_eq!(info["expires_at"], NOON.plus(12 * HOUR).rfc3339());
    assert_eq!((&info["idle_seconds"], &info["mode"]), (&json!(1800), &json!("live")));
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));

    let browser = Browser::with(&server, &cookie);
    let shown = browser.get(SESSION).await;
    assert_eq!((shown.status().as_u16(), header(&shown, "cache-control")), (200, "no-store"));
    let mut told: Value = shown.json().await.unwrap();
    // The key's last use is written a little later.
    told["key"]["last_used_at"] = info["key"]["last_used_at"].clone();
    assert_eq!(told, info);
    assert!(is_let_in(&browser.get("/v1/apps").await));
    assert!(is_let_in(&browser.write(Method::POST, "/v1/apps", &json!({})).await));

    let again = browser.write(Method::POST, SESSION, &json!({"key": key})).await;
    let second = Browser::with(&server, &set_cookie(&again));
    assert_ne!(second.token(), token, "logging in always creates a new session");
    assert_eq!(browser.get(SESSION).await.status(), 401, "the new session replaces the old one");
    assert_eq!(second.get(SESSION).await.status(), 200);
    assert_eq!(audit(&server)[0], ["session.created", "dashboard", &id, &id, "desk"]);
}

#[tokio::test]
async fn a_sandbox_session_has_mode_sandbox() {
    let server = Setup::new(sandbox()).start().await;
    let response = log_in(&server, &server.key(Service::Console)).await;
    assert_eq!(response.json::<Value>().await.unwrap()["mode"], "sandbox");
}

#[tokio::test]
async fn only_valid_console_keys_can_log_in() {
    let server = idle_server().await;
    let (revoked, id) = server.key_with(Service::Console, |_| {});
    server.app.store.revoke_key(&id, NOON).unwrap();
    let (expiring, _) = server.key_with(Service::Console, |new| new.expires_at = Some(NOON.plus(MINUTE)));
    let (elsewhere, _) =
        server.key_with(Service::Console, |new| new.addresses = vec!["10.0.0.0/8".to_owned()]);
    server.clock.advance(MINUTE);
    for (key, status, code) in [
        ("", 401, "missing_api_key"),
        ("mk_console_nonsense", 401, "invalid_api_key"),
        (&server.key(Service::Verify), 401, "wrong_service"),
        (&server.key(Service::Inference), 401, "wrong_service"),
        (&revoked, 401, "api_key_revoked"),
        (&expiring, 401, "api_key_expired"),
        (&elsewhere, 403, "address_not_allowed"),
    ] {
        let response = log_in(&server, key).await;
        assert!(!response.headers().contains_key("set-cookie"), "{code}");
        assert_eq!(refusal(response).await, (status, code.to_owned()));
    }
    let written = audit(&server);
    assert_eq!(written.len(), 7);
    assert!(written.iter().flatten().all(|field| !field.starts_with("session.created")), "{written:?}");
}

#[tokio::test]
async fn errors_about_the_login_body_do_not_repeat_it() {
    let server = idle_server().await;
    let post = |body: &'static str| {
        let post = client().post(format!("{}{SESSION}", server.base)).body(body);
        post.header("content-type", "application/json").send()
    };
    for (body, code) in [
        ("", "invalid_json"),
        ("{}", "missing_parameter"),
        (r#"{"key":["secret"]}"#, "invalid_parameter"),
        (r#"{"key":"secret","remember":"secret"}"#, "unsupported_parameter"),
    ] {
        let response = post(body).await.unwrap();
        assert_eq!(header(&response, "x-ratelimit-limit"), "10");
        let text = response.text().await.unwrap();
        assert!(text.contains(code) && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn login_attempts_are_limited_by_address_whatever_their_outcome() {
    let server = idle_setup()
        .config(|config| config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start()
        .await;
    let key = server.key(Service::Console);
    let attempt = async |key: &str, from: &str| {
        let post = client().post(format!("{}{SESSION}", server.base)).header("x-forwarded-for", from);
        post.json(&json!({"key": key})).send().await.unwrap()
    };
    for left in (0..10).rev() {
        let response = attempt(if left % 2 == 0 { &key } else { "wrong" }, "1.1.1.1").await;
        assert_eq!(header(&response, "x-ratelimit-remaining"), left.to_string());
    }
    let refused = attempt(&key, "1.1.1.1").await;
    assert_eq!(header(&refused, "retry-after"), "60");
    assert_eq!(refusal(refused).await, (429, "rate_limited_minute".to_owned()));
    assert_eq!(attempt(&key, "2.2.2.2").await.status(), 201);
    server.clock.advance(MINUTE);
    assert_eq!(attempt(&key, "1.1.1.1").await.status(), 201);
    let page = client().get(format!("{}/metrics", server.base)).bearer_auth(&key).send().await.unwrap();
    let page = page.text().await.unwrap();
    for line in [
        r#"mk_rate_limited_total{subject="login",window="minute"} 1"#,
        r#"mk_auth_failures_total{reason="invalid_api_key"} 5"#,
    ] {
        assert!(page.contains(line), "no {line} in {page}");
    }
}

#[tokio::test]
async fn wrong_keys_count_as_failed_authentication() {
    let server = idle_setup().config(|config| config.limits.failed_auth_per_minute = 2).start().await;
    let key = server.key(Service::Console);
    assert_eq!(log_in(&server, "wrong").await.status(), 401);
    assert_eq!(log_in(&server, "wrong").await.status(), 401);
    assert_eq!(log_in(&server, "wrong").await.status(), 429);
    assert_eq!(log_in(&server, &key).await.status(), 201, "a good key is not locked out");
}

#[tokio::test]
async fn invalid_session_cookies_are_rejected_and_counted() {
    let server = idle_setup().config(|config| config.limits.failed_auth_per_minute = 3).start().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    let mut changed = browser.token().to_owned();
    changed.replace_range(..1, if changed.starts_with('a') { "b" } else { "a" });
    let twice = format!("{0}; {0}", browser.cookie);
    let refused = async |cookie: &str| {
        let get = client().get(format!("{}/v1/apps", server.base)).header("cookie", cookie);
        refusal(get.send().await.unwrap()).await
    };
    for cookie in [format!("mk_session={changed}"), twice, "mk_session=".to_owned()] {
        assert_eq!(refused(&cookie).await, (401, "invalid_session".to_owned()), "{cookie}");
    }
    assert_eq!(refused("mk_session=x").await.0, 429, "guesses count as failures");
    let without = client().get(format!("{}{SESSION}", server.base)).send().await.unwrap();
    assert_eq!(header(&without, "x-ratelimit-limit"), "600", "a request without a cookie is no guess");
    assert_eq!(refusal(without).await, (401, "invalid_session".to_owned()));
    assert_eq!(refused("other=x").await.0, 429);
    assert_eq!(browser.get(SESSION).await.status(), 200);
}

#[tokio::test]
async fn nothing_secret_is_logged() {
    let log = Log::default();
    let guard = log.capture("trace");
    let server = idle_setup().options(on_this_thread).start().await;
    let key = server.key(Service::Console);
    let setup_token = server.app.setup.issue(NOON).unwrap();
    let setup_token = mk::secret::ExposeSecret::expose_secret(&setup_token);
    let response = client()
        .post(format!("{}/v1/auth/setup", server.base))
        .json(&json!({"token": setup_token}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 409);
    let browser = Browser::log_in(&server, &key).await;
    browser.get(SESSION).await;
    let mistyped = format!("{}x", &key[..key.len() - 1]);
    log_in(&server, &mistyped).await;
    browser.write(Method::DELETE, SESSION, &json!({})).await;
    browser.get(SESSION).await;
    server.shutdown().await;
    drop(guard);
    let text = log.text();
    assert!(text.contains("/v1/auth/session"), "{text}");
    for secret in [browser.token(), setup_token, &key["mk_console_".len()..key.len() - 6], &mistyped] {
        assert!(!text.contains(secret), "{secret} is logged");
    }
}
