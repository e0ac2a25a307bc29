//! Streams that break in their middle: providers that break them, and what a caller is to get.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::chat::{Desk, chunks, desk_with, text_of};
use super::provider::{Ask, Beat, Turn, role_chunk, text_chunk};

/// How a stream of `fake/m` ends whose connection breaks.
pub const CUT: &str = r#"{"message":"the provider fake broke its answer off; try again in a moment","type":"Bad Gateway","code":"provider_error"}"#;
/// A fallback of `fake/m`.
pub const FALLBACK: &str = "[inference.fallbacks]\n\"fake/m\" = [\"fake/second\"]\n";

/// What is said, and then the connection breaks; its chunks have an id of their own.
pub fn broken(words: &[&str], end: Vec<Beat>) -> Turn {
    let mut beats = vec![role_chunk()];
    beats.extend(words.iter().map(|word| text_chunk(word)));
    beats.push(Beat::APART);
    beats.extend(end);
    Turn::Stream(renamed(beats, "chatcmpl-first"))
}

fn renamed(beats: Vec<Beat>, id: &str) -> Vec<Beat> {
    let rename = |beat| match beat {
        Beat::Send(text) => Beat::Send(text.replace("chatcmpl-up", id)),
        other => other,
    };
    beats.into_iter().map(rename).collect()
}

/// A desk whose model `m` is tried again so many times, and whose n-th call (from 0) is answered by `script`.
pub async fn desk_retrying(
    retries: u32,
    rest: &str,
    script: impl Fn(usize, &Ask) -> Turn + Send + Sync + 'static,
) -> Desk {
    let calls = AtomicUsize::new(0);
    let change = move |config: &mut mk::config::ServerConfig| config.providers[0].retries = retries;
    // With one place only, a broken call that kept its place would be waited for.
    desk_with(
        "max_concurrent = 1",
        rest,
        |setup| setup.config(change),
        move |ask| script(calls.fetch_add(1, Ordering::SeqCst), ask),
    )
    .await
}

/// Holds that a stream looks like one that never broke; its text.
pub fn unbroken(raw: &str) -> String {
    let list = chunks(raw);
    let begun = &list[0];
    assert_eq!(begun["choices"][0]["delta"]["role"], "assistant");
    for chunk in &list {
        for name in ["id", "created", "model"] {
            assert_eq!(chunk[name], begun[name], "{raw}");
        }
        assert!(chunk.get("error").is_none(), "{raw}");
    }
    assert_eq!(raw.matches("\"role\"").count(), 1, "{raw}");
    assert_eq!(raw.matches("\"finish_reason\":\"stop\"").count(), 1, "{raw}");
    text_of(&list, 0)
}

/// Holds that a stream ends as one that broke; what it said until then.
pub fn ended_broken(raw: &str, error: &str) -> String {
    let end = format!("{{}},\"finish_reason\":\"error\"}}],\"error\":{error}}}\n\ndata: [DONE]\n\n");
    assert!(raw.ends_with(&end), "{raw}");
    assert_eq!(raw.matches("\"role\"").count(), 1, "{raw}");
    text_of(&chunks(raw), 0)
}

/// Model and outcome of each attempt.
pub fn outcomes(desk: &Desk) -> Vec<(String, String)> {
    desk.booked().into_iter().map(|(model, outcome, ..)| (model, outcome)).collect()
}

/// One of them.
pub fn row(model: &str, outcome: &str) -> (String, String) {
    (model.to_owned(), outcome.to_owned())
}
