//! Lists: pages without gaps or duplicates, and filters.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::console::{Console, ids, server, text};

async fn keys(console: &Console, app: &str, count: usize) -> Vec<String> {
    let mut made = Vec::new();
    for _ in 0..count {
        let (_, path) = console.key(app, &json!({"service": "verify"})).await;
        made.push(text(&json!(path.rsplit('/').next())));
    }
    made
}

#[tokio::test]
async fn pages_of_any_size_contain_every_record_once_and_in_order() {
    let (_server, console) = server().await;
    let mut apps = ids(&console.walk("/v1/apps?", 200).await);
    for name in ["a", "b", "c", "d", "e"] {
        apps.push(console.app(name).await);
    }
    let made = keys(&console, &apps[1], 6).await;
    keys(&console, &apps[2], 1).await;
    let audit = ids(&console.walk("/v1/audit?", 200).await);
    assert!(audit.is_sorted_by(|newer, older| newer > older), "{audit:?}");
    for limit in [1, 2, 3, 5, 6, 7] {
        assert_eq!(ids(&console.walk("/v1/apps?", limit).await), apps, "{limit}");
        assert_eq!(ids(&console.walk(&format!("/v1/apps/{}/keys?", apps[1]), limit).await), made, "{limit}");
        assert_eq!(ids(&console.walk("/v1/audit?", limit).await), audit, "{limit}");
    }
    let reversed = |ids: &[String]| ids.iter().rev().cloned().collect::<Vec<_>>();
    for limit in [1, 2, 6, 7] {
        assert_eq!(ids(&console.walk("/v1/apps?order=newest&", limit).await), reversed(&apps), "{limit}");
        let path = format!("/v1/apps/{}/keys?order=newest&", apps[1]);
        assert_eq!(ids(&console.walk(&path, limit).await), reversed(&made), "{limit}");
    }
    assert_eq!(ids(&console.walk("/v1/apps?order=oldest&", 200).await), apps);
    assert_eq!(console.get("/v1/apps?order=random").await.1["param"], "order");
    let empty = json!({"data": [], "next_cursor": null});
    assert_eq!(console.get(&format!("/v1/apps/{}/keys", apps[3])).await, (200, empty.clone()));
    let after_last = format!("/v1/apps?cursor={}", apps[5]);
    assert_eq!(console.get(&after_last).await, (200, empty));
}

#[tokio::test]
async fn the_default_page_size_is_fifty() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    for _ in 0..51 {
        server.key_with(Service::Verify, |new| new.app.clone_from(&app));
    }
    let (_, page) = console.get(&format!("/v1/apps/{app}/keys")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 50);
    assert_eq!(page["next_cursor"], page["data"][49]["id"]);
    let (_, page) = console.get(&format!("/v1/apps/{app}/keys?limit=51")).await;
    assert_eq!((page["data"].as_array().unwrap().len(), &page["next_cursor"]), (51, &Value::Null));
}

#[tokio::test]
async fn paging_is_complete_while_records_are_added_and_deleted() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let list = format!("/v1/apps/{app}/keys");
    for limit in 1..=3 {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        let before = ids(&console.walk(&format!("{list}?"), 200).await);
        let mut added = keys(&console, &app, 4).await;
        loop {
            let (_, page) = console.get(&format!("{list}?limit={limit}{cursor}")).await;
            seen.extend(ids(page["data"].as_array().unwrap()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            if added.len() < 8 {
                added.extend(keys(&console, &app, 1).await);
                // Deleting the record at the cursor does not affect the next page.
                assert_eq!(console.delete(&format!("{list}/{next}")).await.0, 200);
            }
        }
        assert_eq!(seen, [before, added].concat(), "{limit}");
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    let before = ids(&console.walk("/v1/audit?", 200).await);
    loop {
        let (_, page) = console.get(&format!("/v1/audit?limit=3{cursor}")).await;
        seen.extend(ids(page["data"].as_array().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
        console.patch(&format!("/v1/apps/{app}"), &json!({"name": format!("news {}", seen.len())})).await;
    }
    assert_eq!(seen, before, "newest first, so new entries come before the first page");
}

#[tokio::test]
async fn a_cursor_stays_valid_after_its_record_is_deleted() {
    let (_server, console) = server().await;
    let (a, b) = (console.app("a").await, console.app("b").await);
    assert_eq!(console.delete(&format!("/v1/apps/{a}")).await.0, 200);
    assert_eq!(ids(&console.walk(&format!("/v1/apps?cursor={a}&"), 1).await[..1]), [b]);
}

#[tokio::test]
async fn keys_are_filtered_by_service_and_state() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let list = format!("/v1/apps/{app}/keys");
    let make = async |service: &str, expires_at: Value| {
        let (_, path) = console.key(&app, &json!({"service": service, "expires_at": expires_at})).await;
        text(&json!(path.rsplit('/').next()))
    };
    let active = make("verify", Value::Null).await;
    let expired = make("verify", json!("2026-11-20T12:00:01Z")).await;
    let revoked = make("inference", Value::Null).await;
    let both = make("console", json!("2026-11-20T12:00:01Z")).await;
    for id in [&revoked, &both] {
        assert_eq!(console.delete(&format!("{list}/{id}")).await.0, 200);
    }
    server.clock.advance(Duration::from_secs(1));
    for (filter, expected) in [
        ("", vec![&active, &expired, &revoked, &both]),
        ("state=active&", vec![&active]),
        ("state=expired&", vec![&expired]),
        ("state=revoked&", vec![&revoked, &both]),
        ("service=verify&", vec![&active, &expired]),
        ("service=console&state=revoked&", vec![&both]),
        ("service=inference&state=active&", vec![]),
    ] {
        for limit in [1, 2, 50] {
            let found = ids(&console.walk(&format!("{list}?{filter}"), limit).await);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter}");
        }
    }
    let states = console.walk(&format!("{list}?"), 50).await;
    let states: Vec<_> = states.iter().map(|key| text(&key["state"])).collect();
    assert_eq!(states, ["active", "expired", "revoked", "revoked"]);
}

#[tokio::test]
async fn the_audit_is_filtered_by_object_app_actor_and_action() {
    let (server, console) = server().await;
    let other = Console::of(&server);
    let app = console.app("news").await;
    other.app("press").await;
    other.patch(&format!("/v1/apps/{app}"), &json!({"budget_usd": 1})).await;
    let count = async |filter: &str| console.walk(&format!("/v1/audit?{filter}&"), 1).await.len();
    let actions = async |filter: &str| {
        let entries = console.walk(&format!("/v1/audit?{filter}&"), 2).await;
        entries.iter().map(|entry| text(&entry["action"])).collect::<Vec<_>>()
    };
    assert_eq!(actions(&format!("object={app}")).await, ["app.updated", "app.created"]);
    assert_eq!(actions(&format!("actor={}", other.key_id)).await, ["app.updated", "app.created"]);
    assert_eq!(count(&format!("actor={}&object={app}&action=app.updated", other.key_id)).await, 1);
    assert_eq!(count(&format!("actor={}&action=app.updated", console.key_id)).await, 0);
    assert_eq!(count("object=nobody").await, 0);

    let (_, key) = console.key(&app, &json!({"service": "verify"})).await;
    console.delete(&key).await;
    assert_eq!(
        actions(&format!("app={app}")).await,
        ["key.revoked", "key.created", "app.updated", "app.created"]
    );
    assert_eq!(actions(&format!("app={app}&action=key.created")).await, ["key.created"]);
    assert_eq!(actions(&format!("app={app}&actor={}", other.key_id)).await, ["app.updated"]);
    assert_eq!((count("app=nobody").await, count(&format!("app={app}&object=nobody")).await), (0, 0));
}
