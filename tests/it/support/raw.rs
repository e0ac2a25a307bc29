//! Hand-written HTTP, for requests that no client library would send.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends bytes and returns what arrives until the server closes the connection or five seconds have passed.
pub async fn exchange(authority: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(authority).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(5), read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request with `connection: close`.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() {
        head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
    }
    format!("{head}\r\n{body}").into_bytes()
}

/// The head of a verification request that keeps its connection, without the body.
pub fn head(key: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!(
        "POST /verify/v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\n"
    );
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head + "\r\n"
}

/// A verification request that keeps its connection.
pub fn post(key: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    head(key, &[headers, &[("content-length", length.as_str())]].concat()) + body
}
