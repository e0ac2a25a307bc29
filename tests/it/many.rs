//! Very many callers at once, and such that come and go in masses: everybody else goes on being answered.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::panel::agreeing_panel;
use crate::support::scrape::scrape_until;
use crate::support::serve::{self, Serve};
use crate::support::server::client;

/// A little below the server's cap, so that there is a place for somebody else.
const MOST: u64 = 9_950;
/// Connections that other tests of this process may need meanwhile.
const OTHERS: u64 = 2_000;
/// What the server needs beside its callers' connections, and somebody else's place.
const OWN: u64 = 200;
/// What an idle connection may take of the server's memory in a debug build, in KB. It takes about half of it.
const IDLE_KB: u64 = 32;

/// Lets this process, and those that it starts, open as many files as the system allows; how many.
fn allow_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    most
}

async fn is_healthy(base: &str) {
    let asked = client().get(format!("{base}/verify/v1/health")).send();
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await.expect("kept waiting").unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"status": "ok"}));
}

async fn open_connections(base: &str) -> u64 {
    let page = client().get(format!("{base}/metrics")).send().await.unwrap().text().await.unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("mk_connections_open ")).unwrap();
    line.parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ten_thousand_idle_connections_keep_nobody_waiting_and_take_little() {
    let files = allow_files();
    // The server takes as many as half of its files suffice for.
    let most = MOST.min(files.saturating_sub(OTHERS)).min((files / 2).saturating_sub(OWN));
    let mk = serve::call("http://127.0.0.1:9/v1", "");
    let server = Serve::start(&mk);
    let authority = server.base.trim_start_matches("http://").to_owned();
    is_healthy(&server.base).await;
    let before = server.resident_kb();

    let mut idle = Vec::new();
    while (idle.len() as u64) < most {
        let some = (idle.len() as u64..most).take(250).map(|_| TcpStream::connect(&authority));
        idle.extend(join_all(some).await.into_iter().map(Result::unwrap));
    }
    // Every third one has begun to ask.
    for stream in idle.iter_mut().step_by(3) {
        stream.write_all(b"POST /verify/v1/str").await.unwrap();
    }
    for _ in 0..5 {
        is_healthy(&server.base).await;
    }
    // On a machine that was too busy the first of them have idled for too long by now.
    let open = open_connections(&server.base).await;
    assert!(open > most / 2, "{open} of {most} are open");
    let each = server.resident_kb().saturating_sub(before) / open;
    println!("{open} idle connections take {each} KB of memory each");
    assert!(each <= IDLE_KB, "{each} KB");

    drop(idle);
    let ended = Instant::now();
    while open_connections(&server.base).await > 5 {
        assert!(ended.elapsed() < Duration::from_secs(20), "connections are held whose callers left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Whoever finds no place in the system's queue is heard of a second later at the earliest.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_storm_finds_a_place_to_wait_while_the_server_is_busy() {
    let kept: usize =
        std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap();
    let mk = serve::call("http://127.0.0.1:9/v1", "");
    let server = Serve::start(&mk);
    let authority = server.base.trim_start_matches("http://").to_owned();
    server.signal("STOP");
    let all = join_all((0..kept.min(400)).map(|_| TcpStream::connect(&authority)));
    let came = tokio::time::timeout(Duration::from_secs(20), all).await;
    server.signal("CONT");
    let came = came.expect("some were not heard").into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    is_healthy(&server.base).await;
    drop(came);
}

#[tokio::test]
async fn connections_that_come_and_go_in_masses_keep_nobody_waiting() {
    let (server, _provider) = agreeing_panel().await;
    let storm = |which: usize| {
        let authority = server.authority().to_owned();
        async move {
            for n in 0..750 {
                let mut stream = TcpStream::connect(&authority).await.unwrap();
                let begun: &[u8] = match (n + which) % 4 {
                    0 => b"",
                    1 => b"GET /verify/v1/health HTTP/1.1\r\nho",
                    2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                    _ => b"POST /verify/v1/stream HTTP/1.1\r\nhost: x\r\ncontent-length: 90\r\n\r\n{",
                };
                // Nobody says that the server still listens.
                let _ = stream.write_all(begun).await;
            }
        }
    };
    let storms: Vec<_> = (0..4).map(|which| tokio::spawn(storm(which))).collect();
    for _ in 0..20 {
        is_healthy(&server.base).await;
    }
    for storm in storms {
        storm.await.unwrap();
    }
    is_healthy(&server.base).await;
    // The one that asks is open as well.
    scrape_until(&server, "no connection is left of them", |page| page.series["mk_connections_open"] <= 2.0)
        .await;
}
