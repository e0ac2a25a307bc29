//! A system clock that jumps forwards and back: nobody exceeds a limit, and nobody is locked out for good.

use std::time::Duration;

use mk::api::Service;
use mk::clock::Time;
use serde_json::json;

use crate::support::browser::{Browser, refusal};
use crate::support::chat::{gateway_with, hello};
use crate::support::eventually;
use crate::support::panel::config;
use crate::support::provider::Reply;
use crate::support::server::{NOON, Setup, TestServer};

const DAY: Duration = Duration::from_hours(24);
const YEAR: Duration = Duration::from_hours(24 * 365);
const HOUR: Duration = Duration::from_hours(1);

async fn server() -> TestServer {
    Setup::new(config("http://127.0.0.1:0")).start().await
}

/// Sends `requests` requests; returns how many of them the limits admitted.
async fn admitted(server: &TestServer, key: &str, requests: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..requests {
        let status = server.verify(key, &json!({})).send().await.unwrap().status().as_u16();
        assert!(matches!(status, 400 | 429), "{status}");
        admitted += usize::from(status == 400);
    }
    admitted
}

fn flush(server: &TestServer) {
    server.app.flush().unwrap();
}

#[tokio::test]
async fn a_day_keeps_its_count_when_the_clock_jumps_ahead_and_back() {
    for wrong in [DAY, YEAR] {
        let server = server().await;
        let (key, _) =
            server.key_with(Service::Verify, |new| (new.per_minute, new.per_day) = (Some(0), Some(10)));
        assert_eq!(admitted(&server, &key, 8).await, 8);
        server.clock.set(NOON.plus(wrong));
        assert_eq!(admitted(&server, &key, 1).await, 1);
        server.clock.set(NOON);
        assert_eq!(admitted(&server, &key, 5).await, 1, "eight and one were already counted");
        server.clock.set(NOON.plus(DAY * 2));
        assert_eq!(admitted(&server, &key, 11).await, 10, "the next day starts from zero");
    }
}

#[tokio::test]
async fn a_day_keeps_its_count_even_after_it_was_evicted_from_memory() {
    for wrong in [DAY, YEAR] {
        let server = server().await;
        let limited = |new: &mut mk::keys::NewKey| (new.per_minute, new.per_day) = (Some(0), Some(10));
        let (key, _) = server.key_with(Service::Verify, limited);
        let (other, _) = server.key_with(Service::Verify, limited);
        assert_eq!(admitted(&server, &key, 8).await, 8);
        flush(&server);
        server.clock.set(NOON.plus(wrong));
        // Both keys' counts are written under the wrong day; the first key's counter is then evicted as idle, and
        // loaded again.
        assert_eq!((admitted(&server, &other, 1).await, admitted(&server, &key, 3).await), (1, 3));
        flush(&server);
        flush(&server);
        assert_eq!(admitted(&server, &key, 1).await, 1);
        server.clock.set(NOON);
        assert!(admitted(&server, &key, 11).await <= 2, "after {wrong:?}");
        server.clock.set(NOON.plus(DAY * 2));
        assert_eq!(admitted(&server, &key, 11).await, 10);
    }
}

#[tokio::test]
async fn a_clock_set_back_neither_resets_the_minute_nor_locks_the_key_out() {
    let server = server().await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(5));
    assert_eq!(admitted(&server, &key, 6).await, 5);
    for back in [Duration::from_secs(1), Duration::from_secs(59), HOUR, YEAR] {
        server.clock.set(NOON.minus(back));
        flush(&server);
        assert_eq!(admitted(&server, &key, 1).await, 0, "{back:?}");
    }
    server.clock.advance(Duration::from_mins(1));
    assert_eq!(admitted(&server, &key, 6).await, 5);
}

#[tokio::test]
async fn a_session_started_in_a_wrong_future_ends_when_the_clock_is_corrected() {
    let server = server().await;
    let console = server.key(Service::Console);
    let early = Browser::log_in(&server, &console).await;
    server.clock.set(NOON.plus(Duration::from_mins(2)));
    let slightly = Browser::log_in(&server, &console).await;
    server.clock.set(NOON.plus(YEAR));
    assert_eq!(early.get("/v1/auth/session").await.status(), 401);
    let wrong = Browser::log_in(&server, &console).await;
    assert_eq!(wrong.get("/v1/auth/session").await.status(), 200);
    server.clock.set(NOON);
    // Otherwise the session would be valid for a year.
    assert_eq!(refusal(wrong.get("/v1/auth/session").await).await, (401, "invalid_session".to_owned()));
    // It was deleted when another session started; with the key one can log in again.
    drop(slightly);
    let anew = Browser::log_in(&server, &console).await;
    assert_eq!(anew.get("/v1/auth/session").await.status(), 200);
    server.clock.set(NOON.minus(Duration::from_mins(4)));
    assert_eq!(anew.get("/v1/auth/session").await.status(), 200, "a small correction ends nobody's session");
}

#[tokio::test]
async fn expiry_follows_the_clock_but_revocation_is_permanent() {
    let server = server().await;
    let ends = NOON.plus(HOUR);
    let (expiring, _) = server.key_with(Service::Verify, |new| new.expires_at = Some(ends));
    let (revoked, id) = server.key_with(Service::Verify, |_| {});
    let code = async |key: &str| refusal(server.verify(key, &json!({})).send().await.unwrap()).await.1;
    server.clock.set(NOON.plus(DAY));
    assert_eq!(code(&expiring).await, "api_key_expired");
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    server.clock.set(NOON);
    assert_eq!(code(&expiring).await, "missing_parameter");
    assert_eq!(
        code(&revoked).await,
        "api_key_revoked",
        "a revocation stays in force although its time is in the future"
    );
    server.clock.set(NOON.minus(YEAR));
    assert_eq!(code(&revoked).await, "api_key_revoked");
}

#[tokio::test]
async fn usage_is_recorded_once_on_the_day_that_the_clock_shows() {
    let desk = gateway_with("", "", |setup| setup, |_| Reply::Text("four".to_owned())).await;
    let (server, store) = (&desk.server, &desk.server.app.store);
    let days = [NOON, NOON.plus(YEAR), NOON, NOON.minus(YEAR), NOON];
    for day in days {
        server.clock.set(day);
        assert_eq!(desk.post(hello().to_string()).send().await.unwrap().status(), 200);
    }
    flush(server);
    let at: Vec<Time> = store.attempts_of("req-1").unwrap().iter().map(|row| row.at).collect();
    assert_eq!(at, days);
    let ledger = rusqlite::Connection::open(server.dir.path().join("data/ledger.db")).unwrap();
    let summed = |day: Time| -> i64 {
        let query = "SELECT coalesce(sum(attempts), 0) FROM usage_days WHERE day = ?1";
        ledger.query_row(query, [day.utc_day()], |row| row.get(0)).unwrap()
    };
    assert_eq!((summed(NOON), summed(NOON.plus(YEAR)), summed(NOON.minus(YEAR))), (3, 1, 1));
}

#[tokio::test]
async fn a_paused_model_is_retried_even_if_the_clock_is_set_back() {
    let of_provider = "breaker_failures = 1\nbreaker_pause = \"1s\"";
    let script = |ask: &crate::support::provider::ModelRequest| {
        if ask.raw.contains("fail") { Reply::status(500, &json!({})) } else { Reply::Text("four".to_owned()) }
    };
    let desk = gateway_with(of_provider, "", |setup| setup, script).await;
    let fails = hello().to_string().replace("Hello", "fail");
    assert_eq!(desk.post(fails).send().await.unwrap().status(), 502);
    let asked = desk.provider.requests().len();
    desk.server.clock.set(NOON.minus(YEAR));
    let begun = std::time::Instant::now();
    let mut status = 503;
    while status == 503 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the model stays paused");
        status = desk.post(hello().to_string()).send().await.unwrap().status().as_u16();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status, 200);
    eventually("the provider is called", || desk.provider.requests().len() > asked).await;
}
