//! Dashboard sessions: what they permit, what keeps them alive, how they end.

use std::time::Duration;

use futures_util::future::{join, join_all};
use mk::api::Service;
use mk::storage::Store;
use reqwest::Method;
use rusqlite::Connection;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::browser::{Browser, audit, is_let_in, log_in, refusal, set_cookie};
use crate::support::panel::{idle_server, idle_setup};
use crate::support::server::{NOON, Setup, client, header};

const SESSION: &str = "/v1/auth/session";
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_session_ends_after_half_an_hour_without_a_request() {
    let server = idle_server().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    server.clock.advance(29 * MINUTE);
    assert_eq!(browser.get("/v1/auth/session").await.status(), 200);
    server.clock.advance(29 * MINUTE);
    assert!(is_let_in(&browser.get("/v1/apps").await), "any request keeps it alive");
    server.clock.advance(30 * MINUTE);
    assert_eq!(refusal(browser.get(SESSION).await).await, (401, "invalid_session".to_owned()));
    assert_eq!(refusal(browser.get("/v1/apps").await).await, (401, "invalid_session".to_owned()));
}

#[tokio::test]
async fn reads_do_not_wait_for_the_session_update_to_be_written() {
    let server = idle_server().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    let other = Connection::open(server.dir.path().join("data/mk.db")).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    server.clock.advance(20 * MINUTE);
    // A blocked writer gives up only after ten seconds, which exceeds the timeout here.
    let pages = join_all((0..3).map(|_| browser.get("/v1/apps")));
    let pages = timeout(Duration::from_secs(8), pages).await.expect("the reads wait for the writer");
    assert!(pages.iter().all(is_let_in));
    other.execute_batch("ROLLBACK").unwrap();

    assert!(is_let_in(&browser.get("/v1/apps").await));
    server.clock.advance(20 * MINUTE);
    assert!(is_let_in(&browser.get("/v1/apps").await), "its use has been recorded since");
}

#[tokio::test]
async fn logging_in_with_a_key_revoked_meanwhile_creates_no_session() {
    let server = idle_server().await;
    let (key, id) = server.key_with(Service::Console, |_| {});
    let other = Connection::open(server.dir.path().join("data/mk.db")).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let revoked = async {
        // By then the key has been checked, and creating the session waits for the lock.
        sleep(Duration::from_millis(500)).await;
        other.execute("UPDATE keys SET revoked_at = 1 WHERE id = ?1", [&id]).unwrap();
        other.execute_batch("COMMIT").unwrap();
    };
    let (answer, ()) = join(log_in(&server, &key), revoked).await;
    assert_eq!(refusal(answer).await, (401, "api_key_revoked".to_owned()));
    let made: i64 = other.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!((made, audit(&server).len()), (0, 0));
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours_whatever_happens() {
    let server = idle_server().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    for _ in 0..12 * 4 - 1 {
        server.clock.advance(15 * MINUTE);
        assert_eq!(browser.get(SESSION).await.status(), 200);
    }
    server.clock.advance(15 * MINUTE);
    assert_eq!(refusal(browser.get(SESSION).await).await, (401, "invalid_session".to_owned()));
}

#[tokio::test]
async fn session_use_is_written_once_a_minute() {
    let server = idle_server().await;
    let browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    let version = || server.app.store.version().unwrap();
    let before = version();
    server.clock.advance(Duration::from_secs(59));
    browser.get(SESSION).await;
    assert_eq!(version(), before);
    server.clock.advance(Duration::from_secs(1));
    browser.get(SESSION).await;
    let written = version();
    assert_ne!(written, before);
    browser.get(SESSION).await;
    assert_eq!(version(), written);
}

#[tokio::test]
async fn a_session_survives_a_restart_without_its_cookie_on_disk() {
    let setup = idle_setup();
    let again = Setup {
        config: setup.config.clone(),
        options: setup.options.clone(),
        clock: setup.clock.clone(),
        dir: setup.dir.clone(),
    };
    let server = setup.start().await;
    let mut browser = Browser::log_in(&server, &server.key(Service::Console)).await;
    server.shutdown().await;
    let server = again.start().await;
    browser = Browser::with(&server, &browser.cookie);
    assert_eq!(browser.get(SESSION).await.status(), 200);
    for entry in std::fs::read_dir(server.dir.path().join("data")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(browser.token()), "{}", path.display());
    }
}

#[tokio::test]
async fn revoking_a_key_ends_its_sessions_stolen_ones_included() {
    let server = idle_server().await;
    let (key, id) = server.key_with(Service::Console, |_| {});
    let (owner, thief) = (Browser::log_in(&server, &key).await, Browser::log_in(&server, &key).await);
    let other = Browser::log_in(&server, &server.key(Service::Console)).await;
    assert_eq!(thief.get(SESSION).await.status(), 200);
    // As the command line would, from another process.
    let elsewhere = Store::open(&server.dir.path().join("data"), NOON).unwrap();
    elsewhere.revoke_key(&id, NOON).unwrap();
    for browser in [owner, thief] {
        assert_eq!(refusal(browser.get("/v1/apps").await).await, (401, "api_key_revoked".to_owned()));
        let write = browser.write(Method::POST, "/v1/apps", &json!({"name": "x"})).await;
        assert_eq!(refusal(write).await, (401, "api_key_revoked".to_owned()));
    }
    assert_eq!(other.get(SESSION).await.status(), 200, "sessions of other keys continue");
}

#[tokio::test]
async fn a_session_has_its_key_s_address_and_expiry_limits() {
    let server = idle_setup()
        .config(|config| config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start()
        .await;
    let (key, _) = server.key_with(Service::Console, |new| {
        new.addresses = vec!["127.0.0.1".to_owned(), "10.0.0.0/8".to_owned()];
        new.expires_at = Some(NOON.plus(MINUTE));
    });
    let browser = Browser::log_in(&server, &key).await;
    let from = async |address: &str| {
        let get = browser.request(Method::GET, SESSION).header("x-forwarded-for", address);
        refusal(get.send().await.unwrap()).await
    };
    assert_eq!(from("10.1.2.3").await.0, 200);
    assert_eq!(from("11.1.2.3").await, (403, "address_not_allowed".to_owned()));
    server.clock.advance(MINUTE);
    assert_eq!(from("10.1.2.3").await, (401, "api_key_expired".to_owned()));
}

#[tokio::test]
async fn logging_out_ends_the_session_and_is_idempotent() {
    let server = idle_server().await;
    let (key, id) = server.key_with(Service::Console, |_| {});
    let (browser, other) = (Browser::log_in(&server, &key).await, Browser::log_in(&server, &key).await);
    for _ in 0..2 {
        let gone = browser.write(Method::DELETE, SESSION, &json!({})).await;
        assert_eq!(gone.status(), 204);
        assert_eq!(set_cookie(&gone), "mk_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
        assert_eq!(browser.get(SESSION).await.status(), 401);
    }
    let without = client().delete(format!("{}{SESSION}", server.base)).send().await.unwrap();
    assert_eq!(without.status(), 204);
    assert_eq!(other.get(SESSION).await.status(), 200, "other sessions continue");
    let ended: Vec<_> = audit(&server).into_iter().filter(|entry| entry[0] == "session.ended").collect();
    assert_eq!(ended, [["session.ended", "dashboard", &id, &id, ""]]);
}

#[tokio::test]
async fn sessions_have_their_own_rate_limit() {
    let server = idle_setup().config(|config| config.limits.open_pages_per_minute = 3).start().await;
    let (key, id) = server.key_with(Service::Console, |new| new.per_minute = Some(1));
    let browser = Browser::log_in(&server, &key).await;
    for left in ["2", "1", "0"] {
        let response = browser.get("/v1/apps").await;
        assert_eq!(header(&response, "x-ratelimit-limit"), "3");
        assert_eq!(header(&response, "x-ratelimit-remaining"), left);
    }
    assert_eq!(browser.get("/v1/apps").await.status(), 429);
    let both = || browser.request(Method::GET, "/v1/apps").bearer_auth(&key).send();
    let counted = both().await.unwrap();
    assert_eq!(
        (header(&counted, "x-ratelimit-limit"), is_let_in(&counted)),
        ("1", true),
        "the key's own limit applies"
    );
    assert_eq!(both().await.unwrap().status(), 429);
    server.app.flush().unwrap();
    assert_eq!(server.app.store.day_count(&id, NOON.utc_day()).unwrap(), 1);
    assert_eq!(server.app.store.key(&id).unwrap().last_used_at, Some(NOON));
}

#[tokio::test]
async fn authentication_routes_reject_query_parameters() {
    let server = idle_server().await;
    let key = server.key(Service::Console);
    let browser = Browser::log_in(&server, &key).await;
    let refused = (400, "unsupported_parameter".to_owned());
    let asked = [
        (Method::GET, SESSION),
        (Method::DELETE, SESSION),
        (Method::POST, SESSION),
        (Method::POST, "/v1/auth/setup"),
    ];
    for (method, path) in asked {
        let body = json!({"key": key});
        let answer = browser.write(method.clone(), &format!("{path}?key=x"), &body).await;
        assert_eq!(refusal(answer).await, refused, "{method} {path}");
    }
    let own = client().get(format!("{}/v1/key?key=x", server.base)).bearer_auth(&key).send().await.unwrap();
    assert_eq!(refusal(own).await, refused);
    assert_eq!(browser.get(SESSION).await.status(), 200, "no session ended");
}
