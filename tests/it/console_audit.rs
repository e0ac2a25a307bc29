//! `/v1/audit`: an entry for every write, whatever its actor and channel, and no secrets.

use std::time::Duration;

use mk::api::Service;
use mk::hex::hex;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::browser::Browser;
use crate::support::console::{Console, server, text};
use crate::support::log::{Log, on_this_thread};
use crate::support::mk::operator;
use crate::support::panel::idle_setup;
use crate::support::server::{NOON, client};

/// The newest entry.
async fn newest(console: &Console) -> Value {
    console.get("/v1/audit?limit=1").await.1["data"][0].clone()
}

#[tokio::test]
async fn every_write_is_audited_with_its_details() {
    let (_server, console) = server().await;
    let assert_newest = async |action: &str, object: &str, name: Value, details: Value| {
        let entry = newest(&console).await;
        assert_eq!((&entry["action"], &entry["object"]), (&json!(action), &json!(object)));
        assert_eq!((&entry["object_name"], &entry["details"]), (&name, &details), "{action}");
    };
    let app = console.app("news").await;
    assert_newest("app.created", &app, json!("news"), json!({})).await;
    let path = format!("/v1/apps/{app}");
    console.patch(&path, &json!({"name": "press", "budget_usd": 5})).await;
    let changed = json!({"name": {"from": "news", "to": "press"}, "budget_usd": {"from": null, "to": 5.0}});
    assert_newest("app.updated", &app, json!("press"), changed).await;
    let (_, key) = console
        .key(&app, &json!({"service": "verify", "name": "ci", "limits": {"per_day": 5}, "models": ["a/*"]}))
        .await;
    let id = text(&json!(key.rsplit('/').next()));
    let set = json!({"app_id": app, "service": "verify", "per_day": 5, "models": ["a/*"]});
    assert_newest("key.created", &id, json!("ci"), set).await;
    console.patch(&key, &json!({"name": null, "models": [], "limits": {"per_day": 5}})).await;
    let changed = json!({"name": {"from": "ci", "to": null}, "models": {"from": ["a/*"], "to": []}});
    assert_newest("key.updated", &id, Value::Null, changed).await;
    let (_, new) = console.post(&format!("{key}/rotate"), &json!({"grace_seconds": 60})).await;
    let ends = NOON.plus(Duration::from_mins(1)).rfc3339();
    assert_newest("key.rotated", &id, Value::Null, json!({"replaced_by": new["id"], "ends_at": ends})).await;
    console.delete(&key).await;
    assert_newest("key.revoked", &id, Value::Null, json!({})).await;
    console.delete(&path).await;
    assert_newest("app.deleted", &app, json!("press"), json!({"revoked_keys": 1})).await;
    let of_key = console.get(&format!("/v1/audit?object={}", text(&new["id"]))).await.1;
    assert_eq!(of_key["data"][0]["action"], "key.revoked");
    assert_eq!(of_key["data"][0]["details"], json!({"with_app": app}));
}

#[tokio::test]
async fn refused_logins_are_audited_without_what_was_presented() {
    let (server, console) = server().await;
    let (key, id) = server.key_with(Service::Console, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let log_in = async |path: &str, body: Value| {
        client().post(format!("{}/v1/auth/{path}", server.base)).json(&body).send().await.unwrap().status()
    };
    for (path, body, reason) in [
        ("session", json!({"key": "wrong-zebra"}), "invalid_api_key"),
        ("session", json!({"key": key}), "api_key_revoked"),
        ("setup", json!({"token": "wrong-zebra"}), "invalid_setup_token"),
    ] {
        assert_eq!(log_in(path, body).await, 401);
        let entry = newest(&console).await;
        assert_eq!((&entry["action"], &entry["channel"]), (&json!("session.refused"), &json!("dashboard")));
        assert_eq!((&entry["object"], &entry["actor"]), (&json!("console"), &Value::Null));
        assert_eq!((&entry["address"], &entry["details"]), (&json!("127.0.0.1"), &json!({"reason": reason})));
        assert!(!entry.to_string().contains("zebra") && !entry.to_string().contains(&key), "{entry}");
    }
    let before = console.audit().await.len();
    // A body that is no login, and one that the rate limit refuses, say nothing about a key.
    assert_eq!(log_in("session", json!({})).await, 400);
    while log_in("session", json!({"key": "x"})).await != 429 {}
    assert_eq!(log_in("session", json!({"key": "x"})).await, 429);
    assert_eq!(console.audit().await.len(), before + 6);
}

#[tokio::test]
async fn requests_that_change_nothing_are_not_audited() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "verify", "name": "ci"})).await;
    console.delete(&key).await;
    let path = format!("/v1/apps/{app}");
    let (_, kept) = console.key(&app, &json!({"service": "verify", "name": "ci"})).await;
    let before = console.audit().await;
    assert_eq!(console.delete(&key).await.0, 200);
    assert_eq!(console.patch(&path, &json!({})).await.0, 200);
    assert_eq!(console.patch(&path, &json!({"name": "news", "budget_usd": null})).await.0, 200);
    assert_eq!(console.patch(&kept, &json!({"name": " ci", "limits": null, "models": []})).await.0, 200);
    assert_eq!(console.patch(&key, &json!({"name": "x"})).await.0, 409);
    assert_eq!(console.post("/v1/apps", &json!({"name": "news"})).await.0, 409);
    assert_eq!(console.post("/v1/apps", &json!({})).await.0, 400);
    assert_eq!(console.audit().await, before);
    assert_eq!(console.delete(&path).await.0, 200);
    let before = console.audit().await;
    assert_eq!(console.delete(&path).await.0, 200);
    assert_eq!(console.audit().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_entry_names_the_actor_and_the_channel() {
    let (server, console) = server().await;
    let request = console.request(Method::POST, "/v1/apps").header("x-request-id", "mine-1");
    assert_eq!(Console::ask(request.json(&json!({"name": "by api"}))).await.status(), 201);
    let browser = Browser::log_in(&server, &console.key).await;
    let made = browser.write(Method::POST, "/v1/apps", &json!({"name": "by dashboard"})).await;
    assert_eq!(made.status(), 201);
    let data = server.dir.path().join("data");
    assert_eq!(operator(&data, &["apps", "create", "by cli"]).run_beside().await.code(), 0);

    let entries = console.audit().await;
    let of = |name: &str| {
        let named = |entry: &&Value| entry["action"] == "app.created" && entry["object_name"] == name;
        let found: Vec<&Value> = entries.iter().filter(named).collect();
        assert_eq!(found.len(), 1, "{name}: {entries:?}");
        found[0].clone()
    };
    let who = |entry: &Value| {
        ["channel", "actor", "actor_name", "address", "request_id"].map(|field| entry[field].clone())
    };
    let ops = (json!(console.key_id), json!("ops"), json!("127.0.0.1"));
    let by_api = of("by api");
    assert_eq!(who(&by_api), [json!("api"), ops.0.clone(), ops.1.clone(), ops.2.clone(), json!("mine-1")]);
    assert_eq!(by_api["at"], NOON.rfc3339());
    assert!(text(&by_api["id"]).starts_with("aud_"), "{by_api}");
    let id = json!(made.headers()["x-request-id"].to_str().unwrap());
    assert_eq!(who(&of("by dashboard")), [json!("dashboard"), ops.0, ops.1, ops.2, id]);
    let by_cli = of("by cli");
    assert_eq!((&by_cli["channel"], &by_cli["actor"]), (&json!("cli"), &Value::Null));
    assert_eq!((&by_cli["address"], &by_cli["request_id"]), (&Value::Null, &Value::Null));
    let by_itself = of("default");
    assert_eq!(who(&by_itself), [json!("server"), Value::Null, Value::Null, Value::Null, Value::Null]);
    let login = entries.iter().find(|entry| entry["action"] == "session.created").unwrap();
    assert_eq!((&login["actor"], &login["channel"]), (&json!(console.key_id), &json!("dashboard")));
}

#[tokio::test]
async fn concurrent_changes_are_both_audited_in_order() {
    let (_server, console) = server().await;
    let path = format!("/v1/apps/{}", console.app("0").await);
    for round in 0..5 {
        let [a, b] = ["a", "b"].map(|side| json!({"name": format!("{round} {side}")}));
        let ((first, _), (second, _)) = tokio::join!(console.patch(&path, &a), console.patch(&path, &b));
        assert_eq!((first, second), (200, 200));
    }
    let entries = console.walk("/v1/audit?action=app.updated&", 3).await;
    assert_eq!(entries.len(), 10);
    let mut name = json!("0");
    for entry in entries.iter().rev() {
        assert_eq!(entry["details"]["name"]["from"], name, "{entries:#?}");
        name = entry["details"]["name"]["to"].clone();
    }
    assert_eq!(console.get(&path).await.1["name"], name);
}

#[tokio::test]
async fn no_secret_is_in_the_audit_or_the_log() {
    let log = Log::default();
    let guard = log.capture("trace");
    let server = idle_setup().options(on_this_thread).start().await;
    let console = Console::of(&server);
    let browser = Browser::log_in(&server, &console.key).await;
    let mut secrets = vec![console.key.clone(), browser.token().to_owned()];
    let app = console.app("news").await;
    for service in Service::ALL {
        let (key, path) = console.key(&app, &json!({"service": service, "name": "ci"})).await;
        let (_, new) = console.post(&format!("{path}/rotate"), &json!({})).await;
        // Keys sent by mistake where an id belongs must not be logged either.
        assert_eq!(console.get(&format!("/v1/apps/{app}/keys/{key}")).await.0, 404);
        assert_eq!(console.get(&format!("/v1/apps/{key}")).await.0, 404);
        let nowhere = client().get(format!("{}/{key}/rotate", server.base)).send().await.unwrap();
        assert_eq!(nowhere.status(), 404);
        secrets.extend([key, text(&new["key"])]);
        console.patch(&path, &json!({"name": "other"})).await;
        console.delete(&path).await;
    }
    browser.write(Method::DELETE, "/v1/auth/session", &json!({})).await;
    console.delete(&format!("/v1/apps/{app}")).await;
    let audit = json!(console.audit().await).to_string();
    server.shutdown().await;
    drop(guard);

    let (log, entries) = (log.text(), audit);
    assert!(log.contains(&app) && entries.contains(&app));
    for secret in secrets {
        let random = secret.rsplit('_').next().unwrap();
        let hash = hex(&Sha256::digest(&secret));
        for text in [&log, &entries] {
            assert!(!text.contains(random), "a secret is exposed");
            assert!(!text.to_lowercase().contains(&hash), "a hash is exposed");
        }
    }
}

#[tokio::test]
async fn entries_are_found_by_parts_of_names_in_any_letter_case() {
    let (_server, console) = server().await;
    let app = console.app("Website").await;
    console.key(&app, &json!({"service": "verify", "name": "nightly CI"})).await;
    let found = async |query: &str| {
        let (status, page) = console.get(&format!("/v1/audit?{query}")).await;
        assert_eq!(status, 200, "{page}");
        page["data"].as_array().unwrap().iter().map(|entry| text(&entry["action"])).collect::<Vec<_>>()
    };
    assert_eq!(found("object_name=website").await, ["app.created"]);
    assert_eq!(found("object_name=ci&action=key.created").await, ["key.created"]);
    assert_eq!(found("actor_name=OP").await, ["key.created", "app.created"]);
    assert_eq!(found("actor_name=ops&object_name=SITE").await, ["app.created"]);
    let odd = console.app("100% 'quoted\"; DROP TABLE apps; --").await;
    for part in ["100%25", "%27quoted%22", "drop%20table%20apps;%20--"] {
        assert_eq!(found(&format!("object_name={part}")).await, ["app.created"], "{part}");
    }
    assert_eq!(console.get(&format!("/v1/apps/{odd}")).await.0, 200);
    for none in
        ["object_name=w%25e", "object_name=w_bsite", "actor_name=o%25", "object_name=%27%20OR%20%271%27=%271"]
    {
        assert_eq!(found(none).await, Vec::<String>::new(), "{none}");
    }
}
