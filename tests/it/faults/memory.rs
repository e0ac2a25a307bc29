//! Little memory, and callers who want much of it.

use futures_util::future::join_all;
use reqwest::Client;

use super::desk::{Desk, View, provider, troubles};
use crate::support::database::{copy, must_be_whole};
use crate::support::serve;
use crate::support::server::client;

/// Address space, in KiB: a debug build at rest has half of it, threads and arenas of the allocator included.
const LIMIT: u64 = 768 * 1024;
/// Of each kind, all at once.
const CALLERS: usize = 6;
/// Of a body, nearly all that it may have.
const MIB: usize = 1 << 20;

/// A completion's request with this in the place of its messages, and of what follows them.
fn request(messages: &str, more: &str) -> String {
    format!(r#"{{"model":"fake/m","messages":[{messages}]{more}}}"#)
}

fn repeated(piece: &str) -> String {
    let mut text = piece.repeat((MIB - 200) / (piece.len() + 1));
    text = text.replace("}{", "},{").replace("00", "0,0").replace("00", "0,0");
    text
}

/// Bodies that are as large as they may be, and become more than they are when they are read.
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
async fn large_and_hostile_bodies_do_not_use_up_a_small_memory() {
    let provider = provider().await;
    let call = serve::call(&provider.base_url, "");
    let desk = Desk::of(call.after(&format!("ulimit -v {LIMIT}")), View::Plain).await;
    let url = format!("{}/inference/v1/chat/completions", desk.server.base);
    let http = client();
    for (kind, body) in bodies() {
        assert!(body.len() > MIB / 2 && body.len() <= MIB, "{kind}: {}", body.len());
        let with_key = join_all((0..CALLERS).map(|_| send(&http, url.clone(), &desk.chat, body.clone())));
        for status in with_key.await {
            assert!(matches!(status, 200 | 400), "{kind}: {status}");
        }
        // Without a key nothing of a body is taken.
        let unknown = join_all((0..4).map(|_| send(&http, url.clone(), "mk_inference_x", body.clone())));
        assert!(unknown.await.iter().all(|status| *status == 401 || *status == 429), "{kind}");
    }
    desk.must_chat().await;
    desk.must_verify().await;
    assert_eq!(desk.create().await.status(), 201);
    must_be_whole(copy(&desk.data).path());
    let log = desk.end().await;
    assert!(troubles(&log).is_empty(), "{:?}", troubles(&log));
}
