//! Restrictions of a key that are set over HTTP apply from the next request on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::chat::{Gateway, gateway, hello};
use crate::support::console::Console;
use crate::support::provider::Reply;
use crate::support::server::Setup;

struct Fixture {
    gateway: Gateway,
    console: Console,
    key: String,
    path: String,
}

impl Fixture {
    async fn with(body: Value) -> Self {
        let gateway = gateway(|_| Reply::Text("Hi".to_owned())).await;
        let console = Console::of(&gateway.server);
        let app = console.app("news").await;
        let (key, path) = console.key(&app, &body).await;
        Self { gateway, console, key, path }
    }

    async fn patch(&self, change: Value) {
        let (status, record) = self.console.patch(&self.path, &change).await;
        assert_eq!(status, 200, "{record}");
    }

    /// Requests a completion; returns the error code or `ok`.
    async fn ask(&self, model: &str) -> String {
        let mut body = hello();
        (body["model"], body["max_tokens"]) = (json!(model), json!(10));
        let response = self.gateway.post_as(&self.key, body.to_string()).send().await.unwrap();
        let body: Value = response.json().await.unwrap();
        body["code"].as_str().unwrap_or("ok").to_owned()
    }
}

#[tokio::test]
async fn rate_limits_apply_to_the_next_request() {
    let fixture =
        Fixture::with(json!({"service": "inference", "limits": {"per_minute": 1, "per_day": 3}})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    assert_eq!(fixture.ask("fake/m").await, "rate_limited_minute");
    fixture.patch(json!({"limits": {"per_minute": 0}})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    assert_eq!(fixture.ask("fake/m").await, "ok");
    assert_eq!(fixture.ask("fake/m").await, "rate_limited_day");
    fixture.patch(json!({"limits": null})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
}

#[tokio::test]
async fn model_restrictions_apply_to_the_next_request() {
    let fixture = Fixture::with(json!({"service": "inference", "models": ["fake/m"]})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    assert_eq!(fixture.ask("sandbox/alpha").await, "model_not_allowed");
    fixture.patch(json!({"models": ["sandbox/*"]})).await;
    assert_eq!(fixture.ask("sandbox/alpha").await, "ok");
    assert_eq!(fixture.ask("fake/m").await, "model_not_allowed");
    fixture.patch(json!({"models": null})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
}

#[tokio::test]
async fn address_restrictions_apply_to_the_next_request() {
    let fixture = Fixture::with(json!({"service": "inference", "addresses": ["10.0.0.0/8"]})).await;
    assert_eq!(fixture.ask("fake/m").await, "address_not_allowed");
    fixture.patch(json!({"addresses": ["10.0.0.0/8", "127.0.0.1"]})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
}

#[tokio::test]
async fn a_changed_expiry_applies_to_the_next_request() {
    let fixture = Fixture::with(json!({"service": "inference", "expires_at": "2026-11-20T12:00:01Z"})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    fixture.gateway.server.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.ask("fake/m").await, "api_key_expired");
    fixture.patch(json!({"expires_at": null})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
}

#[tokio::test]
async fn budgets_of_key_and_app_apply_to_the_next_request() {
    let fixture = Fixture::with(json!({"service": "inference", "budget_usd": 0.000_21})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    assert_eq!(fixture.ask("fake/m").await, "budget_exceeded");
    fixture.gateway.server.app.flush().unwrap();
    let shown = fixture.console.get(&fixture.path).await.1;
    assert_eq!((&shown["spent_usd"], &shown["budget_used_percent"]), (&json!(0.000_12), &json!(57.1)));
    assert_eq!(shown["budget_threshold"], 50);
    fixture.patch(json!({"budget_usd": null})).await;
    assert_eq!(fixture.ask("fake/m").await, "ok");
    let app = fixture.path.rsplit_once("/keys/").unwrap().0;
    assert_eq!(fixture.console.patch(app, &json!({"budget_usd": 0})).await.0, 200);
    assert_eq!(fixture.ask("fake/m").await, "budget_exceeded");
    assert_eq!(fixture.console.patch(app, &json!({"budget_usd": null})).await.0, 200);
    assert_eq!(fixture.ask("fake/m").await, "ok");
}

#[tokio::test]
async fn restrictions_survive_a_restart() {
    let fixture = Fixture::with(json!({"service": "inference"})).await;
    fixture.patch(json!({"addresses": ["10.0.0.0/8"]})).await;
    let (dir, key) = (fixture.gateway.server.dir.clone(), fixture.key.clone());
    let again = Setup::new(crate::support::chat::config(&fixture.gateway.provider.base_url, "", ""));
    fixture.gateway.server.shutdown().await;
    let again = again.config(|config| config.data_dir = dir.path().join("data")).start().await;
    let asked = Console { base: again.base.clone(), key, key_id: String::new() };
    assert_eq!(asked.get("/v1/key").await.1["code"], "address_not_allowed");
    assert_eq!(Console::of(&again).get(&fixture.path).await.0, 200);
}
