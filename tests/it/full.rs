//! A server with as many connections as it takes: idle ones make room for new ones, busy ones never do.

use std::time::Duration;

use mk::api::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::eventually;
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::post;
use crate::support::scrape::scrape;
use crate::support::server::{Setup, TestServer};

const HEALTH: &[u8] = b"GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";

async fn connect(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Opens a connection, which must be answered soon although the server is full.
async fn answered(server: &TestServer) -> TcpStream {
    let mut stream = connect(server, HEALTH).await;
    let mut status = [0; 12];
    let read = stream.read_exact(&mut status);
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("shut out").unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

/// Waits until the server has closed the connection.
async fn is_closed(stream: &mut TcpStream) {
    let read = async { while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("the connection is still open");
}

#[tokio::test]
async fn idle_connections_make_room_for_new_ones_and_busy_ones_stay() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let full = Setup::new(config(&provider.base_url)).options(|options| {
        options.max_connections = 3;
        options.evictable_after = Duration::from_millis(100);
    });
    let server = full.start().await;
    let key = server.key(Service::Verify);
    let _busy =
        connect(&server, post(&key, &[], r#"{"fact":"The Eiffel Tower is in Paris."}"#).as_bytes()).await;
    eventually("the extractor is asked", || provider.in_flight() == 1).await;
    let mut kept = answered(&server).await;
    let mut half_sent = connect(&server, b"POST /verify/v1/str").await;
    let mut newer = Vec::new();
    for _ in 0..3 {
        newer.push(answered(&server).await);
    }
    is_closed(&mut kept).await;
    is_closed(&mut half_sent).await;
    assert_eq!(provider.in_flight(), 1, "a request under way was ended");
    assert!(scrape(&server).await.series["mk_connections_evicted_total"] >= 2.0);
}

#[tokio::test]
async fn callers_who_ask_now_and_then_on_every_connection_shut_nobody_out() {
    let provider = FakeProvider::start(|_| Reply::Hang).await;
    let full = Setup::new(config(&provider.base_url)).options(|options| {
        options.max_connections = 20;
        options.evictable_after = Duration::from_millis(50);
    });
    let server = full.start().await;
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(answered(&server).await);
    }
    for _ in 0..20 {
        for stream in &mut held {
            // The server may have closed it.
            let _ = stream.write_all(HEALTH).await;
        }
        held.push(answered(&server).await);
    }
    assert!(scrape(&server).await.series["mk_connections_evicted_total"] >= 20.0);
}
