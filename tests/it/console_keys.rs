//! `/v1/apps/{id}/keys`: creating, changing, rotating and revoking keys over HTTP.

use std::time::Duration;

use futures_util::StreamExt;
use mk::api::Service;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::browser::Browser;
use crate::support::chat::{self, gateway};
use crate::support::console::{Console, server, text};
use crate::support::events::{Events, read_until};
use crate::support::panel::hanging_panel;
use crate::support::provider::Reply;
use crate::support::server::{NOON, TestServer};

/// The error code of a request with this key, if it is rejected because of the key.
async fn refusal(server: &TestServer, key: &str) -> Option<String> {
    let error: Value = server.verify(key, &json!({})).send().await.unwrap().json().await.unwrap();
    if error["error"] == "Unauthorized" { Some(text(&error["code"])) } else { None }
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_works_at_once() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let list = format!("/v1/apps/{app}/keys");
    let (status, mut made) = console
        .post(
            &list,
            &json!({
                "service": "verify",
                "name": " ci ",
                "expires_at": "2027-01-31",
                "limits": {"per_minute": 7, "per_day": null},
                "models": ["fake/*"],
                "addresses": ["127.0.0.1", "10.1.2.3/8"],
                "budget_usd": 2.5
            }),
        )
        .await;
    assert_eq!(status, 201, "{made}");
    let key = text(&made.as_object_mut().unwrap().remove("key").unwrap());
    let id = text(&made["id"]);
    let expected = json!({
        "id": id,
        "app_id": app,
        "app": "news",
        "service": "verify",
        "name": "ci",
        "last4": key[key.len() - 4..],
        "state": "active",
        "created_at": NOON.rfc3339(),
        "expires_at": "2027-01-31T00:00:00.000Z",
        "last_used_at": null,
        "revoked_at": null,
        "replaced_by": null,
        "limits": {"per_minute": 7, "per_day": null},
        "models": ["fake/*"],
        "addresses": ["127.0.0.1/32", "10.0.0.0/8"],
        "budget_usd": 2.5,
        "spent_usd": 0.0,
        "budget_used_percent": 0.0,
        "budget_threshold": null,
        "cache": null,
        "verify": null,
        "end_users": null
    });
    assert_eq!(made, expected);
    let path = format!("{list}/{id}");
    assert_eq!(console.get(&path).await, (200, expected.clone()));
    assert_eq!(console.get(&list).await.1, json!({"data": [expected], "next_cursor": null}));
    assert_eq!(refusal(&server, &key).await, None);

    for service in Service::ALL {
        let (key, _) = console.key(&app, &json!({"service": service})).await;
        assert!(key.starts_with(&format!("mk_{service}_")), "{key}");
        let expected = (service != Service::Verify).then(|| "wrong_service".to_owned());
        assert_eq!(refusal(&server, &key).await, expected);
    }
}

#[tokio::test]
async fn a_new_inference_key_can_request_completions() {
    let gateway = gateway(|_| Reply::Text("Hi".to_owned())).await;
    let console = Console::of(&gateway.server);
    let app = console.app("news").await;
    let (key, path) = console.key(&app, &json!({"service": "inference"})).await;
    let ask = || gateway.post_as(&key, chat::hello().to_string()).send();
    assert_eq!(ask().await.unwrap().status(), 200);
    assert_eq!(console.delete(&path).await.0, 200);
    assert_eq!(ask().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_patch_changes_only_named_fields_and_null_clears_them() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, path) = console.key(&app, &json!({"service": "verify"})).await;
    let mut expected = console.get(&path).await.1;
    for (patch, field, value) in [
        (json!({}), "name", Value::Null),
        (json!({"name": " ci "}), "name", json!("ci")),
        (json!({"expires_at": "2027-01-31T12:00:00+01:00"}), "expires_at", json!("2027-01-31T11:00:00.000Z")),
        (json!({"limits": {"per_minute": 5}}), "limits", json!({"per_minute": 5, "per_day": null})),
        (json!({"limits": {"per_day": 0}}), "limits", json!({"per_minute": 5, "per_day": 0})),
        (json!({"limits": {}}), "limits", json!({"per_minute": 5, "per_day": 0})),
        (json!({"models": ["fake/*", "*"]}), "models", json!(["fake/*", "*"])),
        (json!({"addresses": ["::1"]}), "addresses", json!(["::1/128"])),
        (json!({"budget_usd": 3}), "budget_usd", json!(3.0)),
        (json!({"limits": {"per_minute": null}}), "limits", json!({"per_minute": null, "per_day": 0})),
        (json!({"name": null}), "name", Value::Null),
        (json!({"expires_at": null}), "expires_at", Value::Null),
        (json!({"limits": null}), "limits", json!({"per_minute": null, "per_day": null})),
        (json!({"models": null}), "models", json!([])),
        (json!({"addresses": []}), "addresses", json!([])),
        (json!({"budget_usd": null}), "budget_usd", Value::Null),
    ] {
        if field == "budget_usd" {
            expected["budget_used_percent"] = if value.is_null() { Value::Null } else { json!(0.0) };
        }
        expected[field] = value;
        assert_eq!(console.patch(&path, &patch).await, (200, expected.clone()), "{patch}");
    }
    assert_eq!(console.get(&path).await.1, expected);
}

#[tokio::test]
async fn a_revocation_is_final_immediate_and_idempotent() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let (key, path) = console.key(&app, &json!({"service": "verify"})).await;
    assert_eq!(refusal(&server, &key).await, None);
    let revoked = (200, json!({"id": path.rsplit('/').next(), "revoked_at": NOON.rfc3339()}));
    assert_eq!(console.delete(&path).await, revoked);
    assert_eq!(refusal(&server, &key).await.as_deref(), Some("api_key_revoked"));
    server.clock.advance(Duration::from_mins(1));
    assert_eq!(console.delete(&path).await, revoked, "repeatable, with the original time");

    let (status, error) = console.patch(&path, &json!({"name": "again"})).await;
    assert_eq!((status, &error["code"]), (409, &json!("conflict")));
    let (status, error) = console.post(&format!("{path}/rotate"), &json!({})).await;
    assert_eq!((status, &error["code"]), (409, &json!("conflict")));
    let shown = console.get(&path).await.1;
    assert_eq!((&shown["state"], &shown["revoked_at"]), (&json!("revoked"), &json!(NOON.rfc3339())));
}

/// Creates a console key with the credentials in the header lines `who`, and calls `end` before the body is complete;
/// returns the response.
async fn created_after(server: &TestServer, who: &str, end: impl AsyncFnOnce()) -> String {
    let app = server.app.store.app("default").unwrap().id;
    let body = r#"{"service":"console"}"#;
    let head = format!(
        "POST /v1/apps/{app}/keys HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{who}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        server.authority(),
        body.len(),
    );
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // `100 Continue` is sent only after the gate has admitted the head.
    let expected = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, expected);
    stream.write_all(&body.as_bytes()[..1]).await.unwrap();
    end().await;
    stream.write_all(&body.as_bytes()[1..]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_write_completed_after_its_key_ended_is_rejected() {
    let (server, console) = server().await;
    let bearer = |key: &str| format!("authorization: Bearer {key}");
    let cookie = |browser: &Browser| format!("cookie: {}\r\norigin: {}", browser.cookie, server.base);
    let (first, first_id) = server.key_with(Service::Console, |_| {});
    let (second, second_id) = server.key_with(Service::Console, |_| {});
    let soon = NOON.plus(Duration::from_mins(1));
    let (expiring, _) = server.key_with(Service::Console, |new| new.expires_at = Some(soon));
    let [left, stolen] = [Browser::log_in(&server, &first).await, Browser::log_in(&server, &second).await];
    let before = console.walk("/v1/audit?action=key.created&", 100).await.len();
    let revoke = async |id: &str| {
        server.app.store.revoke_key(id, NOON).unwrap();
    };
    let log_out = async || {
        let gone = left.write(Method::DELETE, "/v1/auth/session", &json!({})).await;
        assert_eq!(gone.status(), 204);
    };
    let answers = [
        (created_after(&server, &cookie(&left), log_out).await, "invalid_session"),
        (
            created_after(&server, &cookie(&stolen), async || revoke(&second_id).await).await,
            "api_key_revoked",
        ),
        (created_after(&server, &bearer(&first), async || revoke(&first_id).await).await, "api_key_revoked"),
        (
            created_after(&server, &bearer(&expiring), async || server.clock.set(soon)).await,
            "api_key_expired",
        ),
    ];
    for (answer, code) in answers {
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains(code), "{code}: {answer}");
    }
    assert_eq!(console.walk("/v1/audit?action=key.created&", 100).await.len(), before);
    let made = created_after(&server, &bearer(&console.key), async || ()).await;
    assert!(made.starts_with("HTTP/1.1 201 "), "{made}");
}

#[tokio::test]
async fn a_revocation_ends_the_streams_of_its_key() {
    let (server, _provider) = hanging_panel().await;
    let console = Console::of(&server);
    let app = console.app("news").await;
    let (key, path) = console.key(&app, &json!({"service": "verify"})).await;
    let mut stream = server
        .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}))
        .send()
        .await
        .unwrap()
        .bytes_stream();
    read_until(&mut stream, "verifying_claim").await;
    assert_eq!(console.delete(&path).await.0, 200);
    let rest = async {
        let mut rest = String::new();
        while let Some(piece) = stream.next().await {
            rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        rest
    };
    let rest = tokio::time::timeout(Duration::from_secs(5), rest).await.expect("the stream did not end");
    assert_eq!(Events::parse(rest).end("error")["code"], "api_key_revoked");
}

#[tokio::test]
async fn a_rotation_creates_the_new_key_at_once_and_ends_the_old_one_after_its_grace_period() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let body =
        json!({"service": "verify", "name": "ci", "limits": {"per_minute": 9}, "expires_at": "2026-12-20"});
    for (request, grace) in [(None, 0), (Some(json!({})), 0), (Some(json!({"grace_seconds": 60})), 60)] {
        let (old, path) = console.key(&app, &body).await;
        let rotate = console.request(Method::POST, &format!("{path}/rotate"));
        let rotate = if let Some(body) = &request { rotate.json(body) } else { rotate };
        let response = Console::ask(rotate).await;
        assert_eq!(response.status(), 201);
        let made: Value = response.json().await.unwrap();
        let new = text(&made["key"]);
        assert!(new.starts_with("mk_verify_") && new != old);
        assert_eq!((&made["name"], &made["limits"]["per_minute"]), (&json!("ci"), &json!(9)));
        assert_eq!((&made["app_id"], &made["revoked_at"]), (&json!(app), &Value::Null));
        assert_eq!(refusal(&server, &new).await, None);
        if grace > 0 {
            assert_eq!(refusal(&server, &old).await, None);
            server.clock.advance(Duration::from_secs(grace));
        }
        assert_eq!(refusal(&server, &old).await.as_deref(), Some("api_key_expired"));
        assert_eq!(refusal(&server, &new).await, None);
        let old = console.get(&path).await.1;
        assert_eq!((&old["state"], &old["replaced_by"]), (&json!("expired"), &made["id"]));
        assert_eq!(made["replaced_by"], Value::Null);
    }
    let (_, keys) = console.get(&format!("/v1/apps/{app}/keys")).await;
    let replaced = keys["data"].as_array().unwrap().iter().filter(|key| !key["replaced_by"].is_null());
    assert_eq!(replaced.count(), 3);
}

#[tokio::test]
async fn a_rotation_with_a_body_needs_a_content_type() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let (old, path) = console.key(&app, &json!({"service": "verify"})).await;
    let pieces = [r#"{"grace_"#, r#"seconds":60}"#].map(|piece| Ok::<_, std::io::Error>(piece.to_owned()));
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let rotate = |body: reqwest::Body| console.request(Method::POST, &format!("{path}/rotate")).body(body);
    for body in [chunked, r#"{"grace_seconds":60}"#.into()] {
        assert_eq!(Console::ask(rotate(body)).await.status(), 415);
    }
    assert_eq!(refusal(&server, &old).await, None, "the key is unchanged");
    let empty = reqwest::Body::wrap_stream(futures_util::stream::empty::<Result<String, std::io::Error>>());
    assert_eq!(Console::ask(rotate(empty)).await.status(), 201, "an empty body needs no type");
    let form = console.request(Method::POST, &format!("{path}/rotate"));
    let form = form.header("content-type", "application/x-www-form-urlencoded").header("content-length", "0");
    assert_eq!(Console::ask(form).await.status(), 409, "as curl sends an empty body");
}

#[tokio::test]
async fn a_key_can_be_rotated_only_once() {
    let (_server, console) = server().await;
    let app = console.app("news").await;
    let (_, path) = console.key(&app, &json!({"service": "verify"})).await;
    let rotate = |path: String| {
        let console = console.clone();
        async move { console.post(&format!("{path}/rotate"), &json!({"grace_seconds": 3600})).await }
    };
    let (status, second) = rotate(path.clone()).await;
    assert_eq!(status, 201);
    let (status, error) = rotate(path.clone()).await;
    assert_eq!((status, &error["code"]), (409, &json!("conflict")), "{error}");
    let (status, third) = rotate(format!("/v1/apps/{app}/keys/{}", text(&second["id"]))).await;
    assert_eq!(
        (status, &third["expires_at"]),
        (201, &Value::Null),
        "the expiry from a grace period is not inherited"
    );
    assert_eq!(console.walk(&format!("/v1/apps/{app}/keys?"), 50).await.len(), 3);
}

#[tokio::test]
async fn a_rotated_key_cannot_be_extended_but_an_expired_one_can() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let (old, path) = console.key(&app, &json!({"service": "verify"})).await;
    assert_eq!(console.post(&format!("{path}/rotate"), &json!({"grace_seconds": 60})).await.0, 201);
    for later in [json!(null), json!("2027-01-31")] {
        let (status, error) = console.patch(&path, &json!({"expires_at": later})).await;
        assert_eq!((status, &error["code"]), (409, &json!("conflict")), "{later}: {error}");
    }
    let sooner = NOON.plus(Duration::from_secs(30)).rfc3339();
    assert_eq!(console.patch(&path, &json!({"expires_at": sooner, "name": "old"})).await.0, 200);
    server.clock.advance(Duration::from_secs(30));
    assert_eq!(console.patch(&path, &json!({"expires_at": null})).await.0, 409);
    assert_eq!(refusal(&server, &old).await.as_deref(), Some("api_key_expired"));
    assert_eq!(console.patch(&path, &json!({"name": "older"})).await.0, 200, "other fields can still change");

    let ends = server.clock.now().plus(Duration::from_secs(1)).rfc3339();
    let (expired, path) = console.key(&app, &json!({"service": "verify", "expires_at": ends})).await;
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(refusal(&server, &expired).await.as_deref(), Some("api_key_expired"));
    let (status, key) = console.patch(&path, &json!({"expires_at": null})).await;
    assert_eq!((status, &key["state"]), (200, &json!("active")));
    assert_eq!(refusal(&server, &expired).await, None);
    let entry = console.audit().await.pop().unwrap();
    assert_eq!(entry["details"]["expires_at"], json!({"from": ends, "to": null}), "{entry}");
}

#[tokio::test]
async fn every_id_of_another_app_is_not_found() {
    let (server, console) = server().await;
    let (mine, other) = (console.app("mine").await, console.app("other").await);
    let (key, path) = console.key(&other, &json!({"service": "verify"})).await;
    let foreign = path.replace(&other, &mine);
    let unknown = format!("/v1/apps/{mine}/keys/key_00000000000000000000000000000000");
    let before = console.get(&path).await;
    let mut answers = Vec::new();
    for path in [&foreign, &unknown] {
        answers.push(console.get(path).await);
        answers.push(console.patch(path, &json!({"name": "taken"})).await);
        answers.push(console.delete(path).await);
        answers.push(console.post(&format!("{path}/rotate"), &json!({})).await);
    }
    for (status, error) in &answers {
        assert_eq!((*status, &error["code"]), (404, &json!("not_found")), "{error}");
        assert_eq!(error["message"], answers[0].1["message"], "no message reveals what exists elsewhere");
    }
    assert_eq!(console.get(&path).await, before);
    assert_eq!(refusal(&server, &key).await, None);
    assert_eq!(console.walk(&format!("/v1/apps/{mine}/keys?"), 50).await, Vec::<Value>::new());
}

#[tokio::test]
async fn other_keys_reach_nothing_but_themselves() {
    let (server, console) = server().await;
    let app = console.app("news").await;
    let (_, path) = console.key(&app, &json!({"service": "verify"})).await;
    let strangers = [Service::Verify, Service::Inference]
        .map(|service| Console { key: server.key(service), ..console.clone() });
    let before = console.audit().await;
    let places = [
        (Method::GET, "/v1/apps".to_owned()),
        (Method::POST, "/v1/apps".to_owned()),
        (Method::GET, format!("/v1/apps/{app}")),
        (Method::PATCH, format!("/v1/apps/{app}")),
        (Method::DELETE, format!("/v1/apps/{app}")),
        (Method::GET, format!("/v1/apps/{app}/keys")),
        (Method::POST, format!("/v1/apps/{app}/keys")),
        (Method::GET, path.clone()),
        (Method::PATCH, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/rotate")),
        (Method::GET, format!("/v1/apps/{app}/statement")),
        (Method::GET, "/v1/usage".to_owned()),
        (Method::GET, "/v1/billing".to_owned()),
        (Method::GET, "/v1/audit".to_owned()),
    ];
    for stranger in strangers {
        for (method, path) in &places {
            let body = json!({"name": "taken", "service": "console"});
            let request = stranger.request(method.clone(), path).json(&body);
            let response = Console::ask(request).await;
            assert_eq!(response.status(), 401, "{method} {path}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            let error: Value = response.json().await.unwrap();
            assert_eq!(error["code"], "wrong_service", "{method} {path}");
        }
        assert_eq!(stranger.get("/v1/key").await.0, 200);
    }
    assert_eq!(console.audit().await, before);
    assert_eq!(console.get(&path).await.1["state"], "active");
}
