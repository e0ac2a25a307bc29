//! What a stream may make the decoder keep.

use super::*;
use crate::json::fields::Fields;
use crate::providers::{CompletionRequest, ResponseMeta};

/// The decoder and the outcome of the last event, after a message that begins with these events.
fn play(events: impl Iterator<Item = Value>) -> (Decoder, Result<EventOutcome, Failure>) {
    let request = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: true,
        choices: 1,
        prompt_tokens: 9,
        native: None,
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

#[test]
fn arguments_are_held_only_until_they_are_passed_on_and_never_many_at_once() {
    let start = |index: usize| {
        let input = json!({"text": "x".repeat(MAX_HELD_BYTES / 2)});
        let block = json!({"type": "tool_use", "id": "c", "name": "f", "input": input});
        json!({"type": "content_block_start", "index": index, "content_block": block})
    };
    let delta = |index: usize| {
        let delta = json!({"type": "input_json_delta", "partial_json": "{}"});
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    };
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    for release in [&stop as &dyn Fn(usize) -> Value, &delta] {
        let (decoder, outcome) = play((0..3).flat_map(|index| [start(index), release(index)]));
        assert_eq!((decoder.held_bytes(), outcome), (0, Ok(EventOutcome::More)));
    }
    assert_eq!(play((0..1).map(start)).1, Ok(EventOutcome::More));
    assert_eq!(play((0..2).map(start)).1, Err(Failure::Malformed));
}
