//! Streams that break midway: providers that break them, and what the caller must receive.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::chat::{Gateway, chunks, gateway_with, text_of};
use super::provider::{ModelRequest, Reply, StreamStep, role_chunk, text_chunk};

/// The error that ends a stream of `fake/m` whose upstream connection broke.
pub const CUT: &str = r#"{"message":"the connection to the provider fake broke during the answer; try again in a moment","type":"Bad Gateway","code":"provider_error"}"#;
/// Configures one fallback for `fake/m`.
pub const FALLBACK: &str = "[inference.fallbacks]\n\"fake/m\" = [\"fake/second\"]\n";

/// A stream of these words that then ends in `end`, usually a broken connection. Its chunks carry a different id from
/// those of later streams.
pub fn broken(words: &[&str], end: Vec<StreamStep>) -> Reply {
    let mut beats = vec![role_chunk()];
    beats.extend(words.iter().map(|word| text_chunk(word)));
    beats.push(StreamStep::APART);
    beats.extend(end);
    Reply::Stream(renamed(beats, "chatcmpl-first"))
}

fn renamed(beats: Vec<StreamStep>, id: &str) -> Vec<StreamStep> {
    let rename = |beat| match beat {
        StreamStep::Send(text) => StreamStep::Send(text.replace("chatcmpl-up", id)),
        other => other,
    };
    beats.into_iter().map(rename).collect()
}

/// A gateway whose model `m` gets `retries` retries, and whose n-th call (from 0) is answered by `script`.
pub async fn gateway_retrying(
    retries: u32,
    rest: &str,
    script: impl Fn(usize, &ModelRequest) -> Reply + Send + Sync + 'static,
) -> Gateway {
    let calls = AtomicUsize::new(0);
    let change =
        move |config: &mut mk::config::ServerConfig| config.providers[0].call_policy.retries = retries;
    // With a single slot, a broken call that never released it would block the next one.
    gateway_with(
        "max_concurrent = 1",
        rest,
        |setup| setup.config(change),
        move |ask| script(calls.fetch_add(1, Ordering::SeqCst), ask),
    )
    .await
}

/// Asserts that a stream looks as if it had never broken, and returns its text.
pub fn unbroken(raw: &str) -> String {
    let list = chunks(raw);
    let first = &list[0];
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    for chunk in &list {
        for name in ["id", "created", "model"] {
            assert_eq!(chunk[name], first[name], "{raw}");
        }
        assert!(chunk.get("error").is_none(), "{raw}");
    }
    assert_eq!(raw.matches("\"role\"").count(), 1, "{raw}");
    assert_eq!(raw.matches("\"finish_reason\":\"stop\"").count(), 1, "{raw}");
    text_of(&list, 0)
}

/// Asserts that a stream ends with this error, and returns the text before it.
pub fn ended_broken(raw: &str, error: &str) -> String {
    let end = format!("{{}},\"finish_reason\":\"error\"}}],\"error\":{error}}}\n\ndata: [DONE]\n\n");
    assert!(raw.ends_with(&end), "{raw}");
    assert_eq!(raw.matches("\"role\"").count(), 1, "{raw}");
    text_of(&chunks(raw), 0)
}

/// Model and outcome of each recorded attempt.
pub fn outcomes(gateway: &Gateway) -> Vec<(String, String)> {
    gateway.booked().into_iter().map(|(model, outcome, ..)| (model, outcome)).collect()
}

/// An expected entry of [`outcomes`].
pub fn row(model: &str, outcome: &str) -> (String, String) {
    (model.to_owned(), outcome.to_owned())
}
