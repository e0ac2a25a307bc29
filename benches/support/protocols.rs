//! The other protocols that `mk` takes, Messages and Responses: the request of `requests.rs` in their words, and the
//! fake provider's answers in them, with the same text and as many pieces as those of `completions.rs`.

use std::iter::repeat_n;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::completions::{ANSWER_TEXT, Answers, PIECE_TEXT, PIECES};
use crate::requests::{QUESTION, SYSTEM, turns};

/// A protocol, and where it is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic's.
    Messages,
    /// `OpenAI`'s newer one.
    Responses,
}

/// The provider's answers to requests at this path, if it is of these protocols.
pub(crate) fn answers(path: &str) -> Option<Answers> {
    let (whole, before, piece, after) = match path {
        "/v1/messages" => messages(),
        "/v1/responses" => responses(),
        _ => return None,
    };
    let event = |data: &Value| {
        Bytes::from(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default()))
    };
    let events =
        before.iter().map(event).chain(repeat_n(event(&piece), PIECES)).chain(after.iter().map(event));
    Some(Answers { whole: Bytes::from(whole.to_string()), events: events.collect(), before: before.len() })
}

fn messages() -> (Value, Vec<Value>, Value, Vec<Value>) {
    let message = |content: Value, stop: Option<&str>, written: u32| {
        json!({
            "id": "msg_BenchA1b2C3d4E5f6G7h8I9", "type": "message", "role": "assistant", "model": "model",
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 212, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": written},
        })
    };
    let whole = message(json!([{"type": "text", "text": ANSWER_TEXT}]), Some("end_turn"), 58);
    let before = vec![
        json!({"type": "message_start", "message": message(json!([]), None, 1)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let piece = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": PIECE_TEXT}});
    let after = vec![
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 100}}),
        json!({"type": "message_stop"}),
    ];
    (whole, before, piece, after)
}

fn responses() -> (Value, Vec<Value>, Value, Vec<Value>) {
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_BenchA1b2C3d4E5f6G7h8I9", "object": "response", "created_at": 1_760_000_000, "status": status,
            "error": null, "incomplete_details": null, "instructions": null, "model": "model", "output": output,
            "parallel_tool_calls": true, "temperature": 0.2, "tool_choice": "auto", "tools": [], "usage": usage,
        })
    };
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let item = |status: &str, content: Value| json!({"type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": content});
    let usage = |written: u32| {
        json!({
            "input_tokens": 212, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 212 + written,
        })
    };
    let whole = response("completed", json!([item("completed", json!([part(ANSWER_TEXT)]))]), usage(58));
    let text = PIECE_TEXT.repeat(PIECES);
    let done = item("completed", json!([part(&text)]));
    let of_part = |kind: &str, name: &str, value: Value| json!({"type": kind, "sequence_number": 4, "item_id": "msg_1", "output_index": 0, "content_index": 0, name: value});
    let before = vec![
        json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.in_progress", "sequence_number": 1, "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "sequence_number": 2, "output_index": 0, "item": item("in_progress", json!([]))}),
        of_part("response.content_part.added", "part", part("")),
    ];
    let piece = of_part("response.output_text.delta", "delta", json!(PIECE_TEXT));
    let after = vec![
        of_part("response.output_text.done", "text", json!(text)),
        of_part("response.content_part.done", "part", part(&text)),
        json!({"type": "response.output_item.done", "sequence_number": 106, "output_index": 0, "item": done}),
        json!({"type": "response.completed", "sequence_number": 107, "response": response("completed", json!([done]), usage(100))}),
    ];
    (whole, before, piece, after)
}

impl Protocol {
    /// Its path at `mk`.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Messages => "/anthropic/v1/messages",
            Self::Responses => "/openai/v1/responses",
        }
    }

    /// What the last event of a stream contains.
    pub(crate) const fn last_event(self) -> &'static str {
        match self {
            Self::Messages => "event: message_stop",
            Self::Responses => "event: response.completed",
        }
    }

    /// The body of a request, which asks its question `times` over.
    pub(crate) fn request(self, model: &str, is_stream: bool, times: usize) -> String {
        let question = QUESTION.repeat(times);
        let mut body = match self {
            Self::Messages => {
                json!({"model": model, "system": SYSTEM, "messages": turns(&question), "max_tokens": 256})
            }
            Self::Responses => {
                json!({"model": model, "instructions": SYSTEM, "input": turns(&question), "max_output_tokens": 256})
            }
        };
        body["temperature"] = json!(0.2);
        if is_stream {
            body["stream"] = true.into();
        }
        body.to_string()
    }
}
