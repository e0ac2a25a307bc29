//! `GET /v1/key`: a key reads its own record.

use mk::api::Service;
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::browser::{Browser, refusal};
use crate::support::chat::gateway;
use crate::support::panel::{idle_server, idle_setup};
use crate::support::provider::Reply;
use crate::support::server::{NOON, TestServer, client};

async fn ask(server: &TestServer, key: &str) -> Response {
    client().get(format!("{}/v1/key", server.base)).bearer_auth(key).send().await.unwrap()
}

#[tokio::test]
async fn a_key_of_any_service_can_read_its_limits_without_using_them() {
    let server = idle_server().await;
    for service in Service::ALL {
        let (key, id) = server.key_with(service, |new| {
            new.name = Some("ci".to_owned());
            new.per_minute = Some(5);
        });
        for _ in 0..7 {
            assert_eq!(ask(&server, &key).await.status(), 200, "{service}");
        }
        let response = ask(&server, &key).await;
        let told = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            (told("x-ratelimit-limit"), told("x-ratelimit-remaining")),
            ("5".to_owned(), "5".to_owned())
        );
        assert_eq!(response.headers()["cache-control"], "no-store");
        let own: Value = response.json().await.unwrap();
        assert_eq!((&own["key"]["id"], &own["key"]["service"]), (&json!(id), &json!(service)));
        assert_eq!(own["minute"], json!({"limit": 5, "remaining": 5, "reset": NOON.unix_ms() / 1000 + 60}));
        let midnight = NOON.next_utc_midnight().unix_ms() / 1000;
        assert_eq!(own["day"], json!({"limit": 1000, "remaining": 1000, "reset": midnight}));
        assert!(!own.to_string().contains(&key));
    }
}

#[tokio::test]
async fn a_key_reads_its_remaining_requests_and_missing_limits() {
    let server = idle_server().await;
    let key = server.key(Service::Verify);
    server.verify(&key, &json!({})).send().await.unwrap();
    let own: Value = ask(&server, &key).await.json().await.unwrap();
    assert_eq!((&own["minute"]["remaining"], &own["day"]["remaining"]), (&json!(59), &json!(999)));
    let (open, _) = server.key_with(Service::Verify, |new| {
        new.per_minute = Some(0);
        new.per_day = Some(0);
    });
    let own: Value = ask(&server, &open).await.json().await.unwrap();
    assert_eq!((&own["minute"], &own["day"]), (&json!(null), &json!(null)));
}

#[tokio::test]
async fn a_session_can_read_its_key() {
    let server = idle_server().await;
    let (key, id) = server.key_with(Service::Console, |_| {});
    let browser = Browser::log_in(&server, &key).await;
    let own: Value = browser.get("/v1/key").await.json().await.unwrap();
    assert_eq!((&own["key"]["id"], &own["key"]["service"]), (&json!(id), &json!("console")), "{own}");
    assert_eq!(own["day"]["remaining"], 1000);
    server.app.store.revoke_key(&id, NOON).unwrap();
    assert_eq!(refusal(browser.get("/v1/key").await).await.0, 401);
}

#[tokio::test]
async fn invalid_keys_cannot_read_themselves() {
    let server = idle_server().await;
    let (revoked, id) = server.key_with(Service::Inference, |_| {});
    server.app.store.revoke_key(&id, NOON).unwrap();
    assert_eq!(refusal(ask(&server, &revoked).await).await, (401, "api_key_revoked".to_owned()));
    assert_eq!(refusal(ask(&server, "wrong").await).await, (401, "invalid_api_key".to_owned()));
    let (elsewhere, _) =
        server.key_with(Service::Verify, |new| new.addresses = vec!["10.0.0.0/8".to_owned()]);
    assert_eq!(refusal(ask(&server, &elsewhere).await).await, (403, "address_not_allowed".to_owned()));
    let none = client().get(format!("{}/v1/key", server.base)).send().await.unwrap();
    assert_eq!(refusal(none).await, (401, "missing_api_key".to_owned()));
}

#[tokio::test]
async fn reading_one_s_own_key_is_limited_by_address() {
    let setup = idle_setup();
    let server = setup.config(|config| config.limits.open_pages_per_minute = 1).start().await;
    let (one, two) = (server.key(Service::Verify), server.key(Service::Console));
    assert_eq!(ask(&server, &one).await.status(), 200);
    assert_eq!(ask(&server, &two).await.status(), 429);
}

#[tokio::test]
async fn a_key_reads_what_it_has_used_and_costs_that_nobody_knows_are_null() {
    let gateway = gateway(|_| Reply::Text("hello".to_owned())).await;
    let own = async || {
        gateway.server.app.flush().unwrap();
        ask(&gateway.server, &gateway.key).await.json::<Value>().await.unwrap()
    };
    let before = own().await;
    assert_eq!((&before["key"]["spent_usd"], &before["usage"]["requests"]), (&json!(0.0), &json!(0)));

    // Only the model `m` has a price.
    let mut body = crate::support::chat::hello();
    body["model"] = json!("fake/n");
    assert_eq!(gateway.json(&body).await.0, 200);
    let unpriced = own().await;
    let usage = &unpriced["usage"];
    assert_eq!((&usage["requests"], &usage["total_tokens"]), (&json!(1), &json!(110)), "{usage}");
    assert_eq!((&usage["cost_usd"], &unpriced["key"]["spent_usd"]), (&json!(null), &json!(null)));
    // The console says the same of the key, alone and in a list, and of its app.
    let console = gateway.server.key(Service::Console);
    let app = unpriced["key"]["app_id"].as_str().unwrap().to_owned();
    let read = async |path: String| -> Value {
        let address = format!("{}/v1/apps/{app}{path}", gateway.server.base);
        client().get(address).bearer_auth(&console).send().await.unwrap().json().await.unwrap()
    };
    let id = unpriced["key"]["id"].as_str().unwrap();
    assert_eq!(read(String::new()).await["spent_usd"], json!(null));
    assert_eq!(read(format!("/keys/{id}")).await["spent_usd"], json!(null));
    let list = read("/keys".to_owned()).await;
    let shown = list["data"].as_array().unwrap().iter().find(|key| key["id"] == id).unwrap();
    assert_eq!(shown["spent_usd"], json!(null));

    assert_eq!(gateway.json(&crate::support::chat::hello()).await.0, 200);
    let priced = own().await;
    assert!(priced["key"]["spent_usd"].as_f64().unwrap() > 0.0, "{priced}");
    assert_eq!((&priced["usage"]["requests"], &priced["usage"]["unpriced_attempts"]), (&json!(2), &json!(1)));
}
