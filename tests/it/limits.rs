//! Rate limits as callers see them, with a manual clock.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::server::{NOON, Setup, TestServer, client, header};

async fn server() -> TestServer {
    agreeing_panel().await.0
}

/// Sends an invalid request, which counts against the key's limits and does nothing else.
async fn invalid_request(server: &TestServer, key: &str) -> reqwest::Response {
    server.verify(key, &json!({})).send().await.unwrap()
}

#[tokio::test]
async fn of_sixty_one_quick_requests_exactly_one_gets_429() {
    let server = server().await;
    let key = server.key(Service::Verify);
    let requests = (0..61).map(|_| invalid_request(&server, &key));
    let statuses: Vec<u16> = futures_util::future::join_all(requests)
        .await
        .iter()
        .map(|response| response.status().as_u16())
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 1, "{statuses:?}");
    assert_eq!(
        statuses.iter().filter(|status| **status == 400).count(),
        60,
        "invalid requests count as well"
    );
}

#[tokio::test]
async fn the_headers_describe_the_window_with_the_fewest_requests_left() {
    let server = server().await;
    let key = server.key(Service::Verify);
    let first = invalid_request(&server, &key).await;
    assert_eq!(header(&first, "x-ratelimit-limit"), "60");
    assert_eq!(header(&first, "x-ratelimit-remaining"), "59");
    assert_eq!(header(&first, "x-ratelimit-reset"), (NOON.unix_ms() / 1000 + 60).to_string());
    assert_eq!(header(&first, "ratelimit-policy"), "\"minute\";q=60;w=60, \"day\";q=1000;w=86400");
    assert_eq!(header(&first, "ratelimit"), "\"minute\";r=59;t=60, \"day\";r=999;t=43200");

    server.clock.advance(Duration::from_secs(10));
    let second = invalid_request(&server, &key).await;
    assert_eq!(header(&second, "x-ratelimit-remaining"), "58");
    assert_eq!(
        header(&second, "x-ratelimit-reset"),
        (NOON.unix_ms() / 1000 + 60).to_string(),
        "the window resets when the oldest request leaves it"
    );
}

#[tokio::test]
async fn the_minute_is_a_sliding_window_and_retry_after_says_when_it_has_room() {
    let server = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(2));
    invalid_request(&server, &key).await;
    server.clock.advance(Duration::from_secs(30));
    invalid_request(&server, &key).await;
    let refused = invalid_request(&server, &key).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "30");
    assert_eq!(header(&refused, "x-ratelimit-remaining"), "0");
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"], "Rate Limit Exceeded");
    assert_eq!(body["code"], "rate_limited_minute");
    assert_eq!(body["message"], "Too many requests per minute");

    server.clock.advance(Duration::from_millis(29_999));
    assert_eq!(
        invalid_request(&server, &key).await.status(),
        429,
        "refused requests do not count, but it is too early"
    );
    server.clock.advance(Duration::from_millis(1));
    assert_eq!(invalid_request(&server, &key).await.status(), 400);
    assert_eq!(
        invalid_request(&server, &key).await.status(),
        429,
        "the second request is still in the window"
    );
}

#[tokio::test]
async fn the_day_is_a_utc_day_and_clients_are_told_not_to_retry() {
    let server = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_day = Some(1));
    invalid_request(&server, &key).await;
    let refused = invalid_request(&server, &key).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after"), "43200");
    assert_eq!(header(&refused, "x-should-retry"), "false");
    assert_eq!(header(&refused, "x-ratelimit-limit"), "1");
    assert_eq!(refused.json::<Value>().await.unwrap()["message"], "Too many requests per day");
    server.clock.advance(Duration::from_hours(12));
    assert_eq!(invalid_request(&server, &key).await.status(), 400);
}

#[tokio::test]
async fn the_headers_of_an_unlimited_key_say_so() {
    let server = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| {
        new.per_minute = Some(0);
        new.per_day = Some(0);
    });
    let response = invalid_request(&server, &key).await;
    assert_eq!(header(&response, "x-ratelimit-limit"), "2147483647");
    assert_eq!(header(&response, "x-ratelimit-remaining"), "2147483647");
    assert!(!response.headers().contains_key("ratelimit-policy"));
}

#[tokio::test]
async fn day_counters_survive_a_restart() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let setup = Setup::new(config(&provider.base_url));
    let (config, dir) = (setup.config.clone(), setup.dir.clone());
    let server = setup.start().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_day = Some(3));
    invalid_request(&server, &key).await;
    invalid_request(&server, &key).await;
    server.shutdown().await;

    let again =
        Setup { config, dir, ..Setup::new(crate::support::panel::config(&provider.base_url)) }.start().await;
    assert_eq!(invalid_request(&again, &key).await.status(), 400);
    assert_eq!(invalid_request(&again, &key).await.status(), 429);
}

#[tokio::test]
async fn failed_authentication_has_its_own_limit() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.limits.failed_auth_per_minute = 2)
        .start()
        .await;
    let key = server.key(Service::Verify);
    assert_eq!(invalid_request(&server, "wrong").await.status(), 401);
    let last = invalid_request(&server, "wrong").await;
    assert_eq!((last.status().as_u16(), header(&last, "x-ratelimit-remaining")), (401, "0"));
    assert_eq!(invalid_request(&server, "wrong").await.status(), 429);
    assert_eq!(invalid_request(&server, &key).await.status(), 400, "a valid key is not locked out");
    let health = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_eq!(health.status(), 200, "nor is health");
}

#[tokio::test]
async fn open_pages_are_limited_per_address_and_minute_only() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| {
            config.limits.open_pages_per_minute = 1;
            config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        })
        .start()
        .await;
    let health = |from: &'static str| {
        client().get(format!("{}/verify/v1/health", server.base)).header("x-forwarded-for", from).send()
    };
    assert_eq!(health("1.1.1.1").await.unwrap().status(), 200);
    let refused = health("1.1.1.1").await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "ratelimit-policy"), "\"minute\";q=1;w=60");
    assert_eq!(health("2.2.2.2").await.unwrap().status(), 200);
}
