//! Providers' streamed answers, in every dialect: however the bytes are cut, callers get the same chunks, in the order
//! that the format promises.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use mk::providers::sse::Decoder;
use mk::providers::{
    ChunkWriter, CompletionRequest, EventOutcome, Failure, Fields, Kind, ResponseMeta, dialect,
};
use mk_fuzz::{is_object, number, pieces};
use serde_json::Value;

/// What a caller gets of a stream, and why it broke.
#[derive(Debug, PartialEq)]
struct Told {
    chunks: Vec<u8>,
    is_whole: bool,
    failure: Option<Failure>,
}

fn tell(kind: Kind, pieces: &[&[u8]], choices: u32) -> Told {
    let asked = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices,
        prompt_tokens: 7,
    };
    let mut chunks = ChunkWriter::new(&asked, ResponseMeta { model: "a/b".into(), created: 7 });
    // Otherwise a new one is made where the provider gives none.
    chunks.begin(Some("fixed"), Some(7));
    let spoken = dialect(kind).expect("these are spoken over HTTP");
    let (mut events, mut decoder) = (Decoder::default(), spoken.completions().stream_decoder(&asked));
    let mut outcome = Ok(EventOutcome::More);
    let ends: [&[u8]; 1] = [b"\n\n"];
    for piece in pieces.iter().chain(&ends) {
        events.feed(piece);
        while !matches!(outcome, Err(_) | Ok(EventOutcome::End)) {
            let Some(event) = events.next().expect("an input is smaller than any event may be") else {
                break;
            };
            outcome = decoder.read(&event, &mut chunks);
        }
    }
    let is_whole = chunks.is_complete();
    if is_whole {
        chunks.end();
    }
    Told { chunks: chunks.take().to_vec(), is_whole, failure: outcome.err() }
}

/// The chunks with calls of tools called the same: where a provider gives them no id, one is made.
fn without_ids(told: Told) -> (String, bool, Option<Failure>) {
    let text = String::from_utf8(told.chunks).expect("chunks are text");
    let mut parts = text.split("\"call_");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take(32).take_while(u8::is_ascii_hexdigit).count();
        plain.push_str("\"call_");
        plain.push_str(if digits == 32 { &part[32..] } else { part });
    }
    (plain, told.is_whole, told.failure)
}

fn check(told: &Told) {
    let mut decoder = Decoder::default();
    decoder.feed(&told.chunks);
    let (mut begun, mut ended, mut is_done) = (BTreeSet::new(), BTreeSet::new(), false);
    while let Some(event) = decoder.next().expect("smaller than any event may be") {
        assert!(!is_done, "something behind the end");
        if event.data == b"[DONE]" {
            is_done = true;
            continue;
        }
        assert!(is_object(event.data), "a chunk is an object");
        // Deeper than the reader goes, what a provider adds is passed on as it is.
        let Ok(chunk) = serde_json::from_slice::<Value>(event.data) else { return };
        assert_eq!((&chunk["id"], &chunk["model"]), (&Value::from("fixed"), &Value::from("a/b")));
        for choice in chunk["choices"].as_array().expect("choices") {
            let index = choice["index"].as_u64().expect("an index");
            assert!(!ended.contains(&index), "behind the end of its choice: {chunk}");
            assert!(!begun.insert(index) || choice["delta"]["role"].is_string(), "no role first: {chunk}");
            if choice["finish_reason"].is_string() {
                ended.insert(index);
            }
        }
    }
    assert_eq!(is_done, told.is_whole);
    assert!(!told.is_whole || begun == ended, "whole, and a choice is open");
}

fuzz_target!(|bytes: &[u8]| {
    let choices = 1 + u32::try_from(number(bytes, 100) % 2).unwrap_or_default();
    for kind in [Kind::OpenAi, Kind::Anthropic, Kind::Google] {
        let whole = tell(kind, &[bytes], choices);
        check(&whole);
        assert_eq!(without_ids(tell(kind, &pieces(bytes), choices)), without_ids(whole), "{kind:?}");
    }
});
