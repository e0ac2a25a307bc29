//! What the span of a call is told of its request and its answer, in the names of OpenTelemetry's conventions.
//!
//! What callers and models write is told only if the operator says so, and then so much of it: the last
//! [`MAX_MESSAGES`] messages, [`MAX_CHARS`] characters of each.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::providers::{Answer, CompletionRequest, CompletionStream, Finish, Message, Prompt};
use crate::traces::Span;

/// The most messages of a conversation.
const MAX_MESSAGES: usize = 20;
/// The most characters of a text.
const MAX_CHARS: usize = 4_000;
/// The longest answer that is parsed once more to be told.
const MAX_PARSED_BYTES: usize = 1 << 20;

/// What is asked for a caller.
pub(super) fn request(span: &mut Span, request: &CompletionRequest<'_>) {
    span.set("gen_ai.request.stream", request.stream);
    let limit = request.fields.read("max_completion_tokens").or_else(|| request.fields.read("max_tokens"));
    span.set_some("gen_ai.request.max_tokens", limit.map(|limit: u32| limit));
    span.set_some("gen_ai.request.temperature", request.fields.read::<f64>("temperature"));
    if span.captures() {
        let messages: Vec<Value> = request.fields.read("messages").unwrap_or_default();
        let last = &messages[messages.len().saturating_sub(MAX_MESSAGES)..];
        let last = last.iter().map(|message| {
            let role = message["role"].as_str().unwrap_or_default();
            json!({"role": shortened(role), "parts": parts(&message["content"])})
        });
        span.set("gen_ai.input.messages", last.collect::<Value>().to_string());
    }
}

/// The whole answer to it: a `chat.completion` object.
pub(super) fn completion(span: &mut Span, body: &[u8]) {
    #[derive(Deserialize)]
    struct Completion {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        finish_reason: Option<String>,
        #[serde(default)]
        message: Value,
    }
    if body.len() > MAX_PARSED_BYTES {
        return;
    }
    let Ok(Completion { choices }) = serde_json::from_slice(body) else { return };
    let reason = |choice: &Choice| choice.finish_reason.as_deref().map(shortened);
    span.set("gen_ai.response.finish_reasons", choices.iter().filter_map(reason).collect::<Vec<_>>());
    if span.captures() {
        let messages = choices.iter().map(|choice| {
            json!({"role": "assistant", "parts": parts(&choice.message["content"]), "finish_reason": reason(choice)})
        });
        span.set("gen_ai.output.messages", messages.collect::<Value>().to_string());
    }
}

/// What has been streamed of the answer; its text only if there is nothing but text.
pub(super) fn stream(span: &mut Span, stream: &CompletionStream) {
    let reasons: Vec<String> = stream.finish_reasons().map(shortened).collect();
    if let (true, Some(text)) = (span.captures(), stream.text()) {
        let output = json!([{"role": "assistant", "parts": [part(text)], "finish_reason": reasons.first()}]);
        span.set("gen_ai.output.messages", output.to_string());
    }
    span.set("gen_ai.response.finish_reasons", reasons);
}

/// What is asked for a verification, and the answer to it.
pub(super) fn answer(span: &mut Span, prompt: &Prompt<'_>, answer: &Answer) {
    let reason = match answer.finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
    };
    span.set_some("gen_ai.response.model", answer.model.as_deref().map(str::to_owned));
    span.set("gen_ai.response.finish_reasons", vec![reason.to_owned()]);
    if span.captures() {
        let message =
            |message: &Message| json!({"role": message.role.as_str(), "parts": [part(&message.content)]});
        let messages: Value = prompt.read(|chat| chat.messages.iter().map(message).collect());
        span.set("gen_ai.input.messages", messages.to_string());
        let output = json!([{"role": "assistant", "parts": [part(&answer.text)], "finish_reason": reason}]);
        span.set("gen_ai.output.messages", output.to_string());
    }
}

/// The parts of a message's content: texts, and of all else what it is.
fn parts(content: &Value) -> Value {
    match content {
        Value::String(text) => json!([part(text)]),
        Value::Array(items) => items
            .iter()
            .take(MAX_MESSAGES)
            .map(|item| match item["text"].as_str() {
                Some(text) => part(text),
                None => json!({"type": shortened(item["type"].as_str().unwrap_or("unknown"))}),
            })
            .collect(),
        _ => json!([]),
    }
}

fn part(text: &str) -> Value {
    json!({"type": "text", "content": shortened(text)})
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_other_parts_are_only_named() {
        assert_eq!(shortened(&"é".repeat(MAX_CHARS)).chars().count(), MAX_CHARS);
        assert_eq!(shortened(&"é".repeat(2 * MAX_CHARS)).chars().count(), MAX_CHARS + 1);
        let content =
            json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "secret"}}]);
        assert_eq!(parts(&content), json!([{"type": "text", "content": "a"}, {"type": "image_url"}]));
        assert_eq!(parts(&Value::Null), json!([]));
    }
}
