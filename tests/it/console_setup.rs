//! Creating the first console key with the token of the one-time link.

use std::time::Duration;

use mk::api::Service;
use mk::keys::setup::LIFE;
use mk::secret::ExposeSecret;
use mk::storage::KeyFilter;
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::browser::{Browser, audit, refusal, set_cookie};
use crate::support::panel::{idle_server, idle_setup};
use crate::support::server::{NOON, TestServer, client};

fn issued(server: &TestServer) -> String {
    server.app.setup.issue(server.clock.now()).unwrap().expose_secret().to_owned()
}

async fn set_up(server: &TestServer, token: &str) -> Response {
    let post = client().post(format!("{}/v1/auth/setup", server.base));
    post.json(&json!({"token": token})).send().await.unwrap()
}

#[tokio::test]
async fn the_setup_token_creates_the_first_key_and_a_session() {
    let server = idle_server().await;
    let token = issued(&server);
    let response = set_up(&server, &token).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let browser = Browser::with(&server, &set_cookie(&response));
    let made: Value = response.json().await.unwrap();
    let (record, info) = (&made["created"], &made["session"]);
    assert_eq!((&record["name"], &record["app"]), (&json!("first console key"), &json!("default")));
    assert_eq!((&record["service"], &record["state"]), (&json!("console"), &json!("active")));
    assert_eq!((&info["key"]["id"], &info["idle_seconds"]), (&record["id"], &json!(1800)));

    let shown = browser.get("/v1/auth/session").await;
    assert_eq!((shown.status().as_u16(), &shown.json::<Value>().await.unwrap()), (200, info));
    let key = record["key"].as_str().unwrap();
    let own = client().get(format!("{}/v1/key", server.base)).bearer_auth(key).send().await.unwrap();
    assert_eq!(own.json::<Value>().await.unwrap()["key"]["id"], record["id"]);

    let id = record["id"].as_str().unwrap();
    let entry =
        |action: &str| [action, "dashboard", "setup link", id, "first console key"].map(str::to_owned);
    let expected = ["console.set_up", "key.created", "session.created"].map(entry);
    assert_eq!(audit(&server), expected);
    assert_eq!(refusal(set_up(&server, &token).await).await, (401, "invalid_setup_token".to_owned()));
}

#[tokio::test]
async fn no_other_setup_token_is_accepted() {
    let server = idle_server().await;
    let none = set_up(&server, "").await;
    assert_eq!(refusal(none).await, (401, "invalid_setup_token".to_owned()), "none was issued");
    let replaced = issued(&server);
    let token = issued(&server);
    for wrong in [&replaced, "", "x", &token[1..], &format!("{token}x"), &token.to_lowercase()] {
        let response = set_up(&server, wrong).await;
        assert!(!response.headers().contains_key("set-cookie"));
        assert_eq!(refusal(response).await, (401, "invalid_setup_token".to_owned()), "{wrong}");
    }
    server.clock.advance(LIFE);
    assert_eq!(refusal(set_up(&server, &token).await).await, (401, "invalid_setup_token".to_owned()));
    assert!(!server.app.store.has_console_key(NOON).unwrap());
    assert_eq!(refusal(set_up(&server, &issued(&server)).await).await.0, 201);
}

#[tokio::test]
async fn setup_conflicts_with_a_usable_console_key() {
    let server = idle_server().await;
    let token = issued(&server);
    server.key(Service::Verify);
    let (_, id) = server.key_with(Service::Console, |_| {});
    assert_eq!(refusal(set_up(&server, &token).await).await, (409, "conflict".to_owned()));
    server.app.store.revoke_key(&id, NOON).unwrap();
    assert_eq!(refusal(set_up(&server, &token).await).await.0, 401, "the token was used up by the attempt");
    let expires = NOON.plus(Duration::from_mins(1));
    server.key_with(Service::Console, |new| new.expires_at = Some(expires));
    server.clock.advance(Duration::from_mins(1));
    assert_eq!(
        set_up(&server, &issued(&server)).await.status(),
        201,
        "an expired console key is no conflict"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_setups_create_one_key() {
    let server = idle_server().await;
    let token = issued(&server);
    let all = futures_util::future::join_all((0..8).map(|_| set_up(&server, &token))).await;
    let statuses: Vec<u16> = all.iter().map(|response| response.status().as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 401, 409].contains(status)), "{statuses:?}");
    let keys = server.app.store.keys(&KeyFilter { revoked_too: true, ..KeyFilter::default() }).unwrap();
    assert_eq!(keys.len(), 1);
}

#[tokio::test]
async fn guessed_setup_tokens_are_counted_and_limited() {
    let server = idle_setup().config(|config| config.limits.failed_auth_per_minute = 3).start();
    let server = server.await;
    let token = issued(&server);
    for status in [401, 401, 401, 429] {
        assert_eq!(set_up(&server, "guess").await.status(), status);
    }
    let response = set_up(&server, &token).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-ratelimit-remaining"]),
        (201, &"5".parse().unwrap())
    );
}
