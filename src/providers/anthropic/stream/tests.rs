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

#[test]
fn the_number_of_open_blocks_is_bounded() {
    let start = |kind: &str, index: usize| {
        let block = json!({"type": kind, "id": "c", "name": "f", "input": {}});
        json!({"type": "content_block_start", "index": index, "content_block": block})
    };
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    for (kind, max) in [("thinking", MAX_OPEN_BLOCKS), ("tool_use", MAX_TOOL_CALLS)] {
        assert_eq!(play((0..max).map(|index| start(kind, index))).1, Ok(EventOutcome::More));
        assert_eq!(play((0..=max).map(|index| start(kind, index))).1, Err(Failure::Malformed));
    }
    let closed = (0..=MAX_OPEN_BLOCKS).flat_map(|index| [start("thinking", index), stop(index)]);
    assert_eq!(play(closed).1, Ok(EventOutcome::More));
}
