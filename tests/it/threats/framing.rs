//! Request smuggling: heads and bodies that a proxy in front of the server could parse differently. Each case is
//! followed by a second request on the same connection, which must never be answered.

use mk::api::Service;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::support::panel::agreeing_panel;
use crate::support::raw::exchange;

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const BODY: &str = "c\r\n{\"fact\":\"x\"}\r\n0\r\n\r\n";

/// Sends a request followed by the smuggled one; returns the only response and its error code.
async fn only_response(authority: &str, request: &str) -> (String, String) {
    let answer = exchange(authority, format!("{request}{SMUGGLED}").as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request:?}: {answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{request:?}: {answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    (head.to_owned(), body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn ambiguous_heads_are_refused() {
    let (server, provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let cases = [
        ("content-length: 5\r\ncontent-length: 0", "{}{}{"),
        ("content-length: 5, 5", "{}{}{"),
        ("content-length: +5", "{}{}{"),
        ("content-length: -5", ""),
        ("content-length: 0x5", "{}{}{"),
        ("content-length: 5 5", "{}{}{"),
        ("content-length: 18446744073709551616", ""),
        ("transfer-encoding: gzip, chunked", BODY),
        ("transfer-encoding: chunked, chunked", BODY),
        ("transfer-encoding: chunked, identity", BODY),
        ("transfer-encoding: identity", BODY),
        ("transfer-encoding: xchunked", BODY),
        ("transfer-encoding: \"chunked\"", BODY),
        ("transfer-encoding: chunked;q=1", BODY),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", BODY),
        ("transfer-encoding: gzip\r\ntransfer-encoding: chunked", BODY),
        ("transfer-encoding: chunked\r\ntransfer-encoding: gzip", BODY),
        ("transfer-encoding : chunked", BODY),
        ("transfer-encoding:\r\n chunked", BODY),
        ("transfer-encoding:\u{b}chunked", BODY),
        ("x-folded: a\r\n transfer-encoding: chunked", ""),
        ("x-folded: a\r\n\tcontent-length: 5", ""),
        ("x-return: a\rcontent-length: 5", ""),
        ("x-nothing: a\0b", ""),
        (": nameless", ""),
        ("host: elsewhere.example", ""),
    ];
    for (lines, body) in cases {
        let request = format!(
            "POST /verify/v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\n{lines}\r\n\r\n{body}"
        );
        let (head, code) = only_response(server.authority(), &request).await;
        assert!(head.starts_with("HTTP/1.1 400 "), "{lines:?}: {head}");
        assert_eq!(code, "malformed_request", "{lines:?}");
    }
    let old = "POST /verify/v1/stream HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(only_response(server.authority(), old).await.1, "malformed_request");
    let nameless = "GET /verify/v1/health HTTP/1.1\r\n\r\n";
    assert_eq!(only_response(server.authority(), nameless).await.1, "malformed_request");
    assert!(provider.requests().is_empty());
}

/// RFC 9112 lets the server process such a request, but it must then close the connection.
#[tokio::test]
async fn with_both_length_and_chunks_the_chunks_count_and_the_connection_ends() {
    let (server, _provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let both = [
        "content-length: 3\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 3",
    ];
    for lines in both {
        let request = format!(
            "POST /verify/v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\naccept: \
             application/json\r\ncontent-type: application/json\r\n{lines}\r\n\r\n{BODY}"
        );
        let (head, _) = only_response(server.authority(), &request).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{lines:?}: {head}");
    }
}

#[tokio::test]
async fn malformed_chunks_end_the_connection() {
    let (server, provider) = agreeing_panel().await;
    let key = server.key(Service::Verify);
    let fact = r#"{"fact":"x"}"#;
    let endless = format!("c;{}\r\n{fact}\r\n0\r\n\r\n", "x".repeat(100_000));
    let trailer = format!("c\r\n{fact}\r\n0\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    let cases = [
        format!("zz\r\n{fact}\r\n0\r\n\r\n"),
        format!("-c\r\n{fact}\r\n0\r\n\r\n"),
        format!("0xc\r\n{fact}\r\n0\r\n\r\n"),
        format!("\r\n{fact}\r\n0\r\n\r\n"),
        format!("1000000000000000c\r\n{fact}\r\n0\r\n\r\n"),
        format!("c\n{fact}\r\n0\r\n\r\n"),
        format!("c;a\nb\r\n{fact}\r\n0\r\n\r\n"),
        format!("c\r\n{fact}XX0\r\n\r\n"),
        endless,
        trailer,
    ];
    for body in cases {
        let request = format!(
            "POST /verify/v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{body}"
        );
        let (head, code) = only_response(server.authority(), &request).await;
        assert!(head.starts_with("HTTP/1.1 400 ") && code == "invalid_json", "{body:.40}: {code} {head}");
    }
    assert!(provider.requests().is_empty());
}

/// As RFC 9112 allows. A proxy that forwards one within a header therefore forwards two headers.
#[tokio::test]
async fn a_bare_line_feed_ends_a_line_of_the_head() {
    let (server, _provider) = agreeing_panel().await;
    let request =
        "GET /verify/v1/health HTTP/1.1\nhost: localhost\nx-a: b\nx-request-id: mine\nconnection: close\n\n";
    let answer = exchange(server.authority(), request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\r\nx-request-id: mine\r\n"), "{answer}");
}

#[tokio::test]
async fn the_host_in_an_absolute_target_is_never_called() {
    let (server, _provider) = agreeing_panel().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = listener.local_addr().unwrap();
    for (line, status) in [
        (format!("GET http://{elsewhere}/verify/v1/health"), 200),
        (format!("GET http://{elsewhere}/latest/meta-data"), 404),
        (format!("CONNECT {elsewhere}"), 405),
    ] {
        let request = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = exchange(server.authority(), request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
    }
    listener.into_std().unwrap().accept().expect_err("the server called it");
}

#[tokio::test]
async fn callers_cannot_inject_response_headers() {
    let (server, _provider) = agreeing_panel().await;
    let forged = "x\r\nset-cookie: forged=1";
    for id in [
        "a%0d%0aset-cookie:forged=1",
        "a\\r\\nset-cookie: forged=1",
        "a\rset-cookie: forged=1",
        "a\u{85}forged",
        forged,
    ] {
        let request = format!(
            "GET /verify/v1/health HTTP/1.1\r\nhost: localhost\r\nx-request-id: {id}\r\nconnection: close\r\n\r\n"
        );
        let answer = exchange(server.authority(), request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 ") && !answer.contains("forged"), "{id:?}: {answer}");
    }
    for path in ["/%0d%0aset-cookie:forged=1", "/v1/apps/%0d%0aset-cookie:forged=1"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = exchange(server.authority(), request.as_bytes()).await;
        assert!(!answer.contains("forged"), "{path}: {answer}");
    }
}
