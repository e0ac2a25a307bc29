//! Callers that write or read slowly but steadily are served; those that do not read at all are disconnected.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::eventually;
use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::raw::{exchange, post};
use crate::support::server::{Setup, TestServer, client};
use crate::support::tls::Identity;

const HEALTH: &str = "GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server that echoes statements of several megabytes, with this write timeout.
async fn echoing(write_timeout: Duration) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|_| Reply::json(&json!({"claims": [], "skipped": []}))).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| {
            config.max_body_bytes = 32 << 20;
            config.verify.general.max_fact_chars = 32 << 20;
        })
        .options(|options| options.write_timeout = write_timeout)
        .start()
        .await;
    (server, provider)
}

/// Opens a connection with a small receive buffer.
async fn connect_with_small_buffer(authority: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(authority.parse().unwrap()).await.unwrap()
}

/// Asserts that another caller gets a response, even if it is a 429 for this address.
async fn assert_responsive(server: &TestServer) {
    let answer = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert!([200, 429].contains(&answer.status().as_u16()), "{answer:?}");
}

#[tokio::test]
async fn a_request_sent_byte_by_byte_is_answered() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let request = post(
        &key,
        &[("accept", "application/json"), ("connection", "close")],
        r#"{"fact":"The Eiffel Tower is in Paris."}"#,
    );
    let mut stream = TcpStream::connect(server.authority()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in request.as_bytes() {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_caller_that_does_not_read_a_json_response_is_disconnected() {
    let (server, _provider) = echoing(Duration::from_millis(300)).await;
    let key = server.key(Service::Verify);
    let fact = "x".repeat(12 << 20);
    let mut stream = connect_with_small_buffer(server.authority()).await;
    let request = post(&key, &[("accept", "application/json")], &json!({"fact": fact}).to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    eventually("the connection is closed", || stream.try_write(b" ").is_err()).await;
    assert_responsive(&server).await;
}

#[tokio::test]
async fn a_caller_that_reads_slowly_gets_the_whole_response() {
    let (server, _provider) = echoing(Duration::from_secs(5)).await;
    let key = server.key(Service::Verify);
    let fact = "x".repeat(6 << 20);
    let mut stream = connect_with_small_buffer(server.authority()).await;
    let headers = [("accept", "application/json"), ("connection", "close")];
    let request = post(&key, &headers, &json!({"fact": fact}).to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut answer, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let count = stream.read(&mut chunk).await.unwrap();
        if count == 0 {
            break;
        }
        if answer.len() / (256 * 1024) < (answer.len() + count) / (256 * 1024) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        answer.extend_from_slice(&chunk[..count]);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["original_fact"], fact);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_and_delay_nobody() {
    let (server, _provider) = agreeing_panel().await;
    let last = "GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let requests = HEALTH.repeat(200) + last;
    let (received, ()) =
        tokio::join!(exchange(server.authority(), requests.as_bytes()), assert_responsive(&server));
    assert_eq!(received.matches("HTTP/1.1 200 OK\r\n").count(), 200);
    let (before, _) =
        received.split_once("HTTP/1.1 404 Not Found\r\n").expect("the last request got no response");
    assert_eq!(before.matches("{\"status\":\"ok\"}").count(), 200, "the responses are in order");
}

#[tokio::test]
async fn a_caller_that_pipelines_endlessly_without_reading_is_disconnected() {
    let (server, _provider) = echoing(Duration::from_millis(300)).await;
    let mut stream = connect_with_small_buffer(server.authority()).await;
    let requests = HEALTH.repeat(1_000);
    let sending = async { while stream.write_all(requests.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), sending).await.expect("the connection was not closed");
    assert_responsive(&server).await;
}

#[tokio::test]
async fn other_protocols_are_refused() {
    let (plain, _provider) = agreeing_panel().await;
    let hello: &[u8] = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n\r\n";
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    // A client that sends the HTTP/2 preface would not understand a response in HTTP/1.1.
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (bytes, expected) in [
        (hello, "HTTP/1.1 400 "),
        (preface, ""),
        (b"\0\0\0\0\r\n\r\n", "HTTP/1.1 400 "),
        (&garbage, "HTTP/1.1 400 "),
    ] {
        let mut stream = TcpStream::connect(plain.authority()).await.unwrap();
        // The server may respond and close before everything is written.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        let _ = read.await.expect("the connection stays open");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(expected), "{answer:?} to {:?}", &bytes[..4]);
    }
    assert_responsive(&plain).await;

    let identity = Identity::new();
    let setup = Setup::new(config("http://127.0.0.1:0/v1"));
    let tls = setup.options(|options| options.tls = Some(identity.tls())).start().await;
    for bytes in [HEALTH.as_bytes(), &garbage] {
        let mut stream = TcpStream::connect(tls.authority()).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        let _ = read.await.expect("the connection stays open");
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
    }
    drop(identity.connect(tls.authority(), &["http/1.1"]).await.unwrap());
}
