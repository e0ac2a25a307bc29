//! Limits that several servers share: with nothing or something else listening at the store's address, and with a real
//! Redis or Valkey where its replies matter.
//!
//! A plain `cargo test` needs nothing but Rust, so the tests that need a real store are ignored; no fake could run its
//! script. `.ci/run` installs Redis and runs them, as `cargo test --test it limits_shared -- --ignored` does wherever
//! one is installed; without one they fail.

use std::time::Duration;

use mk::api::Service;
use mk::clock::Clock;
use mk::limits::LimitsStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::eventually;
use crate::support::mk::{Mk, NOBODY};
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::redis::Redis;
use crate::support::scrape::{Page, scrape, scrape_until};
use crate::support::server::{Setup, TestServer, client, header};

/// A server that counts its limits in `store`; its manual clock starts at the system's time, which a store uses.
async fn server(store: LimitsStore) -> TestServer {
    server_sharing_keys(None, store).await
}

/// The same, with the keys of another server if there is one.
async fn server_sharing_keys(other: Option<&TestServer>, store: LimitsStore) -> TestServer {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let mut setup = Setup::new(config(&provider.base_url)).config(|config| config.limits_store = store);
    if let Some(other) = other {
        setup.dir = other.dir.clone();
        setup.config.data_dir = other.dir.path().join("data");
    }
    Setup { clock: Clock::manual(Clock::system().now()), ..setup }.start().await
}

/// Two servers with the same keys and the same store.
async fn two(redis: &Redis) -> [TestServer; 2] {
    let first = server(redis.store()).await;
    let second = server_sharing_keys(Some(&first), redis.store()).await;
    [first, second]
}

/// Advances the clocks of the store and the servers.
fn advance(seconds: u64, redis: &Redis, servers: &[&TestServer]) {
    redis.let_pass(seconds.cast_signed());
    for server in servers {
        server.clock.advance(Duration::from_secs(seconds));
    }
}

/// Sends an invalid request, which counts against the key's limits and does nothing else.
async fn invalid_request(server: &TestServer, key: &str) -> reqwest::Response {
    server.verify(key, &json!({})).send().await.unwrap()
}

/// Sends 61 such requests to these servers in turn; returns how many of them got 429.
async fn refused_of_61(servers: &[&TestServer], key: &str) -> usize {
    let requests = (0..61).map(|at| invalid_request(servers[at % servers.len()], key));
    let answers = futures_util::future::join_all(requests).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    assert!(statuses.iter().all(|status| [400, 429].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 429).count()
}

/// The limits store check of `mk doctor` for this address.
fn limits_check(url: &str) -> Value {
    let ran = Mk::new().args(["doctor", "--json"]).env("MK_SERVER", NOBODY).env("MK_LIMITS_URL", url).run();
    assert!(!format!("{ran:?}").contains("hunter"), "{ran:?}");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == "limits store").unwrap().clone();
    assert_eq!(ran.code(), i32::from(found["status"] == "failed"), "{ran:?}");
    found
}

fn decided_locally(page: &Page) -> f64 {
    page.series["mk_limits_alone_total"]
}

fn is_up(page: &Page) -> bool {
    page.series["mk_limits_store_up"] > 0.0
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn two_servers_together_admit_what_one_would() {
    let redis = Redis::start();
    let [one, other] = two(&redis).await;
    let key = one.key(Service::Verify);
    assert_eq!(refused_of_61(&[&one, &other], &key).await, 1);
    for server in [&one, &other] {
        let page = scrape(server).await;
        assert!(is_up(&page));
        assert!(decided_locally(&page) < 1.0, "{page:?}");
    }

    let key = one.key(Service::Verify);
    for (at, server) in [&one, &other, &one, &other].into_iter().enumerate() {
        let answer = invalid_request(server, &key).await;
        assert_eq!(header(&answer, "x-ratelimit-remaining"), (59 - at).to_string());
        let stated = header(&answer, "ratelimit").to_owned();
        assert!(
            stated.starts_with(&format!("\"minute\";r={};t=60, \"day\";r={};", 59 - at, 999 - at)),
            "{stated}"
        );
    }
    let own: Value = client()
        .get(format!("{}/v1/key", other.base))
        .bearer_auth(&key)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(own["minute"]["remaining"], 56, "asking about a key does not count: {own}");
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_shared_minute_is_a_sliding_window_and_retry_after_says_when_it_has_room() {
    let redis = Redis::start();
    let [one, other] = two(&redis).await;
    let (key, _) = one.key_with(Service::Verify, |new| new.per_minute = Some(2));
    invalid_request(&one, &key).await;
    advance(30, &redis, &[&one, &other]);
    assert_eq!(invalid_request(&other, &key).await.status(), 400);
    let refused = invalid_request(&one, &key).await;
    assert_eq!(refused.status(), 429);
    let wait: u64 = header(&refused, "retry-after").parse().unwrap();
    assert!((25..=31).contains(&wait), "{wait}");
    advance(31, &redis, &[&one, &other]);
    assert_eq!(invalid_request(&one, &key).await.status(), 400);
    assert_eq!(
        invalid_request(&other, &key).await.status(),
        429,
        "the second request is still in the window"
    );

    // The store's clock is set back by an hour: no caller is locked out until it has caught up, and no limit is reset.
    redis.let_pass(-3600);
    let refused = invalid_request(&other, &key).await;
    assert_eq!(refused.status(), 429);
    assert!(header(&refused, "retry-after").parse::<u64>().unwrap() <= 61);
    advance(61, &redis, &[&one, &other]);
    assert_eq!(invalid_request(&one, &key).await.status(), 400);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_day_is_counted_by_all_servers_and_restored_to_an_emptied_store() {
    let redis = Redis::start();
    let [one, other] = two(&redis).await;
    let (key, _) = one.key_with(Service::Verify, |new| new.per_day = Some(3));
    for server in [&one, &other, &one] {
        assert_eq!(invalid_request(server, &key).await.status(), 400);
    }
    let refused = invalid_request(&other, &key).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "x-should-retry"), "false");
    redis.command(&["FLUSHALL"]);
    assert_eq!(invalid_request(&one, &key).await.status(), 429, "this server remembers");
    assert_eq!(invalid_request(&other, &key).await.status(), 429, "and has told the store");

    // The counts of requests that only other servers admitted reach the database a little later.
    let (key, id) = one.key_with(Service::Verify, |new| new.per_day = Some(3));
    for server in [&other, &one, &one] {
        assert_eq!(invalid_request(server, &key).await.status(), 400);
    }
    let day = one.clock.now().utc_day();
    eventually("the count is written", || one.app.store.day_count(&id, day).unwrap() == 3).await;
    redis.command(&["FLUSHALL"]);
    assert_eq!(invalid_request(&other, &key).await.status(), 429);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn no_server_admits_more_than_the_limit_even_if_the_store_forgets() {
    let redis = Redis::start();
    let server = server(redis.store()).await;
    let (key, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(3));
    for _ in 0..3 {
        assert_eq!(invalid_request(&server, &key).await.status(), 400);
        redis.command(&["FLUSHALL"]);
    }
    assert_eq!(invalid_request(&server, &key).await.status(), 429);
    advance(60, &redis, &[&server]);
    assert_eq!(invalid_request(&server, &key).await.status(), 400);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_day_is_not_counted_twice_if_the_database_could_not_be_read() {
    let redis = Redis::start();
    let [one, other] = two(&redis).await;
    let (key, id) = one.key_with(Service::Verify, |new| new.per_day = Some(10));
    for _ in 0..4 {
        invalid_request(&one, &key).await;
    }
    let day = one.clock.now().utc_day();
    eventually("the count is written", || one.app.store.day_count(&id, day).unwrap() == 4).await;
    let ledger = rusqlite::Connection::open(one.dir.path().join("data/ledger.db")).unwrap();
    ledger.busy_timeout(Duration::from_secs(10)).unwrap();
    ledger.execute_batch("ALTER TABLE day_counts RENAME TO elsewhere").unwrap();
    let unread = invalid_request(&other, &key).await;
    ledger.execute_batch("ALTER TABLE elsewhere RENAME TO day_counts").unwrap();
    for (answer, left) in
        [(unread, 5), (invalid_request(&other, &key).await, 4), (invalid_request(&one, &key).await, 3)]
    {
        let stated = header(&answer, "ratelimit").to_owned();
        assert!(stated.contains(&format!("\"day\";r={left};")), "{stated}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn foreign_values_under_our_keys_are_replaced() {
    let redis = Redis::start();
    let server = server(redis.store()).await;
    let (key, id) = server.key_with(Service::Verify, |_| {});
    for (name, value) in [("minute", "SET"), ("days", "SET"), ("minute", "LPUSH"), ("days", "LPUSH")] {
        redis.command(&["DEL", &format!("mk:limits:{{key:{id}}}:{name}")]);
        redis.command(&[value, &format!("mk:limits:{{key:{id}}}:{name}"), "x"]);
        assert_eq!(invalid_request(&server, &key).await.status(), 400);
    }
    let page = scrape(&server).await;
    assert!(is_up(&page));
    assert!(decided_locally(&page) < 1.0, "{page:?}");
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_store_without_all_permissions_counts_as_down() {
    let redis = Redis::start();
    redis.command(&["ACL", "SETUSER", "mk", "on", ">pw", "~mk:limits:*", "+@all", "-@hash"]);
    let url = format!("{}?user=mk&pass=pw", redis.url());
    let server = server(LimitsStore::parse(&url).unwrap()).await;
    let key = server.key(Service::Verify);
    assert_eq!(refused_of_61(&[&server], &key).await, 1);
    assert!(!is_up(&scrape(&server).await));
    assert_eq!(limits_check(&url)["status"], "failed");
    // With the permissions that the manual asks for, the store works again.
    let topic = include_str!("../../man/mk-clustering.7.md");
    let (_, told) = topic.split_once("ACL SETUSER mk on >PASSWORD ").unwrap();
    let rules: Vec<&str> = told.split_once('\n').unwrap().0.split(' ').collect();
    redis.command(&[&["ACL", "SETUSER", "mk", "reset", "on", ">pw"][..], &rules].concat());
    assert_eq!(limits_check(&url)["status"], "ok");
    scrape_until(&server, "the store is back", is_up).await;
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_doctor_recognises_a_node_of_a_cluster() {
    let redis = Redis::start_with(&["--cluster-enabled", "yes"]);
    let check = limits_check(&redis.url());
    assert_eq!(check["status"], "failed");
    assert!(check["message"].as_str().unwrap().contains("part of a cluster"), "{check}");
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn failed_authentications_are_counted_by_all_servers() {
    let redis = Redis::start();
    let [one, other] = two(&redis).await;
    let guesses = (0..62).map(|at| invalid_request([&one, &other][at % 2], "mk_verify_guess"));
    let answers = futures_util::future::join_all(guesses).await;
    let too_many = answers.iter().filter(|answer| answer.status() == 429).count();
    assert_eq!(too_many, 2);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn without_its_store_each_server_limits_on_its_own_until_it_is_back() {
    let mut redis = Redis::start();
    let [one, other] = two(&redis).await;
    let (key, _) = one.key_with(Service::Verify, |new| new.per_minute = Some(3));
    assert_eq!(invalid_request(&one, &key).await.status(), 400);
    redis.kill();
    // The server still knows what it counted while the store was up.
    assert_eq!(invalid_request(&one, &key).await.status(), 400);
    assert_eq!(invalid_request(&one, &key).await.status(), 400);
    assert_eq!(invalid_request(&one, &key).await.status(), 429);
    assert_eq!(invalid_request(&other, &key).await.status(), 400, "each server counts on its own");
    let page = scrape(&one).await;
    assert!(!is_up(&page));
    // The scrape itself is counted as an open page.
    assert!(decided_locally(&page) >= 3.0, "{page:?}");

    redis.begin();
    scrape_until(&one, "the store is back", is_up).await;
    scrape_until(&other, "the store is back", is_up).await;
    let key = one.key(Service::Verify);
    assert_eq!(refused_of_61(&[&one, &other], &key).await, 1);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn closed_connections_and_flushed_scripts_cause_no_failure() {
    let redis = Redis::start();
    let server = server(redis.store()).await;
    let key = server.key(Service::Verify);
    assert_eq!(invalid_request(&server, &key).await.status(), 400);
    redis.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(invalid_request(&server, &key).await.status(), 400);
    redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(header(&invalid_request(&server, &key).await, "x-ratelimit-remaining"), "57");
    assert!(decided_locally(&scrape(&server).await) < 1.0);
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn a_read_only_store_counts_as_down() {
    let redis = Redis::start();
    let server = server(redis.store()).await;
    let key = server.key(Service::Verify);
    redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(refused_of_61(&[&server], &key).await, 1);
    assert!(!is_up(&scrape(&server).await));
    redis.command(&["REPLICAOF", "NO", "ONE"]);
    scrape_until(&server, "the store is back", is_up).await;
}

#[tokio::test]
#[ignore = "needs redis-server or valkey-server, which `cargo test` may not ask for; runs in .ci/run"]
async fn the_doctor_checks_the_store() {
    let redis = Redis::start();
    let well = limits_check(&redis.url());
    assert_eq!(well["status"], "ok", "{well}");

    redis.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let doubtful = limits_check(&redis.url());
    assert_eq!(doubtful["status"], "warning", "{doubtful}");

    redis.command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let locked = limits_check(&format!("{}?pass=hunter3", redis.url()));
    assert_eq!(locked["status"], "failed", "{locked}");
}

#[tokio::test]
async fn the_limits_hold_even_if_nothing_listens_at_the_stores_address() {
    // A port that was free a moment ago, on which nothing listens.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = server(LimitsStore::parse(&format!("redis://:secret@{nobody}")).unwrap()).await;
    let key = server.key(Service::Verify);
    assert_eq!(refused_of_61(&[&server], &key).await, 1);
    let page = scrape(&server).await;
    assert!(!is_up(&page));
    assert!(decided_locally(&page) >= 61.0, "{page:?}");
    // A request of a key about itself does not count against its limits: the two scrapes were counted, and nothing
    // else.
    let own = client().get(format!("{}/v1/key", server.base)).bearer_auth(&key);
    assert_eq!(own.send().await.unwrap().status(), 200);
    let more = decided_locally(&scrape(&server).await) - decided_locally(&page);
    assert!(more < 3.0, "{more}");
}

#[tokio::test]
async fn the_limits_hold_even_if_something_else_answers_at_the_stores_address() {
    let answers: [&[u8]; 4] =
        [b"", b"-ERR unknown command\r\n", b":1\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stranger = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut asked = [0; 1024];
                    while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {
                        let _ = stream.write_all(answer).await;
                    }
                });
            }
        });
        let server = server(LimitsStore::parse(&format!("redis://{address}")).unwrap()).await;
        let key = server.key(Service::Verify);
        assert_eq!(refused_of_61(&[&server], &key).await, 1);
        assert!(!is_up(&scrape(&server).await));
        stranger.abort();
    }
}

#[tokio::test]
async fn the_doctor_reports_an_unreachable_store_without_its_password() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("redis://mk:hunter2@{nobody}");
    let ran =
        tokio::task::spawn_blocking(move || Mk::new().args(["doctor"]).env("MK_LIMITS_URL", &url).run());
    let ran = ran.await.unwrap();
    assert_eq!(ran.code(), 1, "{ran:?}");
    let line = ran.stdout.lines().find(|line| line.contains("limits store")).unwrap().to_owned();
    assert!(line.starts_with(&format!("failed\tlimits store\tredis://{nobody} cannot be used: ")), "{line}");
    assert!(line.contains("each server applies the same limits on its own"), "{line}");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
}

#[test]
fn the_doctor_reports_an_invalid_address() {
    let wrong = limits_check("redis://:hunter/2@127.0.0.1");
    assert_eq!(wrong["status"], "failed");
    assert!(wrong["message"].as_str().unwrap().contains("MK_LIMITS_URL must be"), "{wrong}");
    assert!(wrong["message"].as_str().unwrap().contains("%2F"), "{wrong}");
}
