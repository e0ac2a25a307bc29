//! Very many connections at once, and connections that open and close in large numbers: other callers are still served.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::panel::agreeing_panel;
use crate::support::scrape::scrape_until;
use crate::support::serve::{self, Serve};
use crate::support::server::client;

/// A little below the server's limit of connections, so that other callers can still connect.
const MOST: u64 = 9_950;
/// File descriptors that other tests in this process may need meanwhile.
const OTHERS: u64 = 2_000;
/// Descriptors that the server needs for anything but idle connections.
const OWN: u64 = 200;
/// The memory that an idle connection may take in a debug build of the server, in KB. It takes about half of this.
const IDLE_KB: u64 = 32;

/// Lets this process and its children open as many files as the system allows; returns how many that is.
fn allow_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    most
}

async fn assert_healthy(base: &str) {
    let asked = client().get(format!("{base}/verify/v1/health")).send();
    let answer =
        tokio::time::timeout(Duration::from_secs(10), asked).await.expect("no response in time").unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"status": "ok"}));
}

async fn open_connections(base: &str) -> u64 {
    let page = client().get(format!("{base}/metrics")).send().await.unwrap().text().await.unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("mk_connections_open ")).unwrap();
    line.parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ten_thousand_idle_connections_delay_nobody_and_take_little_memory() {
    let files = allow_files();
    // The server accepts as many connections as half of its descriptors allow.
    let most = MOST.min(files.saturating_sub(OTHERS)).min((files / 2).saturating_sub(OWN));
    let mk = serve::call("http://127.0.0.1:0/v1", "");
    let server = Serve::start(&mk);
    let authority = server.base.trim_start_matches("http://").to_owned();
    assert_healthy(&server.base).await;
    let before = server.resident_kb();

    let mut idle = Vec::new();
    while (idle.len() as u64) < most {
        let some = (idle.len() as u64..most).take(250).map(|_| TcpStream::connect(&authority));
        idle.extend(join_all(some).await.into_iter().map(Result::unwrap));
    }
    // Every third connection has sent part of a request.
    for stream in idle.iter_mut().step_by(3) {
        stream.write_all(b"POST /verify/v1/str").await.unwrap();
    }
    for _ in 0..5 {
        assert_healthy(&server.base).await;
    }
    // On a busy machine the first connections may have reached the idle timeout by now.
    let open = open_connections(&server.base).await;
    assert!(open > most / 2, "{open} of {most} are open");
    let each = server.resident_kb().saturating_sub(before) / open;
    println!("{open} idle connections take {each} KB of memory each");
    assert!(each <= IDLE_KB, "{each} KB");

    drop(idle);
    let ended = Instant::now();
    while open_connections(&server.base).await > 5 {
        assert!(
            ended.elapsed() < Duration::from_secs(20),
            "connections stay open although their callers have closed them"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A connection attempt that finds the kernel's backlog full is retried after a second at the earliest.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_backlog_holds_a_burst_of_connections_while_the_server_is_busy() {
    let backlog: usize =
        std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap();
    let mk = serve::call("http://127.0.0.1:0/v1", "");
    let server = Serve::start(&mk);
    let authority = server.base.trim_start_matches("http://").to_owned();
    server.signal("STOP");
    let all = join_all((0..backlog.min(400)).map(|_| TcpStream::connect(&authority)));
    let connected = tokio::time::timeout(Duration::from_secs(20), all).await;
    server.signal("CONT");
    let connected = connected
        .expect("some connections were not accepted into the backlog")
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_healthy(&server.base).await;
    drop(connected);
}

#[tokio::test]
async fn a_storm_of_short_connections_delays_nobody() {
    let (server, _provider) = agreeing_panel().await;
    let storm = |which: usize| {
        let authority = server.authority().to_owned();
        async move {
            for n in 0..750 {
                let mut stream = TcpStream::connect(&authority).await.unwrap();
                let sent: &[u8] = match (n + which) % 4 {
                    0 => b"",
                    1 => b"GET /verify/v1/health HTTP/1.1\r\nho",
                    2 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                    _ => b"POST /verify/v1/stream HTTP/1.1\r\nhost: x\r\ncontent-length: 90\r\n\r\n{",
                };
                // The server may have closed the connection already.
                let _ = stream.write_all(sent).await;
            }
        }
    };
    let storms: Vec<_> = (0..4).map(|which| tokio::spawn(storm(which))).collect();
    for _ in 0..20 {
        assert_healthy(&server.base).await;
    }
    for storm in storms {
        storm.await.unwrap();
    }
    assert_healthy(&server.base).await;
    // The scrape's own connection is open as well.
    scrape_until(&server, "all of these connections are closed", |page| {
        page.series["mk_connections_open"] <= 2.0
    })
    .await;
}
