//! The formats that a fake provider speaks, chosen by the path of a call.

use http::HeaderMap;
use serde_json::{Value, json};

/// A provider's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Chat completions.
    Chat,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Google,
}

impl Format {
    /// The format used at a path.
    pub fn at(path: &str) -> Self {
        match path {
            _ if path.contains("/messages") => Self::Anthropic,
            _ if [":generateContent", ":streamGenerateContent", ":batchEmbedContents"]
                .iter()
                .any(|method| path.ends_with(method)) =>
            {
                Self::Google
            }
            _ => Self::Chat,
        }
    }

    /// The requested model.
    pub fn model(self, path: &str, body: &Value) -> String {
        match self {
            Self::Google => {
                let last = path.rsplit('/').next().unwrap_or_default();
                last.split(':').next().unwrap_or_default().to_owned()
            }
            Self::Chat | Self::Anthropic => body["model"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The API key, from wherever this format puts it.
    pub fn key(self, headers: &HeaderMap) -> Option<String> {
        let (name, prefix) = match self {
            Self::Chat => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Google => ("x-goog-api-key", ""),
        };
        headers.get(name)?.to_str().ok()?.strip_prefix(prefix).map(str::to_owned)
    }

    /// All texts of the conversation.
    pub fn texts(self, body: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let texts: Vec<Value> = match self {
            Self::Chat => list(&body["messages"]).iter().map(|message| message["content"].clone()).collect(),
            Self::Anthropic => {
                let messages = list(&body["messages"]);
                let turns = messages.iter().map(|message| &message["content"]);
                let contents = std::iter::once(&body["system"]).chain(turns);
                let texts = contents.flat_map(|content| match content {
                    Value::Array(blocks) => blocks.iter().map(|block| block["text"].clone()).collect(),
                    text => vec![text.clone()],
                });
                texts.collect()
            }
            Self::Google => {
                let contents = list(&body["contents"]);
                let turns = contents.iter().chain([&body["systemInstruction"]]);
                turns.flat_map(|turn| list(&turn["parts"])).map(|part| part["text"].clone()).collect()
            }
        };
        texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A response with this text that used 100 + 10 tokens.
    pub fn answer(self, model: &str, text: &str) -> String {
        let body = match self {
            Self::Chat => json!({
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_795_000_000,
                "model": model,
                "choices": [{
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
            }),
            Self::Anthropic => json!({
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "stop_sequence": null,
                "usage": {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 10},
            }),
            Self::Google => json!({
                "candidates": [{
                    "content": {"role": "model", "parts": [{"text": "Hm.", "thought": true}, {"text": text}]},
                    "finishReason": "STOP",
                    "index": 0,
                }],
                "usageMetadata": {
                    "promptTokenCount": 100, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "totalTokenCount": 110,
                },
                "modelVersion": model,
            }),
        };
        body.to_string()
    }
}
