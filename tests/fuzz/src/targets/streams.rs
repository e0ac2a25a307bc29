//! Providers' streamed responses, in every dialect: however the bytes are split, callers get the same chunks, in the
//! order that the format requires.

use std::collections::BTreeSet;

use crate::input::{is_object, number, pieces};
use mk::json::fields::Fields;
use mk::net::sse_decoder::Decoder;
use mk::providers::{ChunkWriter, CompletionRequest, EventOutcome, Failure, Kind, ResponseMeta, dialect};
use serde_json::Value;

/// What a caller gets of a stream, and why it broke.
#[derive(Debug, PartialEq)]
struct Output {
    chunks: Vec<u8>,
    is_whole: bool,
    failure: Option<Failure>,
}

fn decode(kind: Kind, pieces: &[&[u8]], choices: u32) -> Output {
    let asked = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices,
        prompt_tokens: 7,
        native: None,
    };
    let mut chunks = ChunkWriter::new(&asked, ResponseMeta { model: "a/b".into(), created: 7 });
    // Fixed, as otherwise an id is generated if the provider sends none.
    chunks.begin(Some("fixed"), Some(7));
    let spoken = dialect(kind).expect("these are spoken over HTTP");
    let (mut events, mut decoder) = (Decoder::default(), spoken.stream_decoder(&asked));
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
    let failure = outcome.and_then(|_| decoder.end(&mut chunks)).err();
    let is_whole = failure.is_none() && chunks.is_complete();
    if is_whole {
        chunks.end();
    }
    Output { chunks: chunks.take().to_vec(), is_whole, failure }
}

/// The chunks without the ids of tool calls: if a provider sends none, one is generated.
fn without_ids(output: Output) -> (String, bool, Option<Failure>) {
    let text = String::from_utf8(output.chunks).expect("chunks are text");
    let mut parts = text.split("\"call_");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take(32).take_while(u8::is_ascii_hexdigit).count();
        plain.push_str("\"call_");
        plain.push_str(if digits == 32 { &part[32..] } else { part });
    }
    (plain, output.is_whole, output.failure)
}

fn check(output: &Output) {
    let mut decoder = Decoder::default();
    decoder.feed(&output.chunks);
    let (mut started, mut ended, mut is_done) = (BTreeSet::new(), BTreeSet::new(), false);
    while let Some(event) = decoder.next().expect("smaller than any event may be") {
        assert!(!is_done, "an event after the end");
        if event.data == b"[DONE]" {
            is_done = true;
            continue;
        }
        assert!(is_object(event.data), "a chunk is an object");
        // What a provider adds is passed on unchanged, even if it is nested deeper than serde_json reads.
        let Ok(chunk) = serde_json::from_slice::<Value>(event.data) else { return };
        assert_eq!((&chunk["id"], &chunk["model"]), (&Value::from("fixed"), &Value::from("a/b")));
        for choice in chunk["choices"].as_array().expect("choices") {
            let index = choice["index"].as_u64().expect("an index");
            assert!(!ended.contains(&index), "after the end of its choice: {chunk}");
            assert!(!started.insert(index) || choice["delta"]["role"].is_string(), "no role first: {chunk}");
            if choice["finish_reason"].is_string() {
                ended.insert(index);
            }
        }
    }
    assert_eq!(is_done, output.is_whole);
    assert!(!output.is_whole || started == ended, "the stream is complete, but a choice is not");
}

pub(super) fn run(bytes: &[u8]) {
    let choices = 1 + u32::try_from(number(bytes, 100) % 2).unwrap_or_default();
    for kind in Kind::OF_APIS {
        let whole = decode(kind, &[bytes], choices);
        check(&whole);
        assert_eq!(without_ids(decode(kind, &pieces(bytes), choices)), without_ids(whole), "{kind:?}");
    }
}
