//! What a stream may make the decoder keep.

use super::*;
use crate::providers::{CompletionRequest, Fields, ResponseMeta};

/// The decoder and the outcome of the last event, after a message that begins with these events.
fn play(events: impl Iterator<Item = Value>) -> (Decoder, Result<EventOutcome, Failure>) {
    let request = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices: 1,
        prompt_tokens: 9,
    };
    let mut chunks = ChunkWriter::new(&request, ResponseMeta { model: "a/b".into(), created: 7 });
    let mut decoder = Decoder::default();
    let mut outcome = Ok(EventOutcome::More);
    for event in events {
        let data = event.to_string();
        outcome = decoder.read(&Event { name: b"", data: data.as_bytes() }, &mut chunks);
        chunks.take();
    }
    (decoder, outcome)
}

#[test]
fn only_the_counts_of_a_usage_are_kept() {
    let reports = (0..100).map(|number| {
        let mut usage = json!({"input_tokens": 3, "output_tokens": number});
        usage[format!("invented_{number}")] = json!("x".repeat(100));
        usage["output_tokens_details"] = json!({format!("invented_{number}"): [1, 2, 3]});
        json!({"type": "message_delta", "delta": {}, "usage": usage})
    });
    let (decoder, outcome) = play(reports);
    assert_eq!(outcome, Ok(EventOutcome::More));
    let kept = format!("{decoder:?}");
    assert!(kept.len() < 1000, "{kept}");
    assert_eq!(decoder.usage.usage().unwrap().tokens.completion, 99);
}
