//! Responses in the three dialects: whole, and as the events of a stream.

use serde_json::{Value, json};

use super::asked::{Asked, Dialect};
use super::turn::{Decided, Turn};

/// A whole response.
pub(super) fn whole(asked: &Asked, decided: &Decided) -> String {
    let (prompt, completion) = decided.usage;
    let text = decided.chunks.concat();
    let mut body = match asked.dialect {
        Dialect::Chat => json!({
            "id": "chatcmpl-soak",
            "object": "chat.completion",
            "created": 1_795_000_000,
            "model": asked.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }],
            "usage": chat_usage(decided),
        }),
        Dialect::Messages => json!({
            "id": "msg_soak",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {"input_tokens": prompt, "output_tokens": completion},
        }),
        Dialect::Gemini => gemini(&text, Some("STOP"), Some(decided)),
    };
    if decided.turn == Turn::NoUsage
        && let Some(body) = body.as_object_mut()
    {
        body.remove("usage");
        body.remove("usageMetadata");
    }
    body.to_string()
}

/// The events of a stream, in parts.
pub(super) struct Events {
    /// Before the text.
    pub(super) head: String,
    /// One for each chunk of the text.
    pub(super) chunks: Vec<String>,
    /// The finish reason and, unless it is omitted, the usage.
    pub(super) tail: String,
    /// The end mark; empty if the dialect has none.
    pub(super) mark: &'static str,
}

/// Builds the events of a stream.
pub(super) fn events(asked: &Asked, decided: &Decided) -> Events {
    let has_usage = decided.turn != Turn::NoUsage;
    let chunks = decided.chunks.iter().map(String::as_str);
    match asked.dialect {
        Dialect::Chat => {
            let stop = chunk(&json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]));
            let usage = event(&json!({"choices": [], "usage": chat_usage(decided)}));
            Events {
                head: chunk(&json!([{"index": 0, "delta": {"role": "assistant"}, "finish_reason": null}])),
                chunks: chunks
                    .map(|text| {
                        chunk(&json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]))
                    })
                    .collect(),
                tail: if has_usage { stop + &usage } else { stop },
                mark: "data: [DONE]\n\n",
            }
        }
        Dialect::Messages => messages(asked, decided),
        Dialect::Gemini => {
            let last = gemini("", Some("STOP"), has_usage.then_some(decided));
            Events {
                head: String::new(),
                chunks: chunks.map(|text| event(&gemini(text, None, None))).collect(),
                tail: event(&last),
                mark: "",
            }
        }
    }
}

fn messages(asked: &Asked, decided: &Decided) -> Events {
    let (prompt, completion) = decided.usage;
    let start = json!({
        "id": "msg_soak", "type": "message", "role": "assistant", "model": asked.model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": prompt, "output_tokens": 1},
    });
    let head = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let part = |text: &String| {
        let delta = json!({"type": "text_delta", "text": text});
        named(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    let stop = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let tail = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": completion}}),
    ];
    Events {
        head: head.iter().map(named).collect(),
        chunks: decided.chunks.iter().map(part).collect(),
        tail: tail.iter().map(named).collect(),
        mark: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    }
}

fn gemini(text: &str, reason: Option<&str>, usage: Option<&Decided>) -> Value {
    let mut body = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}],
        "modelVersion": "soak",
    });
    if let Some(reason) = reason {
        body["candidates"][0]["finishReason"] = json!(reason);
    }
    if let Some((prompt, completion)) = usage.map(|decided| decided.usage) {
        body["usageMetadata"] = json!({
            "promptTokenCount": prompt,
            "candidatesTokenCount": completion,
            "totalTokenCount": prompt + completion,
        });
    }
    body
}

fn chat_usage(decided: &Decided) -> Value {
    let (prompt, completion) = decided.usage;
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn chunk(choices: &Value) -> String {
    event(&json!({
        "id": "chatcmpl-soak",
        "object": "chat.completion.chunk",
        "created": 1_795_000_000,
        "model": "soak",
        "choices": choices,
    }))
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An event as Anthropic sends it, with its name.
fn named(data: &Value) -> String {
    format!("event: {}\n{}", data["type"].as_str().unwrap_or_default(), event(data))
}
