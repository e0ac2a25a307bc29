//! Connections on which a body was not read to its end, so that the start of the next request is unknown.

use std::time::Duration;

use mk::api::Service;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::panel::agreeing_panel;
use crate::support::raw::{exchange, head, post};

const NEXT: &str = "GET /next HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Reads the head of a response.
async fn response_head(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = async {
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("no answer");
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_response_sent_before_the_body_was_read_closes_the_connection() {
    let (server, _provider) = agreeing_panel().await;
    let (once, _) = server.key_with(Service::Verify, |new| new.per_minute = Some(1));
    exchange(server.authority(), post(&once, &[("connection", "close")], "{}").as_bytes()).await;
    let length = |key: &str| head(key, &[("content-length", "2")]);
    let chunked = |key: &str| head(key, &[("transfer-encoding", "chunked")]);
    let asking = head("wrong", &[("content-length", "2"), ("expect", "100-continue")]);
    let elsewhere = "POST /elsewhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n".to_owned();
    for (request, status) in [
        (length("wrong"), 401),
        (chunked("wrong"), 401),
        (asking, 401),
        (length(&once), 429),
        (elsewhere, 404),
    ] {
        let mut stream = TcpStream::connect(server.authority()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = response_head(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_that_has_arrived_or_is_absent_keeps_the_connection() {
    let (server, _provider) = agreeing_panel().await;
    let chunked = head("wrong", &[("transfer-encoding", "chunked")]);
    let health = "GET /verify/v1/health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nbody";
    for (request, status) in [
        (head("wrong", &[]), 401),
        (head("wrong", &[("content-length", "0")]), 401),
        (post("wrong", &[], "{}"), 401),
        (post("wrong", &[], &" ".repeat(2_000)), 401),
        (format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n"), 401),
        (health.to_owned(), 200),
    ] {
        let answer = exchange(server.authority(), format!("{request}{NEXT}").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("HTTP/1.1 404 "), "the next request gets a response: {answer}");
        assert_eq!(answer.matches("connection: close").count(), 1, "{answer}");
    }
}
