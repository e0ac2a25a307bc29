//! Dashboard sessions on two servers: started at one, valid at the other, ended at both.

use reqwest::Method;
use serde_json::{Value, json};

use super::TwoServers;
use crate::support::browser::{Browser, refusal, set_cookie};
use crate::support::postgres::Postgres;
use crate::support::server::client;

const SESSION: &str = "/v1/auth/session";

/// Logs in at the first server; returns a browser for each server with this session.
async fn log_in(two: &TwoServers, key: &str) -> [Browser; 2] {
    let post = client().post(super::at(&two.servers[0], SESSION)).json(&json!({"key": key}));
    let answer = post.send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let cookie = set_cookie(&answer);
    [0, 1].map(|at: usize| Browser::at(&two.servers[at].base, &cookie))
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_session_is_valid_at_every_server_until_it_is_ended_at_one() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let [here, there] = log_in(&two, &two.consoles[0].key).await;
    assert_eq!(there.get(SESSION).await.status(), 200);
    assert_eq!(there.get("/v1/apps").await.status(), 200);
    let made = there.write(Method::POST, "/v1/apps", &json!({"name": "by dashboard"})).await;
    assert_eq!(made.status(), 201);
    assert_eq!(here.write(Method::DELETE, SESSION, &Value::Null).await.status(), 204);
    for browser in [&there, &here] {
        assert_eq!(refusal(browser.get("/v1/apps").await).await, (401, "invalid_session".to_owned()));
        let write = browser.write(Method::POST, "/v1/apps", &json!({"name": "x"})).await;
        assert_eq!(refusal(write).await, (401, "invalid_session".to_owned()));
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn revoking_a_key_ends_its_sessions_at_every_server() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), "http://127.0.0.1:0/v1").await;
    let (key, path) = two.key("console", &json!({})).await;
    let browsers = log_in(&two, &key).await;
    assert_eq!(browsers[1].get("/v1/apps").await.status(), 200);
    assert_eq!(two.consoles[0].delete(&path).await.0, 200);
    for browser in browsers.iter().rev() {
        assert_eq!(refusal(browser.get("/v1/apps").await).await, (401, "api_key_revoked".to_owned()));
    }
}
