//! A small memory limit, and requests that need much memory.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::{Fixture, View, problems, provider};
use crate::support::database::{assert_intact, copy};
use crate::support::server::client;
use crate::support::{raw, serve};

/// Address space, in KiB: an idle debug build uses half of it, including threads and the allocator's arenas.
const LIMIT: u64 = 768 * 1024;
/// Concurrent requests for each kind of body.
const CALLERS: usize = 6;
/// The largest body that the server accepts.
const MIB: usize = 1 << 20;

/// The body of a completion request with these messages, and `more` after them.
fn request(messages: &str, more: &str) -> String {
    format!(r#"{{"model":"fake/m","messages":[{messages}]{more}}}"#)
}

fn repeated(piece: &str) -> String {
    let mut text = piece.repeat((MIB - 200) / (piece.len() + 1));
    text = text.replace("}{", "},{").replace("00", "0,0").replace("00", "0,0");
    text
}

/// Bodies of nearly the largest size, which take more memory once they are parsed.
fn bodies() -> [(&'static str, String); 6] {
    let one = r#"{"role":"user","content":"a"}"#;
    let nested = "[".repeat(MIB - 200);
    [
        ("long", request(&format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(MIB - 200)), "")),
        ("messages", request(&repeated(one), "")),
        (
            "parts",
            request(
                &format!(r#"{{"role":"user","content":[{}]}}"#, repeated(r#"{"type":"text","text":"a"}"#)),
                "",
            ),
        ),
        ("objects", request(one, &format!(r#","metadata":[{}]"#, repeated(r#"{"a":1}"#)))),
        ("numbers", request(one, &format!(r#","x":[{}]"#, repeated("0")))),
        ("nested", request(one, &format!(r#","x":{nested}"#))),
    ]
}

async fn send(http: &Client, url: String, key: &str, body: String) -> u16 {
    let sent = http.post(url).bearer_auth(key).header("content-type", "application/json").body(body);
    sent.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_and_hostile_bodies_fit_into_a_small_memory_limit() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let fixture = Fixture::of(call.after(&format!("ulimit -v {LIMIT}")), View::Plain).await;
    let url = format!("{}/inference/v1/chat/completions", fixture.server.base);
    let http = client();
    for (kind, body) in bodies() {
        assert!(body.len() > MIB / 2 && body.len() <= MIB, "{kind}: {}", body.len());
        let with_key = join_all((0..CALLERS).map(|_| send(&http, url.clone(), &fixture.chat, body.clone())));
        for status in with_key.await {
            assert!(matches!(status, 200 | 400), "{kind}: {status}");
        }
        // Without a valid key no body is read.
        let unknown = join_all((0..4).map(|_| send(&http, url.clone(), "mk_inference_x", body.clone())));
        assert!(unknown.await.iter().all(|status| *status == 401 || *status == 429), "{kind}");
    }
    fixture.chat_must_succeed().await;
    fixture.verify_must_succeed().await;
    assert_eq!(fixture.create().await.status(), 201);
    assert_intact(copy(&fixture.data).path());
    let log = fixture.end().await;
    assert!(problems(&log).is_empty(), "{:?}", problems(&log));
}

/// The start of a response to a body that is never completed; `None` if there is none for a while.
async fn response_to_unfinished_body(authority: &str, key: &str) -> Option<String> {
    let length = MIB.to_string();
    let head = raw::head(key, &[("content-length", length.as_str())]);
    let mut stream = TcpStream::connect(authority).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses it closes the connection.
    let _ = stream.write_all(&vec![b' '; MIB - 1024]).await;
    let mut status = [0; 12];
    let read = stream.read_exact(&mut status);
    let read = tokio::time::timeout(Duration::from_secs(5), read).await;
    read.is_ok().then(|| String::from_utf8_lossy(&status).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_large_bodies_than_memory_are_refused_until_others_are_done() {
    const BODIES: usize = 200;
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let fixture = Fixture::of(call.after(&format!("ulimit -v {LIMIT}")), View::Plain).await;
    let authority = fixture.server.base.trim_start_matches("http://");
    let responses = join_all((0..BODIES).map(|_| response_to_unfinished_body(authority, &fixture.verify)));
    let (responses, ()) = tokio::join!(responses, fixture.chat_must_succeed());
    let refused: Vec<_> = responses.into_iter().flatten().collect();
    assert!(refused.len() >= BODIES / 4, "only {} were refused", refused.len());
    assert!(refused.iter().all(|status| status == "HTTP/1.1 503"), "{refused:?}");
    let url = format!("{}/inference/v1/chat/completions", fixture.server.base);
    let [(_, body), ..] = bodies();
    assert_eq!(send(&client(), url, &fixture.chat, body).await, 200);
    fixture.end().await;
}
