//! A clock that steps forward and back: nobody gets more than is allowed, and nobody is locked out for good.

use std::time::Duration;

use mk::api::Service;
use mk::clock::Time;
use serde_json::json;

use crate::support::browser::{Browser, refusal};
use crate::support::chat::{desk_with, hello};
use crate::support::eventually;
use crate::support::panel::config;
use crate::support::provider::Turn;
use crate::support::server::{NOON, Setup, TestServer};

const DAY: Duration = Duration::from_hours(24);
const YEAR: Duration = Duration::from_hours(24 * 365);
const HOUR: Duration = Duration::from_hours(1);

async fn server() -> TestServer {
    Setup::new(config("http://127.0.0.1:9")).start().await
}

/// How many of so many requests are admitted.
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
async fn a_day_that_the_clock_comes_back_to_goes_on_where_it_was() {
    for wrong in [DAY, YEAR] {
        let server = server().await;
        let (key, _) =
            server.key_with(Service::Verify, |new| (new.per_minute, new.per_day) = (Some(0), Some(10)));
        assert_eq!(admitted(&server, &key, 8).await, 8);
        server.clock.set(NOON.plus(wrong));
        assert_eq!(admitted(&server, &key, 1).await, 1);
        server.clock.set(NOON);
        assert_eq!(admitted(&server, &key, 5).await, 1, "eight and one were counted before");
        server.clock.set(NOON.plus(DAY * 2));
        assert_eq!(admitted(&server, &key, 11).await, 10, "and the next day is a new one");
    }
}

#[tokio::test]
async fn so_does_a_day_whose_count_was_written_and_dropped_from_memory() {
    for wrong in [DAY, YEAR] {
        let server = server().await;
        let limited = |new: &mut mk::keys::NewKey| (new.per_minute, new.per_day) = (Some(0), Some(10));
        let (key, _) = server.key_with(Service::Verify, limited);
        let (other, _) = server.key_with(Service::Verify, limited);
        assert_eq!(admitted(&server, &key, 8).await, 8);
        flush(&server);
        server.clock.set(NOON.plus(wrong));
        // Both write a count of the wrong day; the key's own is idle and dropped, and taken up again.
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
async fn a_minute_is_neither_given_twice_nor_for_ever_over() {
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
async fn a_session_of_a_wrong_future_ends_when_the_clock_is_right() {
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
    // Otherwise it would live for a year.
    assert_eq!(refusal(wrong.get("/v1/auth/session").await).await, (401, "invalid_session".to_owned()));
    // Swept when another one began; whoever knows the key gets the next.
    drop(slightly);
    let anew = Browser::log_in(&server, &console).await;
    assert_eq!(anew.get("/v1/auth/session").await.status(), 200);
    server.clock.set(NOON.minus(Duration::from_mins(4)));
    assert_eq!(anew.get("/v1/auth/session").await.status(), 200, "a small correction ends nobody's session");
}

#[tokio::test]
async fn expiry_goes_by_the_clock_and_revocation_does_not() {
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
    assert_eq!(code(&revoked).await, "api_key_revoked", "revoked in a future that never was, and for ever");
    server.clock.set(NOON.minus(YEAR));
    assert_eq!(code(&revoked).await, "api_key_revoked");
}

#[tokio::test]
async fn usage_is_booked_once_on_the_day_that_the_clock_shows() {
    let desk = desk_with("", "", |setup| setup, |_| Turn::Text("four".to_owned())).await;
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
async fn a_paused_model_is_tried_again_whatever_the_clock_shows() {
    let of_provider = "breaker_failures = 1\nbreaker_pause = \"1s\"";
    let script = |ask: &crate::support::provider::Ask| {
        if ask.raw.contains("fail") { Turn::status(500, &json!({})) } else { Turn::Text("four".to_owned()) }
    };
    let desk = desk_with(of_provider, "", |setup| setup, script).await;
    let fails = hello().to_string().replace("Hello", "fail");
    assert_eq!(desk.post(fails).send().await.unwrap().status(), 502);
    let asked = desk.provider.asks().len();
    desk.server.clock.set(NOON.minus(YEAR));
    let begun = std::time::Instant::now();
    let mut status = 503;
    while status == 503 {
        assert!(begun.elapsed() < Duration::from_secs(30), "paused for ever");
        status = desk.post(hello().to_string()).send().await.unwrap().status().as_u16();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status, 200);
    eventually("it was asked", || desk.provider.asks().len() > asked).await;
}
