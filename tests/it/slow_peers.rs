//! Callers who write or read slowly but go on are served; those who only fill the wire are not waited for.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::eventually;
use crate::support::panel::{agreeing_panel, config};
use crate::support::provider::{FakeProvider, Turn};
use crate::support::raw::{exchange, post};
use crate::support::server::{Setup, TestServer, client};
use crate::support::tls::Identity;

const HEALTH: &str = "GET /verify/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server that repeats statements of megabytes, and waits so long for a reader.
async fn echoing(patience: Duration) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|_| Turn::json(&json!({"claims": [], "skipped": []}))).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| {
            config.max_body_bytes = 32 << 20;
            config.verify.general.max_fact_chars = 32 << 20;
        })
        .options(|options| options.write_timeout = patience)
        .start()
        .await;
    (server, provider)
}

/// A caller with little room for what it is sent.
async fn narrow(authority: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(authority.parse().unwrap()).await.unwrap()
}

/// Somebody else gets an answer, if only that this address has asked enough.
async fn answers(server: &TestServer) {
    let answer = client().get(format!("{}/verify/v1/health", server.base)).send().await.unwrap();
    assert!([200, 429].contains(&answer.status().as_u16()), "{answer:?}");
}

#[tokio::test]
async fn who_writes_byte_by_byte_is_answered() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let request = post(&key, &[("accept", "application/json"), ("connection", "close")], r#"{"fact":"x"}"#);
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
async fn who_does_not_read_a_document_is_cut_off() {
    let (server, _provider) = echoing(Duration::from_millis(300)).await;
    let key = server.key(Service::Verify);
    let fact = "x".repeat(12 << 20);
    let mut stream = narrow(server.authority()).await;
    let request = post(&key, &[("accept", "application/json")], &json!({"fact": fact}).to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    eventually("the connection is over", || stream.try_write(b" ").is_err()).await;
    answers(&server).await;
}

#[tokio::test]
async fn who_reads_slowly_and_goes_on_gets_all() {
    let (server, _provider) = echoing(Duration::from_secs(5)).await;
    let key = server.key(Service::Verify);
    let fact = "x".repeat(6 << 20);
    let mut stream = narrow(server.authority()).await;
    let headers = [("accept", "application/json"), ("connection", "close")];
    let request = post(&key, &headers, &json!({"fact": fact}).to_string());
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let count = stream.read(&mut piece).await.unwrap();
        if count == 0 {
            break;
        }
        if answer.len() / (256 * 1024) < (answer.len() + count) / (256 * 1024) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        answer.extend_from_slice(&piece[..count]);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["original_fact"], fact);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_and_keep_nobody_waiting() {
    let (server, _provider) = agreeing_panel().await;
    let last = "GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let asked = HEALTH.repeat(200) + last;
    let (given, ()) = tokio::join!(exchange(server.authority(), asked.as_bytes()), answers(&server));
    assert_eq!(given.matches("HTTP/1.1 200 OK\r\n").count(), 200);
    let (before, _) = given.split_once("HTTP/1.1 404 Not Found\r\n").expect("the last is answered");
    assert_eq!(before.matches("{\"status\":\"ok\"}").count(), 200, "the last is answered last");
}

#[tokio::test]
async fn who_asks_on_and_on_and_reads_nothing_is_cut_off() {
    let (server, _provider) = echoing(Duration::from_millis(300)).await;
    let mut stream = narrow(server.authority()).await;
    let asked = HEALTH.repeat(1_000);
    let asking = async { while stream.write_all(asked.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("never cut off");
    answers(&server).await;
}

#[tokio::test]
async fn what_speaks_something_else_is_refused() {
    let (plain, _provider) = agreeing_panel().await;
    let hello: &[u8] = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n\r\n";
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    // Nobody who begins with HTTP/2's preface would understand an answer in HTTP/1.1.
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (bytes, answered) in [
        (hello, "HTTP/1.1 400 "),
        (preface, ""),
        (b"\0\0\0\0\r\n\r\n", "HTTP/1.1 400 "),
        (&garbage, "HTTP/1.1 400 "),
    ] {
        let mut stream = TcpStream::connect(plain.authority()).await.unwrap();
        // The answer may come, and the end with it, before all is written.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        let _ = read.await.expect("the connection stays");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(answered), "{answer:?} to {:?}", &bytes[..4]);
    }
    answers(&plain).await;

    let identity = Identity::new();
    let setup = Setup::new(config("http://127.0.0.1:9/v1"));
    let tls = setup.options(|options| options.tls = Some(identity.tls())).start().await;
    for bytes in [HEALTH.as_bytes(), &garbage] {
        let mut stream = TcpStream::connect(tls.authority()).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
        let _ = read.await.expect("the connection stays");
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
    }
    drop(identity.connect(tls.authority(), &["http/1.1"]).await.unwrap());
}
