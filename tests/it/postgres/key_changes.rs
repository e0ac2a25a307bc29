//! The keys of one database at two servers: what is created, changed or revoked through one applies to the very next
//! request at the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    CountingProvider, TwoServers, UNLIMITED, check_key, complete, completion_request, make_key, until,
};
use crate::support::chat::hello_stream;
use crate::support::console::{Console, text};
use crate::support::postgres::Postgres;
use crate::support::provider::{FakeProvider, Reply, StreamStep, role_chunk, text_chunk};
use crate::support::server::client;

/// An address without a provider.
const NOWHERE: &str = "http://127.0.0.1:0/v1";

fn refused(code: &str) -> (u16, String) {
    (401, code.to_owned())
}

/// When a request was sent, and its response.
type Outcome = (Instant, (u16, String));

/// Sends requests with a key from four callers, without pauses, until `end`.
async fn hammer(base: &str, key: &str, end: &AtomicBool) -> Vec<Outcome> {
    let caller = async || {
        let mut outcomes = Vec::new();
        while !end.load(Ordering::SeqCst) {
            let started = Instant::now();
            outcomes.push((started, check_key(base, key).await));
        }
        outcomes
    };
    join_all((0..4).map(|_| caller())).await.concat()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn no_request_is_admitted_after_its_key_was_revoked_at_another_server() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    let [here, there] = [0, 1].map(|at: usize| two.servers[at].base.clone());
    for round in 0..10 {
        let (key, path) = two.key("verify", &json!({})).await;
        assert_eq!(
            check_key(&there, &key).await.0,
            400,
            "a key created at one server works at the other at once"
        );
        let end = Arc::new(AtomicBool::new(false));
        let callers = tokio::spawn({
            let (there, key, end) = (there.clone(), key.clone(), end.clone());
            async move { hammer(&there, &key, &end).await }
        });
        tokio::time::sleep(Duration::from_millis(20 * round)).await;
        assert_eq!(two.consoles[0].delete(&path).await.0, 200);
        let acknowledged = Instant::now();
        assert_eq!(check_key(&there, &key).await, refused("api_key_revoked"));
        assert_eq!(check_key(&here, &key).await, refused("api_key_revoked"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        end.store(true, Ordering::SeqCst);
        for (started, answer) in callers.await.unwrap() {
            let revoked = answer == refused("api_key_revoked");
            assert!(revoked || started < acknowledged, "round {round}: {answer:?} after the revocation");
            assert!(revoked || answer.0 == 400, "{answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_stream_ends_when_its_key_is_revoked_at_another_server() {
    let provider =
        FakeProvider::start(|_| Reply::Stream(vec![role_chunk(), text_chunk("a"), StreamStep::Stall])).await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), &provider.base_url).await;
    let app = two.consoles[0].app("streaming").await;
    let body = json!({"service": "inference"});
    for ending in ["key", "app"] {
        let (key, path) = two.consoles[0].key(&app, &body).await;
        let stream = async |at: usize| {
            let url = format!("{}/inference/v1/chat/completions", two.servers[at].base);
            client().post(url).bearer_auth(&key).json(&hello_stream()).send().await.unwrap()
        };
        let streams = [stream(0).await, stream(1).await];
        let gone = if ending == "key" { path } else { format!("/v1/apps/{app}") };
        assert_eq!(two.consoles[0].delete(&gone).await.0, 200);
        for stream in streams {
            assert_eq!(stream.status(), 200);
            let raw = timeout(Duration::from_secs(20), stream.text())
                .await
                .expect("the stream does not end")
                .unwrap();
            assert!(raw.contains(r#""code":"api_key_revoked""#), "{ending}: {raw}");
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn changes_to_a_key_apply_at_another_server_at_once() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    let [here, there] = &two.consoles;
    let base = &there.base;
    let own = async |key: &str| -> Value {
        let asked = client().get(format!("{base}/v1/key")).bearer_auth(key).send().await.unwrap();
        asked.json().await.unwrap()
    };
    let (key, path) = two.key("verify", &json!({})).await;
    assert_eq!(check_key(base, &key).await.0, 400);
    let change = async |body: Value| assert_eq!(here.patch(&path, &body).await.0, 200);

    change(json!({"limits": {"per_minute": 2}})).await;
    assert_eq!(own(&key).await["minute"]["limit"], 2);
    change(json!({"limits": {"per_minute": 0}})).await;
    change(json!({"addresses": ["10.0.0.0/8"]})).await;
    assert_eq!(check_key(base, &key).await, (403, "address_not_allowed".to_owned()));
    change(json!({"addresses": []})).await;
    assert_eq!(check_key(base, &key).await.0, 400);
    change(json!({"name": "renamed"})).await;
    assert_eq!(there.get(&path).await.1["name"], "renamed");
    // An expiry a moment after the change.
    let soon = mk::clock::Clock::system().now().plus(Duration::from_millis(1500));
    change(json!({"expires_at": soon.rfc3339()})).await;
    assert_eq!(there.get(&path).await.1["expires_at"], json!(soon.rfc3339()));
    let is_over = |outcome: &(u16, String)| *outcome == refused("api_key_expired");
    until("the key expires", async || check_key(base, &key).await, is_over).await;
    change(json!({"expires_at": null})).await;
    assert_eq!(check_key(base, &key).await.0, 400, "the key is valid again");

    let (chat, path) = two.key("inference", &json!({"models": ["fake/n"]})).await;
    assert_eq!(complete(base, &chat).await, (403, "model_not_allowed".to_owned()));
    assert_eq!(here.patch(&path, &json!({"models": ["fake/*"]})).await.0, 200);
    assert_ne!(complete(base, &chat).await.0, 403);
}

#[tokio::test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn rotations_and_deletions_apply_at_another_server_at_once() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    let [here, there] = &two.consoles;
    let app = here.app("news").await;
    assert_eq!(there.get(&format!("/v1/apps/{app}")).await.0, 200);
    for grace in [0, 3600] {
        let (old, path) = here.key(&app, &json!({"service": "verify"})).await;
        assert_eq!(check_key(&there.base, &old).await.0, 400);
        let (status, made) = here.post(&format!("{path}/rotate"), &json!({"grace_seconds": grace})).await;
        assert_eq!(status, 201, "{made}");
        assert_eq!(check_key(&there.base, &old).await.0, if grace > 0 { 400 } else { 401 });
        assert_eq!(check_key(&there.base, &text(&made["key"])).await.0, 400);
        assert_eq!(there.post(&format!("{path}/rotate"), &json!({})).await.0, 409, "rotated once only");
    }
    let (key, _) = here.key(&app, &json!({"service": "verify"})).await;
    assert_eq!(check_key(&there.base, &key).await.0, 400);
    assert_eq!(here.delete(&format!("/v1/apps/{app}")).await.0, 200);
    assert_eq!(check_key(&there.base, &key).await.0, 401);
    assert_eq!(there.get(&format!("/v1/apps/{app}")).await.0, 404);
    assert_eq!(there.app("news").await.len(), app.len(), "its name is free again");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn of_concurrent_creations_and_rotations_only_one_succeeds() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    for round in 0..5 {
        let body = json!({"name": format!("app {round}")});
        let made = join_all((0..8).map(|at| two.consoles[at % 2].post("/v1/apps", &body))).await;
        let mut statuses: Vec<u16> = made.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [&[201][..], &[409; 7]].concat());

        let (_, path) = two.key("verify", &json!({})).await;
        let rotate = format!("{path}/rotate");
        let grace = json!({"grace_seconds": 60});
        let rotated = join_all((0..6).map(|at| two.consoles[at % 2].post(&rotate, &grace))).await;
        assert_eq!(rotated.iter().filter(|(status, _)| *status == 201).count(), 1, "{rotated:?}");
    }
    let names = two.consoles[1].walk("/v1/apps?", 2).await;
    assert_eq!(names.len(), 6, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn concurrent_deletions_leave_the_last_app() {
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.url(), NOWHERE).await;
    let console = async |app: &str, at: usize| {
        let arguments = [&["--app", app][..], &UNLIMITED].concat();
        let (key, key_id) = make_key(&postgres.url(), "console", &arguments).await;
        Console { base: two.servers[at].base.clone(), key, key_id }
    };
    let mut last = (two.app.clone(), console("default", 0).await);
    for round in 0..5 {
        let name = format!("app {round}");
        let app = last.1.app(&name).await;
        let other = (app, console(&name, 1).await);
        // Each console deletes the other's app, as deleting its own would revoke its key.
        let paths = [&last.0, &other.0].map(|app| format!("/v1/apps/{app}"));
        let ((first, _), (second, _)) = tokio::join!(last.1.delete(&paths[1]), other.1.delete(&paths[0]));
        let deleted = (first == 200, second == 200);
        assert!(deleted.0 != deleted.1, "both or none: {first} {second}");
        if deleted.1 {
            last = other;
        }
        assert_eq!(last.1.walk("/v1/apps?", 10).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for; runs in .ci/run"]
async fn servers_that_connect_through_a_socket_accept_keys_created_over_tcp() {
    let provider = CountingProvider::start().await;
    let postgres = Postgres::start();
    let two = TwoServers::start(&postgres.socket_url(), &provider.provider.base_url).await;
    let (key, _) = make_key(&postgres.url(), "inference", &UNLIMITED).await;
    for server in &two.servers {
        assert_eq!(completion_request(&server.base, &key).send().await.unwrap().status(), 200);
    }
}
