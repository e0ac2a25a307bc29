//! The store while a server runs: deleted, broken, shared.

use std::path::PathBuf;

use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::browser::{Browser, refusal};
use crate::support::events::Events;
use crate::support::panel::{config, idle_server, panel_by};
use crate::support::provider::FakeProvider;
use crate::support::server::{Setup, TestServer, client};

async fn provider() -> FakeProvider {
    panel_by(|_, ask| ask.choose("Paris")).await
}

fn data(server: &TestServer) -> PathBuf {
    server.dir.path().join("data")
}

async fn assert_unavailable(server: &TestServer, key: &str) {
    let response =
        server.verify(key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert!(response.headers().contains_key("x-ratelimit-remaining"));
    let error: Value = response.json().await.unwrap();
    assert_eq!(
        (&error["error"], &error["code"]),
        (&json!("Service Unavailable"), &json!("store_unavailable"))
    );
    let text = error.to_string();
    assert!(!["/tmp", "mk.db", "SELECT", "no such table"].iter().any(|word| text.contains(word)), "{text}");

    let health = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert_eq!(health.status(), 503);
    assert_eq!(health.json::<Value>().await.unwrap(), json!({"status": "store_unavailable"}));
}

#[tokio::test]
async fn an_unreadable_store_admits_no_requests_until_it_is_repaired() {
    let provider = provider().await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let database = rusqlite::Connection::open(data(&server).join("mk.db")).unwrap();
    database.execute_batch("ALTER TABLE keys RENAME TO hidden").unwrap();
    assert_unavailable(&server, &key).await;
    database.execute_batch("ALTER TABLE hidden RENAME TO keys").unwrap();
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    events.end("completed");
}

#[tokio::test]
async fn a_deleted_store_admits_no_requests() {
    let provider = provider().await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    std::fs::remove_dir_all(data(&server)).unwrap();
    assert_unavailable(&server, &key).await;
}

#[tokio::test]
async fn a_replaced_store_admits_no_requests() {
    let provider = provider().await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    std::fs::rename(data(&server), server.dir.path().join("old")).unwrap();
    mk::storage::Store::open(&data(&server), server.clock.now()).unwrap();
    assert_unavailable(&server, &key).await;
}

#[tokio::test]
async fn two_servers_on_one_store_share_keys_but_not_limits() {
    let provider = provider().await;
    let setup = Setup::new(config(&provider.base_url));
    let (shared, dir) = (setup.config.clone(), setup.dir.clone());
    let one = setup.start().await;
    let two = Setup { config: shared, dir, ..Setup::new(config(&provider.base_url)) }.start().await;
    let (key, id) = one.key_with(Service::Verify, |new| new.per_minute = Some(1));
    let status =
        async |server: &TestServer| server.verify(&key, &json!({})).send().await.unwrap().status().as_u16();
    assert_eq!((status(&one).await, status(&one).await), (400, 429));
    assert_eq!((status(&two).await, status(&two).await), (400, 429), "each server counts on its own");
    one.app.store.revoke_key(&id, one.clock.now()).unwrap();
    assert_eq!((status(&one).await, status(&two).await), (401, 401));
}

#[tokio::test]
async fn the_console_works_while_the_ledger_cannot_be_read() {
    let server = idle_server().await;
    let (verify, id) = server.key_with(Service::Verify, |_| {});
    let console = server.key(Service::Console);
    let app = server.app.store.app("default").unwrap().id;
    let database = rusqlite::Connection::open(data(&server).join("ledger.db")).unwrap();
    database
        .execute_batch("ALTER TABLE key_last_used RENAME TO hidden; ALTER TABLE spend RENAME TO gone")
        .unwrap();

    let url = |path: &str| format!("{}/v1/{path}", server.base);
    let made = client().post(url("apps")).bearer_auth(&console).json(&json!({"name": "news"}));
    assert_eq!(made.send().await.unwrap().status(), 201, "the app was created, and the response says so");
    let browser = Browser::log_in(&server, &console).await;
    assert_eq!(browser.get("/v1/auth/session").await.status(), 200);
    let path = format!("/v1/apps/{app}/keys/{id}");
    assert_eq!(browser.write(Method::DELETE, &path, &Value::Null).await.status(), 200);
    let refused =
        server.verify(&verify, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap();
    assert_eq!(refusal(refused).await, (401, "api_key_revoked".to_owned()));
}
