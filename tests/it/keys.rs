//! Keys changed by another process: the server's very next request takes the change into account.

use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use mk::storage::Store;
use serde_json::{Value, json};

use crate::support::events::{Events, read_until};
use crate::support::eventually;
use crate::support::panel::{agreeing_panel, hanging_panel};

#[tokio::test]
async fn a_revocation_by_another_process_applies_to_the_next_request() {
    let (server, _provider) = agreeing_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);

    let other = Store::open(&server.dir.path().join("data"), server.clock.now()).unwrap();
    other.revoke_key(&id, server.clock.now()).unwrap();

    let refused = server.verify(&key, &json!({})).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.json::<Value>().await.unwrap()["message"], "API key has been revoked");
}

#[tokio::test]
async fn a_revocation_by_another_process_ends_open_streams() {
    let (server, provider) = hanging_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    let (kept, _) = server.key_with(Service::Verify, |_| {});
    let open = |key: &str| server.verify(key, &json!({"fact": "The Eiffel Tower is in Paris."})).send();
    let mut revoked = open(&key).await.unwrap().bytes_stream();
    let mut other = open(&kept).await.unwrap().bytes_stream();
    read_until(&mut revoked, "verifying_claim").await;
    read_until(&mut other, "verifying_claim").await;

    let store = Store::open(&server.dir.path().join("data"), server.clock.now()).unwrap();
    store.revoke_key(&id, server.clock.now()).unwrap();

    let rest = async {
        let mut rest = String::new();
        while let Some(chunk) = revoked.next().await {
            rest.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        rest
    };
    let rest = tokio::time::timeout(Duration::from_secs(5), rest).await.expect("the stream was not ended");
    let events = Events::parse(rest);
    assert_eq!(events.end("error")["code"], "api_key_revoked");
    assert_eq!(events.end("error")["message"], "API key has been revoked");
    eventually("the ended stream's calls stop", || provider.in_flight() == 3).await;
    let quiet = tokio::time::timeout(Duration::from_millis(300), other.next()).await;
    assert!(quiet.is_err(), "another key's stream continues: {quiet:?}");
}

#[tokio::test]
async fn an_expired_key_s_open_streams_end() {
    let (server, provider) = hanging_panel().await;
    let (key, _) = server.key_with(Service::Verify, |new| {
        new.expires_at = Some(server.clock.now().plus(Duration::from_mins(1)));
    });
    let mut stream = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    server.clock.advance(Duration::from_mins(1));
    let rest = async {
        let mut rest = String::new();
        while let Some(chunk) = stream.next().await {
            rest.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        rest
    };
    let rest = tokio::time::timeout(Duration::from_secs(5), rest).await.expect("the stream was not ended");
    let events = Events::parse(rest);
    assert_eq!(events.end("error")["code"], "api_key_expired");
    assert_eq!(events.end("error")["message"], "API key has expired");
    eventually("the ended stream's calls stop", || provider.in_flight() == 0).await;
}

#[tokio::test]
async fn deleting_an_app_revokes_its_keys() {
    let (server, _provider) = agreeing_panel().await;
    let store = &server.app.store;
    let app = mk::storage::AppRow {
        id: mk::id::new("app"),
        name: "website".into(),
        budget: None,
        created_at: server.clock.now(),
    };
    store.create_app(&app).unwrap();
    let (key, _) = server.key_with(Service::Verify, |new| new.app = "website".into());
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    assert_eq!(store.delete_app(&app.id, server.clock.now()).unwrap().revoked_keys, 1);
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn the_last_use_of_a_key_is_recorded() {
    let (server, _provider) = agreeing_panel().await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    assert_eq!(server.app.store.key(&id).unwrap().last_used_at, None);
    server.verify(&key, &json!({})).send().await.unwrap();
    eventually("last use is written", || server.app.store.key(&id).unwrap().last_used_at.is_some()).await;
}

#[tokio::test]
async fn keys_are_not_stored_in_plain_text() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let dir = server.dir.clone();
    let data = dir.path().join("data");
    server.shutdown().await;
    let secret = key.rsplit('_').next().unwrap();
    for entry in std::fs::read_dir(data).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}
