//! The other protocols that `mk` takes, Messages and Responses: the request of `requests.rs` in their words, and the
//! fake provider's answers in them, with the same text and as many pieces as those of `completions.rs`.

use std::iter::repeat_n;
use std::net::SocketAddr;
use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::caller::Expected;
use crate::completions::{ANSWER_TEXT, Answers, LAST_WORDS, PIECE_TEXT, PIECES};
use crate::requests::{QUESTION, SYSTEM, post, turns};

/// How often a question is asked in a prompt of 100 kB.
const LONG: usize = 300;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic's.
    Messages,
    /// `OpenAI`'s newer one.
    Responses,
}

/// How the provider gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As it is.
    PassedOn,
    /// As a chat completion.
    Translated,
}

/// What requests differ in besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A whole answer to a short prompt.
    Whole,
    /// A streamed answer.
    Stream,
    /// A whole answer to a prompt of 100 kB, as an agent's first turn has.
    Long,
}

impl Shape {
    /// How often the question is asked.
    pub(crate) const fn times(self) -> usize {
        match self {
            Self::Whole | Self::Stream => 1,
            Self::Long => LONG,
        }
    }
}

/// A request in another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) protocol: Protocol,
    pub(crate) way: Way,
    pub(crate) shape: Shape,
}

/// The providers of the models that requests are passed on to, as tables of `server.toml`.
pub(crate) fn providers(address: SocketAddr) -> String {
    format!(
        r#"
[providers.claude]
kind = "anthropic"
base_url = "http://{address}/v1"
max_concurrent = 4096
[providers.responder]
kind = "openai"
base_url = "http://{address}/v1"
responses = true
max_concurrent = 4096
"#
    )
}

/// The provider's answers to requests at this path, if it is of these protocols.
pub(crate) fn answers(path: &str) -> Option<Answers> {
    static MESSAGES: LazyLock<Answers> = LazyLock::new(|| written(messages()));
    static RESPONSES: LazyLock<Answers> = LazyLock::new(|| written(responses()));
    match path {
        "/v1/messages" => Some(MESSAGES.clone()),
        "/v1/responses" => Some(RESPONSES.clone()),
        _ => None,
    }
}

fn written((whole, before, piece, after): (Value, Vec<Value>, Value, Vec<Value>)) -> Answers {
    let event = |data: &Value| {
        Bytes::from(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default()))
    };
    let events =
        before.iter().map(event).chain(repeat_n(event(&piece), PIECES)).chain(after.iter().map(event));
    Answers { whole: Bytes::from(whole.to_string()), events: events.collect(), before: before.len() }
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

impl Other {
    /// All of them: each protocol and way in each shape.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let shapes = |(protocol, way)| {
            [Shape::Whole, Shape::Stream, Shape::Long].map(|shape| Self { protocol, way, shape })
        };
        let ways = |protocol| [Way::PassedOn, Way::Translated].map(|way| (protocol, way));
        [Protocol::Messages, Protocol::Responses].into_iter().flat_map(ways).flat_map(shapes)
    }

    /// The request with the question `times` over, and what a correct response is; `translated` is the model of a
    /// provider of chat completions.
    pub(crate) fn request(
        self,
        host: SocketAddr,
        key: &str,
        translated: &str,
        times: usize,
    ) -> (Vec<u8>, Expected) {
        let model = match (self.way, self.protocol) {
            (Way::Translated, _) => translated,
            (Way::PassedOn, Protocol::Messages) => "claude/model",
            (Way::PassedOn, Protocol::Responses) => "responder/model",
        };
        let question = QUESTION.repeat(times);
        let (path, last_event, mut body) = match self.protocol {
            Protocol::Messages => (
                "/anthropic/v1/messages",
                "event: message_stop",
                json!({"model": model, "system": SYSTEM, "messages": turns(&question), "max_tokens": 256}),
            ),
            Protocol::Responses => (
                "/openai/v1/responses",
                "event: response.completed",
                json!({"model": model, "instructions": SYSTEM, "input": turns(&question), "max_output_tokens": 256}),
            ),
        };
        body["temperature"] = json!(0.2);
        let mut text = LAST_WORDS;
        if self.shape == Shape::Stream {
            body["stream"] = true.into();
            text = last_event;
        }
        (post(host, path, key, &body.to_string()), Expected { status: 200, text, events: 0 })
    }
}
