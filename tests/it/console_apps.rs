//! `/v1/apps`: creating, reading, changing and deleting apps over HTTP.

use mk::api::Service;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::support::console::{Console, server, text};

#[tokio::test]
async fn an_app_can_be_created_shown_changed_and_deleted() {
    let (server, console) = server().await;
    let create =
        console.request(Method::POST, "/v1/apps").json(&json!({"name": " news ", "budget_usd": 25.5}));
    let response = Console::ask(create).await;
    assert_eq!(response.status(), 201);
    let place = response.url().join(response.headers()["location"].to_str().unwrap()).unwrap();
    let app: Value = response.json().await.unwrap();
    let id = text(&app["id"]);
    assert_eq!(place.path(), format!("/v1/apps/{id}"));
    let expected = json!({
        "id": id,
        "name": "news",
        "budget_usd": 25.5,
        "spent_usd": 0.0,
        "budget_used_percent": 0.0,
        "budget_threshold": null,
        "created_at": server.clock.now().rfc3339(),
        "active_keys": 0
    });
    assert_eq!(app, expected);
    let path = place.path();
    assert_eq!(console.get(path).await, (200, expected.clone()));

    let changed = |name: &str, budget: Value| {
        let mut app = expected.clone();
        app["name"] = json!(name);
        let (percent, threshold) = match budget.as_f64() {
            None => (Value::Null, Value::Null),
            // A budget of zero counts as used up.
            Some(0.0) => (json!(100.0), json!(100)),
            Some(_) => (json!(0.0), Value::Null),
        };
        (app["budget_used_percent"], app["budget_threshold"]) = (percent, threshold);
        app["budget_usd"] = budget;
        (200, app)
    };
    for (patch, name, budget) in [
        (json!({}), "news", json!(25.5)),
        (json!({"name": "press"}), "press", json!(25.5)),
        (json!({"budget_usd": null}), "press", Value::Null),
        (json!({"budget_usd": 0}), "press", json!(0.0)),
        (json!({"name": "news", "budget_usd": 0.000_000_001}), "news", json!(0.000_000_001)),
    ] {
        assert_eq!(console.patch(path, &patch).await, changed(name, budget), "{patch}");
        assert_eq!(console.get(path).await.1["name"], name);
    }

    console.key(&id, &json!({"service": "verify"})).await;
    let (_, key) = console.key(&id, &json!({"service": "verify"})).await;
    assert_eq!(console.delete(&key).await.0, 200);
    assert_eq!(console.get(path).await.1["active_keys"], 1);
    let deleted_at = server.clock.now().rfc3339();
    let deleted = |revoked: u64| (200, json!({"id": id, "deleted_at": deleted_at, "revoked_keys": revoked}));
    assert_eq!(console.delete(path).await, deleted(1));
    server.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(console.delete(path).await, deleted(0), "repeatable, with the original time");
    assert_eq!(console.get(path).await.0, 404);
    assert_eq!(console.patch(path, &json!({"name": "x"})).await.0, 404);
    assert_eq!(console.post(&format!("{path}/keys"), &json!({"service": "verify"})).await.0, 404);
    assert_eq!(console.get(&key).await.0, 404);
    let names = console.walk("/v1/apps?", 200).await.iter().map(|app| text(&app["name"])).collect::<Vec<_>>();
    assert_eq!(names, ["default"]);
}

#[tokio::test]
async fn deleting_an_app_revokes_its_keys_at_once_and_frees_its_name() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let (key, _) = console.key(&app, &json!({"service": "verify"})).await;
    assert_eq!(server.verify(&key, &json!({})).send().await.unwrap().status(), 400);
    assert_eq!(console.delete(&format!("/v1/apps/{app}")).await.0, 200);
    let refused = server.verify(&key, &json!({})).send().await.unwrap();
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "api_key_revoked");
    assert_ne!(console.app("news").await, app);
}

#[tokio::test]
async fn deleting_its_own_app_revokes_the_console_key() {
    let (server, console) = server().await;
    let app = console.app("tools").await;
    let (key, _) = console.key(&app, &json!({"service": "console"})).await;
    let own = Console { key, ..Console::of(&server) };
    assert_eq!(own.delete(&format!("/v1/apps/{app}")).await.0, 200);
    assert_eq!(own.get("/v1/apps").await.1["code"], "api_key_revoked");
    assert_eq!(console.get("/v1/apps").await.0, 200);
}

#[tokio::test]
async fn app_names_are_unique_and_the_last_app_cannot_be_deleted() {
    let (_server, console) = server().await;
    let default = text(&console.get("/v1/apps").await.1["data"][0]["id"]);
    let (status, error) = console.delete(&format!("/v1/apps/{default}")).await;
    assert_eq!((status, &error["error"], &error["code"]), (409, &json!("Conflict"), &json!("conflict")));
    assert!(error["message"].as_str().unwrap().contains("last app"), "{error}");
    assert_eq!(console.get(&format!("/v1/apps/{default}")).await.1["active_keys"], 1);

    let news = console.app("news").await;
    let (status, error) = console.post("/v1/apps", &json!({"name": " news"})).await;
    assert_eq!((status, &error["code"]), (409, &json!("conflict")));
    let path = format!("/v1/apps/{news}");
    let (status, error) = console.patch(&path, &json!({"name": "default", "budget_usd": 7})).await;
    assert_eq!((status, &error["code"]), (409, &json!("conflict")), "{error}");
    assert_eq!(console.get(&path).await.1["budget_usd"], Value::Null, "a refused change changes nothing");
    assert_eq!(console.patch(&path, &json!({"name": "news"})).await.0, 200, "its own name is not taken");

    assert_eq!(console.delete(&format!("/v1/apps/{default}")).await.0, 200, "it is no longer the last app");
}

#[tokio::test]
async fn location_headers_work_behind_a_path_prefix() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, key) = console.key(&app, &json!({"service": "verify"})).await;
    let (list, rotation) = (format!("/v1/apps/{app}/keys"), format!("{key}/rotate"));
    for (path, body, list) in [
        ("/v1/apps", json!({"name": "other"}), "/v1/apps"),
        (&list, json!({"service": "verify"}), &list),
        (&rotation, json!({"grace_seconds": 60}), &list),
    ] {
        let response = Console::ask(console.request(Method::POST, path).json(&body)).await;
        assert_eq!(response.status(), 201, "{path}");
        let place = text(&json!(response.headers()["location"].to_str().unwrap()));
        let id = text(&response.json::<Value>().await.unwrap()["id"]);
        let outside = Url::parse(&format!("https://example.com/facts{path}")).unwrap().join(&place).unwrap();
        assert_eq!(outside.as_str(), format!("https://example.com/facts{list}/{id}"));
        let (status, shown) = console.get(outside.path().strip_prefix("/facts").unwrap()).await;
        assert_eq!((status, text(&shown["id"])), (200, id));
    }
}

#[tokio::test]
async fn apps_are_found_by_id_only() {
    let (server, console) = server().await;
    assert_eq!(console.get("/v1/apps/default").await.0, 404, "names are not accepted in paths");
    assert_eq!(console.get("/v1/apps/default/keys").await.0, 404);
    assert_eq!(console.post("/v1/apps/default/keys", &json!({"service": "verify"})).await.0, 404);
    let (_, id) = server.key_with(Service::Verify, |_| {});
    assert_eq!(console.get(&format!("/v1/apps/default/keys/{id}")).await.0, 404);
    assert_eq!(console.delete("/v1/apps/default").await.0, 404);
    let (_, error) = console.get("/v1/apps/app_00000000000000000000000000000000").await;
    assert_eq!(error["code"], "not_found");
    assert!(error["message"].as_str().unwrap().contains("/v1/apps"), "{error}");
}
